//! Writes code spans and code blocks that no text inside can close.

/// Languages that are kept as a code block's info string.
const LANGUAGES: [&str; 63] = [
    "bash",
    "bat",
    "c",
    "clojure",
    "cmake",
    "cpp",
    "cs",
    "csharp",
    "css",
    "csv",
    "dart",
    "diff",
    "docker",
    "dockerfile",
    "elixir",
    "erlang",
    "go",
    "graphql",
    "groovy",
    "haskell",
    "hcl",
    "html",
    "http",
    "ini",
    "java",
    "javascript",
    "js",
    "json",
    "jsx",
    "julia",
    "kotlin",
    "less",
    "lua",
    "make",
    "makefile",
    "nginx",
    "patch",
    "perl",
    "php",
    "powershell",
    "proto",
    "py",
    "python",
    "r",
    "rb",
    "rs",
    "ruby",
    "rust",
    "scala",
    "scss",
    "sh",
    "shell",
    "sql",
    "swift",
    "text",
    "toml",
    "ts",
    "tsx",
    "txt",
    "typescript",
    "xml",
    "yaml",
    "yml",
];

/// Returns `text` on one line in a code span that it cannot close.
pub fn code(text: &str) -> String {
    // Runs of spaces stay: they may be part of a command.
    let line = text.trim().replace(char::is_whitespace, " ");
    let fence = "`".repeat(longest_run(&line) + 1);
    // Markdown strips one space; without it the backticks would join the fence.
    let pad = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{line}{pad}{fence}")
}

/// Returns `text` in a code block that it cannot close.
pub fn fenced(text: &str) -> String {
    fenced_as("", text)
}

/// Returns `text` in a code block with `language`, if that is only highlighted. Forges render other
/// languages, as diagrams, maps or formulas.
pub fn fenced_as(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let language = language
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let language = LANGUAGES.iter().find(|known| **known == language).unwrap_or(&"");
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
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
