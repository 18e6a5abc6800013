//! Whether the end of a run says what was not proven. Only the program's own section on its checks
//! counts: a model's summary has words such as "failed" for what it mended.

/// The heading over the program's list of checks, and the sentence that stands in its place where
/// there were none; both at the beginning of a line. The model's summary always comes before.
const CHECKS: &str = "**How it was verified**";
const NOTHING: &str = "Nothing was checked: ";
/// The headings over the subtasks that are still open, and over the parts of the task that no test
/// mentions.
const OPEN: [&str; 2] = ["**Not finished**", "**What no test mentions**"];
/// The end of the sentence on a result that is the first of several to pass: tests that have chosen
/// it are no proof of what they do not test.
const CHOSEN: &str = ": its checks have chosen it, so look at what they do not test.";
/// The marks of a check that passed, and the mark of the section about the result in a pull
/// request's text.
const PASSED: &str = "✅ ";
const RESULT: &str = "<!-- coding-agent:result";

/// Tells whether a pull request's text says that something is open or was not checked.
pub fn in_a_pull_request(text: &str) -> bool {
    // What stands before the program's own section about the result is the model's summary.
    let Some((_, result)) = text.split_once(RESULT) else {
        return false;
    };
    let says_so = |line: &str| OPEN.contains(&line.trim_end()) || line.ends_with(CHOSEN);
    in_a_comment(result) || result.lines().any(says_so)
}

/// Tells whether a final comment says that something was not checked, or that a check did not pass.
pub fn in_a_comment(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let is_section = |line: &&str| line.starts_with(NOTHING) || line.trim_end() == CHECKS;
    // The model may have written such a line, too, but the program's is the last.
    let Some(place) = lines.iter().rposition(is_section) else {
        return false;
    };
    if lines[place].starts_with(NOTHING) {
        return true;
    }
    let items = lines[place + 1..].iter().skip_while(|line| line.trim().is_empty());
    let mut items = items.map_while(|line| line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")));
    items.any(|item| !item.starts_with(PASSED))
}

#[cfg(test)]
mod tests {
    use coding_agent::markdown::owned;

    use super::*;

    /// Returns the text of a pull request as the program puts it together.
    fn pull(summary: &str, result: &str) -> String {
        let stamp = owned::Stamp {
            is_draft: false,
            is_discreet: false,
            title: owned::title_id("Mend it"),
        };
        format!("{}\n\n{}", owned::summary(summary), owned::result(result, stamp))
    }

    const PASSES: &str = "**How it was verified**\n\n- ✅ `python3 -m unittest` passed\n\nCloses #1";

    #[test]
    fn what_was_not_checked_is_a_doubt() {
        for result in [
            "Nothing was checked: there was no plan, and the project names no command for it; name one in `planning.verification.test_command`.\n\nCloses #1",
            "**How it was verified**\n\n- ✅ `true` passed\n- ❌ `make test` ended with 2 instead of 0",
            "**How it was verified**\n\n- ⚠️ `make test` ended with 2, as it did before the change",
            "**Not finished**\n\n- the second part\n\n**How it was verified**\n\n- ✅ `true` passed",
            "**How it was verified**\n\n- ✅ `true` passed\n\nThe task was begun 2 times, each time from its base; this is the result of the last, the first that passes: its checks have chosen it, so look at what they do not test.",
            "**How it was verified**\n\n- ✅ `true` passed\n\n**What no test mentions**\n\nLook:\n\n- none should be 0 (`0`)",
        ] {
            assert!(in_a_pull_request(&pull("Mended.", result)), "{result}");
        }
        let comment =
            "☑️ Nothing was changed\n\nThe model says:\n\nAll is well.\n\nNothing was checked: nothing was changed.";
        assert!(in_a_comment(comment));
    }

    #[test]
    fn the_models_own_words_are_none() {
        for summary in [
            "The test failed because of the last line, fixed. It could not be simpler.",
            "Nothing was checked: I was in a hurry.",
            "**How it was verified**\n\n- ❌ `make test`",
            "**Not finished**",
            "**What no test mentions**\n\n- nothing",
        ] {
            assert!(!in_a_pull_request(&pull(summary, PASSES)), "{summary}");
            assert!(!in_a_comment(&format!("✅ Done\n\n{summary}\n\n{PASSES}")), "{summary}");
        }
        assert!(!in_a_pull_request("Nothing was checked: by hand."));
        assert!(!in_a_comment(""));
    }
}
