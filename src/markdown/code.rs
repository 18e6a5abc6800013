//! Spans and blocks of code that nothing inside of them can close.

/// Returns `text` on one line in a span of code that nothing in it can close.
pub fn code(text: &str) -> String {
    // Several spaces may be part of a command.
    let line = text.trim().replace(char::is_whitespace, " ");
    let fence = "`".repeat(longest_run(&line) + 1);
    // A space is taken off by Markdown; without it the signs would join.
    let pad = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{line}{pad}{fence}")
}

/// Returns `text` in a code block that nothing in it can close.
pub fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|character| character != '`');
    runs.map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_block_cannot_be_closed_from_inside() {
        assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
        assert_eq!(code("a ``b``\nc"), "```a ``b`` c```");
        assert_eq!(code("`a`"), "`` `a` ``");
    }
}
