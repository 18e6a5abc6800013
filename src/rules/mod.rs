//! Rules of a project for whoever works on it: texts for the model, and restrictions that the
//! program itself enforces.
//!
//! The rules are always those of the base branch, so only people who may write there make them.
//! This module does not fetch them; it reads them, bounds them, and decides on tools and files.

mod pattern;
mod protection;
mod settings;

use serde::{Deserialize, Serialize};

use pattern::{Patterns, TooLarge};

pub use protection::Protection;
pub use settings::{Malformed, Settings};

/// The program's own servers besides the workspace. They need not be allowed, because looking and
/// asking are no part of the work; they can be denied.
const OWN_SERVERS: [&str; 2] = ["repository/", "agent/"];

/// The rules of one project.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// The texts, the most important first.
    pub texts: Vec<Text>,
    pub tools: Tools,
    pub files: Files,
    pub environment: Environment,
}

/// The environment that a project wants for itself. The configuration decides what of it counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The file that sets these.
    pub source: String,
    /// The name of a configured environment.
    pub name: Option<String>,
    pub image: Option<String>,
    /// Commands that set the project up, before those of the plan.
    pub setup_commands: Vec<String>,
}

/// A text for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The file that holds it.
    pub path: String,
    pub text: String,
}

/// The tools that may be used. Names are `server/tool`, with `*` for any number of characters; a
/// denied tool is denied even if it is allowed as well.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tools {
    /// The file that sets these.
    pub source: String,
    /// Allowed tools; empty for all.
    pub allowed: Vec<String>,
    pub denied: Vec<String>,
}

/// The files that the work may touch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Files {
    /// The file that sets these.
    pub source: String,
    /// Files of the work; empty for all.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
}

impl Text {
    /// Returns the folder that the text applies to; empty for the whole project.
    pub fn folder(&self) -> &str {
        match self.path.rsplit_once('/') {
            Some((folder, name)) if is_nested_rule(name) => folder,
            _ => "",
        }
    }
}

impl Environment {
    /// Tells whether one of `patterns`, in which `*` is any number of characters, allows `image`.
    pub fn allows(patterns: &[String], image: &str) -> bool {
        patterns.iter().any(|pattern| pattern::fits_name(pattern, image))
    }
}

/// Tells whether a file of this name is a rule for the folder that contains it.
pub fn is_nested_rule(name: &str) -> bool {
    name == "AGENTS.md"
}

impl Rules {
    /// Adds what the default branch's rules deny or leave out to the rules of another branch, which
    /// may be an old one from before they were written.
    pub fn restrict_by(&mut self, default: &Self) {
        if !default.tools.denied.is_empty() {
            add_source(&mut self.tools.source, &default.tools.source);
            add(&mut self.tools.denied, &default.tools.denied);
        }
        if !default.files.exclude.is_empty() {
            add_source(&mut self.files.source, &default.files.source);
            add(&mut self.files.exclude, &default.files.exclude);
        }
        if self.files.include.is_empty() && !default.files.include.is_empty() {
            add_source(&mut self.files.source, &default.files.source);
            self.files.include.clone_from(&default.files.include);
        }
    }
}

fn add(own: &mut Vec<String>, others: &[String]) {
    for other in others {
        if !own.contains(other) {
            own.push(other.clone());
        }
    }
}

fn add_source(own: &mut String, other: &str) {
    if own.is_empty() {
        other.clone_into(own);
    } else if own != other {
        *own = format!("{own} and {other}");
    }
}

impl Tools {
    /// Returns why the tool `server/tool` may not be used, as a sentence for the model.
    pub fn refusal(&self, tool: &str) -> Option<String> {
        let fits = |pattern: &&String| pattern::fits_name(pattern, tool);
        if let Some(pattern) = self.denied.iter().find(fits) {
            return Some(format!(
                "the project's rules deny {tool}: denied_tools in {} names `{pattern}`; do without it",
                self.source
            ));
        }
        let is_own = OWN_SERVERS.iter().any(|server| tool.starts_with(server));
        if is_own || self.allowed.is_empty() || self.allowed.iter().any(|pattern| fits(&pattern)) {
            return None;
        }
        Some(format!(
            "the project's rules do not allow {tool}: allowed_tools in {} names only `{}`; do without it",
            self.source,
            self.allowed.join("`, `")
        ))
    }
}

impl Files {
    /// Tells whether any file is left out.
    pub fn leave_something_out(&self) -> bool {
        !(self.include.is_empty() && self.exclude.is_empty())
    }

    /// Returns a filter for paths, to be made once for many of them.
    pub fn filter(&self) -> Filter {
        let patterns = match (Patterns::new(&self.include), Patterns::new(&self.exclude)) {
            (Ok(include), Ok(exclude)) => Some((include, exclude)),
            (Err(TooLarge), _) | (_, Err(TooLarge)) => None,
        };
        Filter { patterns }
    }

    /// Returns the rule in one sentence for the model; empty if there is none.
    pub fn sentence(&self) -> String {
        let list = |patterns: &[String]| format!("`{}`", patterns.join("`, `"));
        match (self.include.as_slice(), self.exclude.as_slice()) {
            ([], []) => String::new(),
            (include, []) => format!("Only files that fit {} may be read or changed.", list(include)),
            ([], exclude) => format!("Files that fit {} must not be read or changed.", list(exclude)),
            (include, exclude) => format!(
                "Only files that fit {} may be read or changed, and of these none that fits {}.",
                list(include),
                list(exclude)
            ),
        }
    }

    /// Returns why a file is left out, as the end of a sentence that begins with its path.
    pub fn reason(&self) -> String {
        format!("is left out by file_patterns in {}", self.source)
    }
}

/// Decides which paths belong to the work.
#[derive(Debug)]
pub struct Filter {
    /// Included and excluded; `None` if they are too large to be looked up, and no path is
    /// accepted.
    patterns: Option<(Patterns, Patterns)>,
}

impl Filter {
    /// Tells whether the file at `path`, below the project's root, belongs to the work.
    pub fn takes(&self, path: &str) -> bool {
        self.patterns.as_ref().is_some_and(|(include, exclude)| {
            let is_included = include.is_empty() || include.fit(path);
            is_included && !exclude.fit(path)
        })
    }

    /// Tells whether something below the folder at `path` may belong to the work.
    pub fn takes_folder(&self, path: &str) -> bool {
        self.patterns.as_ref().is_some_and(|(_, exclude)| {
            // No file has such a name, so only a pattern for everything below the folder fits it.
            !exclude.fit(path) && !exclude.fit(&format!("{path}/\u{1}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|&pattern| pattern.to_owned()).collect()
    }

    #[test]
    fn what_is_denied_is_denied_even_where_it_is_allowed() {
        let tools = Tools {
            source: ".coding-agent-rules.yaml".to_owned(),
            allowed: texts(&["workspace/*", "docs/search"]),
            denied: texts(&["*/undo_*"]),
        };
        assert_eq!(tools.refusal("workspace/read_file"), None);
        assert_eq!(
            tools.refusal("workspace/undo_edit").as_deref(),
            Some(
                "the project's rules deny workspace/undo_edit: denied_tools in .coding-agent-rules.yaml names `*/undo_*`; do \
                 without it"
            )
        );
        assert_eq!(
            tools.refusal("docs/write").as_deref(),
            Some(
                "the project's rules do not allow docs/write: allowed_tools in .coding-agent-rules.yaml names only \
                 `workspace/*`, `docs/search`; do without it"
            )
        );
        assert_eq!(tools.refusal("repository/search"), None);
        assert_eq!(Tools::default().refusal("any/thing"), None);
    }

    #[test]
    fn what_the_default_branch_forbids_holds_on_an_old_branch_too() {
        let rules = |denied: &[&str], include: &[&str], exclude: &[&str]| Rules {
            tools: Tools {
                source: ".coding-agent-rules.yaml".to_owned(),
                denied: texts(denied),
                ..Tools::default()
            },
            files: Files {
                source: ".coding-agent-rules.yaml".to_owned(),
                include: texts(include),
                exclude: texts(exclude),
            },
            ..Rules::default()
        };
        let mut old = Rules::default();
        let default = rules(&["docs/*"], &["src"], &["*.pem"]);
        old.restrict_by(&default);
        assert_eq!(old, default);
        let mut other = rules(&["docs/*", "a/b"], &["lib"], &["*.key"]);
        other.restrict_by(&default);
        assert_eq!(other, rules(&["docs/*", "a/b"], &["lib"], &["*.key", "*.pem"]));
    }

    #[test]
    fn a_file_belongs_to_the_work_if_it_is_included_and_not_excluded() {
        let files = Files {
            include: texts(&["src", "*.md"]),
            exclude: texts(&["src/vendor/**", "*.pem"]),
            ..Files::default()
        };
        let filter = files.filter();
        for (path, expected) in [
            ("src/main.rs", true),
            ("docs/guide.md", true),
            ("Cargo.toml", false),
            ("src/vendor/a.rs", false),
            ("src/key.pem", false),
        ] {
            assert_eq!(filter.takes(path), expected, "{path}");
        }
        assert!(filter.takes_folder("src") && !filter.takes_folder("src/vendor"));
        assert!(Files::default().filter().takes("any/thing"));
    }

    #[test]
    fn as_many_and_as_long_patterns_as_there_may_be_are_kept_to() {
        let long = |number: usize| format!("{}{number}", "?".repeat(100));
        let mut exclude: Vec<String> = (100..299).map(long).collect();
        exclude.push("*.pem".to_owned());
        let files = Files {
            exclude,
            ..Files::default()
        };
        let filter = files.filter();
        assert!(filter.patterns.is_some());
        assert!(!filter.takes("a/key.pem") && filter.takes("a/key.txt"));
    }

    #[test]
    fn a_nested_text_is_for_its_folder() {
        let text = |path: &str| Text {
            path: path.to_owned(),
            text: String::new(),
        };
        assert_eq!(text("AGENTS.md").folder(), "");
        assert_eq!(text("web/app/AGENTS.md").folder(), "web/app");
        assert_eq!(text(".github/copilot-instructions.md").folder(), "");
    }
}
