//! The language of a file. Only its name decides: a stranger's first line must not choose the
//! parser.

use tree_sitter::Language as Grammar;

/// The languages whose files have more than lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Java,
    Go,
    Rust,
    C,
    Cpp,
    Ruby,
    Markdown,
    /// YAML, TOML, JSON and files of sections with keys.
    Configuration,
    Other,
}

impl Language {
    /// Returns the language of a file by its path.
    pub fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_ascii_lowercase().as_str() {
            "py" | "pyi" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "java" => Self::Java,
            "go" => Self::Go,
            "rs" => Self::Rust,
            "c" => Self::C,
            "h" | "cc" | "cpp" | "cxx" | "hpp" | "hh" | "hxx" => Self::Cpp,
            "rb" => Self::Ruby,
            "md" | "markdown" => Self::Markdown,
            "yaml" | "yml" | "toml" | "json" | "ini" | "cfg" | "properties" => Self::Configuration,
            _ => Self::Other,
        }
    }

    /// Returns the number by which it is kept.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// True for a language of programs.
    pub fn is_code(self) -> bool {
        self.grammar().is_some()
    }

    pub(super) fn grammar(self) -> Option<Grammar> {
        let grammar = match self {
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::JavaScript => tree_sitter_javascript::LANGUAGE,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
            Self::Java => tree_sitter_java::LANGUAGE,
            Self::Go => tree_sitter_go::LANGUAGE,
            Self::Rust => tree_sitter_rust::LANGUAGE,
            Self::C => tree_sitter_c::LANGUAGE,
            Self::Cpp => tree_sitter_cpp::LANGUAGE,
            Self::Ruby => tree_sitter_ruby::LANGUAGE,
            Self::Markdown | Self::Configuration | Self::Other => return None,
        };
        Some(grammar.into())
    }
}
