//! Name of the branch that receives the result.

use crate::task::id::TaskId;

/// Returns `coding-agent/<number>-<slug>`.
pub(crate) fn branch_name(task: &TaskId, title: &str) -> String {
    let mut slug = String::new();
    for character in title.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= 40 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    let number = task
        .number()
        .map_or_else(|| "local".to_owned(), |number| number.to_string());
    // A title without Latin letters or digits gives no slug; the number alone is the name then.
    if slug.is_empty() {
        format!("coding-agent/{number}")
    } else {
        format!("coding-agent/{number}-{slug}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_after_number_and_title() {
        let task: TaskId = "github:acme/widgets#12".parse().unwrap();
        let check = |title: &str, expected: &str| assert_eq!(branch_name(&task, title), expected);
        check("Greet the reader!", "coding-agent/12-greet-the-reader");
        check("  --upload-pack=evil ../../x", "coding-agent/12-upload-pack-evil-x");
        check("日本語の題名", "coding-agent/12");
        check(
            &"long ".repeat(30),
            "coding-agent/12-long-long-long-long-long-long-long-long",
        );
    }
}
