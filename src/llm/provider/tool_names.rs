//! Converts tool names, `server/tool`, to the form of providers, `[a-zA-Z0-9_-]{1,64}`, and back.

use crate::conversation::{ToolSpec, tool_name};

const MAX_LENGTH: usize = 64;

/// Returns our name of the tool that the model called. A name that was never offered is passed on,
/// so that the error the model gets names what it wrote.
pub(crate) fn our_name(tools: &[ToolSpec], called: &str) -> String {
    tools
        .iter()
        .find(|tool| on_the_wire(&tool.name) == called)
        .map_or_else(|| called.replacen("__", "/", 1), |tool| tool.name.clone())
}

/// Returns the provider's form of `name`: `server__tool`, the short name of one of the program's
/// own, or, if that would be too long, odd or ambiguous, a shortened form with a check sum. The
/// form depends on the name alone, so a resumed conversation is written the same.
pub(crate) fn on_the_wire(name: &str) -> String {
    let (server, tool) = tool_name::short(name)
        .split_once('/')
        .unwrap_or(("", tool_name::short(name)));
    let plain = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
            && !part.contains("__")
            && !part.starts_with('_')
            && !part.ends_with('_')
    };
    let joined = if server.is_empty() {
        tool.to_owned()
    } else {
        format!("{server}__{tool}")
    };
    if plain(server) && plain(tool) && !joined.is_empty() && joined.len() <= MAX_LENGTH {
        return joined;
    }
    let readable: String = joined
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || letter == '-' {
                letter
            } else {
                '_'
            }
        })
        .take(MAX_LENGTH - 10)
        .collect();
    format!("{readable}__{:08x}", check_sum(name))
}

/// Returns the FNV-1a hash of a name: the standard library's hasher may change between versions,
/// and stored conversations must not change with it.
fn check_sum(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({}),
        }
    }

    #[test]
    fn plain_names_stay_readable_and_odd_ones_stay_apart() {
        assert_eq!(on_the_wire("workspace/write_file"), "write_file");
        assert_eq!(on_the_wire("agent/revise_plan"), "revise_plan");
        assert_eq!(on_the_wire("workspace/execute_command"), "bash");
        assert_eq!(on_the_wire("time/now"), "time__now");
        assert_eq!(on_the_wire("done"), "done");
        assert_ne!(on_the_wire("a__b/c"), on_the_wire("a/b__c"));
        assert_ne!(on_the_wire("a/b.c"), on_the_wire("a/b_c"));
        assert_eq!(our_name(&[], "invented__tool"), "invented/tool");
    }

    proptest! {
        #[test]
        fn every_name_is_acceptable_and_comes_back(name in "[a-zA-Z0-9_./あ-]{0,90}") {
            let wire = on_the_wire(&name);
            prop_assert!((1..=MAX_LENGTH).contains(&wire.len()));
            prop_assert!(wire.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
            let own = format!("workspace/{}", name.replace('/', "-"));
            prop_assert_eq!(our_name(&[tool(&own)], &on_the_wire(&own)), own);
            prop_assert_eq!(our_name(&[tool(&name)], &wire), name);
        }
    }
}
