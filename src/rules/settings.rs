//! The file `.coding-agent-rules.yaml` or `.coding-agent-rules.md`.
//!
//! It comes from people who may write to the base branch, and still from outside: its size and its
//! number of patterns are bounded here, its depth and the expansion of its aliases by the library.
//! The Markdown form is a text for the model, which may begin with YAML between two lines `---`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Environment, Files, Tools};

/// Names of the file; the first that exists counts.
const NAMES: [&str; 3] = [".coding-agent-rules.yaml", ".coding-agent-rules.yml", MARKDOWN];
const MARKDOWN: &str = ".coding-agent-rules.md";
const MOST_BYTES: usize = 64 * 1024;
const MOST_PATTERNS: usize = 200;
const LONGEST_PATTERN: usize = 300;
const LONGEST_COMMAND: usize = 1_000;
const KEYS: [&str; 5] = [
    "system_prompt_extension",
    "allowed_tools",
    "denied_tools",
    "file_patterns",
    "environment",
];
const PATTERN_KEYS: [&str; 2] = ["include", "exclude"];
const ENVIRONMENT_KEYS: [&str; 3] = ["name", "image", "setup_commands"];

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    pub extension: String,
    pub tools: Tools,
    pub files: Files,
    pub environment: Environment,
    /// Unknown keys, as the file writes them.
    pub unknown: Vec<String>,
}

/// The reason why the file cannot be used: a sentence with file, line and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

#[derive(Deserialize, Default)]
#[serde(default, expecting = "a section of keys")]
struct Written {
    system_prompt_extension: Option<String>,
    allowed_tools: Option<Vec<String>>,
    denied_tools: Option<Vec<String>>,
    file_patterns: Option<Patterns>,
    environment: Option<OwnEnvironment>,
}

#[derive(Deserialize, Default)]
#[serde(default, expecting = "a section with the keys name, image and setup_commands")]
struct OwnEnvironment {
    name: Option<String>,
    image: Option<String>,
    setup_commands: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, expecting = "a section with the lists include and exclude")]
struct Patterns {
    include: Option<Vec<String>>,
    exclude: Option<Vec<String>>,
}

/// The keys of a section, whatever their values are.
type Keys = BTreeMap<String, Option<IgnoredAny>>;

/// The file again, read only for the keys of its sections.
#[derive(Deserialize, Default)]
#[serde(default)]
struct SectionKeys {
    file_patterns: Option<Keys>,
    environment: Option<Keys>,
}

impl Settings {
    /// Returns the names the file may have; the first that exists counts.
    pub fn names() -> [&'static str; 3] {
        NAMES
    }

    /// Parses the file with this name.
    pub fn read(name: &str, text: &str) -> Result<Self, Malformed> {
        if text.len() > MOST_BYTES {
            return Err(Malformed(format!(
                "{name} has {} bytes and may have {MOST_BYTES}; shorten it",
                text.len()
            )));
        }
        // Windows' line ends, and the byte order mark that some editors put first.
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        if name != MARKDOWN {
            return from_yaml(name, &text, 0);
        }
        let Some(rest) = text.strip_prefix("---\n") else {
            return Ok(Self {
                extension: text.trim().to_owned(),
                ..Self::default()
            });
        };
        let Some((front, body)) = rest
            .split_once("\n---\n")
            .or_else(|| Some((rest.strip_suffix("\n---")?, "")))
        else {
            return Err(Malformed(format!(
                "{name}, line 1: `---` begins settings that no second line `---` ends; add that line below the settings"
            )));
        };
        let mut settings = from_yaml(name, front, 1)?;
        for part in [body.trim()].into_iter().filter(|body| !body.is_empty()) {
            if !settings.extension.is_empty() {
                settings.extension.push_str("\n\n");
            }
            settings.extension.push_str(part);
        }
        Ok(settings)
    }
}

/// Reads YAML that begins after line `offset` of the file.
fn from_yaml(name: &str, text: &str, offset: usize) -> Result<Settings, Malformed> {
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_empty) {
        return Ok(Settings::default());
    }
    let wrong = |error: &serde_yaml::Error| {
        let line = error
            .location()
            .map(|place| format!(", line {}", place.line() + offset));
        // The library's message ends with a location as well, counted from another line.
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        Malformed(format!(
            "{name}{}: {said}; it takes the keys {} (a text, two lists, and two sections)",
            line.unwrap_or_default(),
            KEYS.join(", ")
        ))
    };
    let written: Written = serde_yaml::from_str(text).map_err(|error| wrong(&error))?;
    let keys: Keys = serde_yaml::from_str(text).map_err(|error| wrong(&error))?;
    let section_keys: SectionKeys = serde_yaml::from_str(text).unwrap_or_default();
    let unknown = keys.into_keys().filter(|key| !KEYS.contains(&key.as_str()));
    let unknown_in = |section: &'static str, keys: Option<Keys>, known: &'static [&'static str]| {
        let unknown = keys.unwrap_or_default().into_keys();
        let unknown = unknown.filter(|key| !known.contains(&key.as_str()));
        unknown.map(move |key| format!("{section}.{key}"))
    };
    let unknown_patterns = unknown_in("file_patterns", section_keys.file_patterns, &PATTERN_KEYS);
    let unknown_environment = unknown_in("environment", section_keys.environment, &ENVIRONMENT_KEYS);
    let patterns = written.file_patterns.unwrap_or_default();
    let list = |key: &str, list: &Option<Vec<String>>| checked(name, key, list.as_deref().unwrap_or_default());
    Ok(Settings {
        extension: written.system_prompt_extension.unwrap_or_default().trim().to_owned(),
        tools: Tools {
            source: name.to_owned(),
            allowed: list("allowed_tools", &written.allowed_tools)?,
            denied: list("denied_tools", &written.denied_tools)?,
        },
        files: Files {
            source: name.to_owned(),
            include: list("file_patterns.include", &patterns.include)?,
            exclude: list("file_patterns.exclude", &patterns.exclude)?,
        },
        environment: environment_of(name, written.environment.unwrap_or_default())?,
        unknown: unknown.chain(unknown_patterns).chain(unknown_environment).collect(),
    })
}

fn environment_of(source: &str, written: OwnEnvironment) -> Result<Environment, Malformed> {
    let given = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let commands = written.setup_commands.unwrap_or_default();
    if commands.len() > MOST_PATTERNS || commands.iter().any(|command| command.len() > LONGEST_COMMAND) {
        return Err(Malformed(format!(
            "{source}: environment.setup_commands may have {MOST_PATTERNS} commands of {LONGEST_COMMAND} bytes; put long ones into a script"
        )));
    }
    Ok(Environment {
        source: source.to_owned(),
        name: given(written.name),
        image: given(written.image),
        setup_commands: commands
            .into_iter()
            .filter(|command| !command.trim().is_empty())
            .collect(),
    })
}

fn checked(name: &str, key: &str, list: &[String]) -> Result<Vec<String>, Malformed> {
    if list.len() > MOST_PATTERNS {
        return Err(Malformed(format!(
            "{name}: {key} has {} entries and may have {MOST_PATTERNS}; join some with `*`",
            list.len()
        )));
    }
    if let Some(long) = list.iter().find(|entry| entry.len() > LONGEST_PATTERN) {
        let begin: String = long.chars().take(40).collect();
        return Err(Malformed(format!(
            "{name}: the entry `{begin}…` of {key} is longer than {LONGEST_PATTERN} bytes; shorten it"
        )));
    }
    let trimmed = list.iter().map(|entry| entry.trim().to_owned());
    Ok(trimmed.filter(|entry| !entry.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write as _;

    const YAML: &str = ".coding-agent-rules.yaml";

    fn texts(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|&pattern| pattern.to_owned()).collect()
    }

    #[test]
    fn the_document_shows_a_file_that_is_read() {
        let document = include_str!("../../docs/project-rules.md");
        let shown = document.split("```yaml\n").nth(1).unwrap();
        let (file, _) = shown.split_once("```").unwrap();
        let settings = Settings::read(YAML, file).unwrap();
        assert!(settings.extension.starts_with("Write British English."));
    }

    #[test]
    fn the_whole_file_is_read() {
        let text = "system_prompt_extension: |\n  Write British English.\nallowed_tools: [workspace/*]\ndenied_tools:\n  - docs/write\n\
             file_patterns:\n  include: [src/**]\n  exclude: ['*.pem']\n";
        let expected = Settings {
            extension: "Write British English.".to_owned(),
            tools: Tools {
                source: YAML.to_owned(),
                allowed: texts(&["workspace/*"]),
                denied: texts(&["docs/write"]),
            },
            files: Files {
                source: YAML.to_owned(),
                include: texts(&["src/**"]),
                exclude: texts(&["*.pem"]),
            },
            environment: Environment {
                source: YAML.to_owned(),
                ..Environment::default()
            },
            unknown: Vec::new(),
        };
        assert_eq!(Settings::read(YAML, text), Ok(expected));
        assert_eq!(Settings::read(YAML, "# nothing yet\n"), Ok(Settings::default()));
    }

    #[test]
    fn markdown_is_a_text_with_or_without_a_head() {
        let plain = Settings::read(MARKDOWN, "# Style\nBe brief.\n").unwrap();
        assert_eq!(plain.extension, "# Style\nBe brief.");
        let text = "---\r\ndenied_tools: [docs/write]\r\n---\r\nBe brief.\r\n";
        let headed = Settings::read(MARKDOWN, text).unwrap();
        assert_eq!(
            (headed.extension.as_str(), headed.tools.denied),
            ("Be brief.", texts(&["docs/write"]))
        );
    }

    #[test]
    fn an_unknown_key_is_named_and_the_rest_counts() {
        let text = "denied_tool: [a/b]\ndenied_tools: [c/d]\nfile_patterns: {exclude: [x], excludes: [y]}\n";
        let settings = Settings::read(YAML, text).unwrap();
        assert_eq!(settings.unknown, texts(&["denied_tool", "file_patterns.excludes"]));
        assert_eq!(settings.tools.denied, texts(&["c/d"]));
    }

    #[test]
    fn what_is_malformed_is_named_with_its_line() {
        let fault = |name: &str, text: &str| Settings::read(name, text).unwrap_err().to_string();
        let faults = [
            fault(YAML, "denied_tools:\n  - a/b\nallowed_tools: workspace/*\n"),
            fault(YAML, "system_prompt_extension: \"open\nallowed_tools: []\n"),
            fault(YAML, "- one\n- two\n"),
            fault(MARKDOWN, "---\nallowed_tools:\n  - ok\ndenied_tools: 7\n---\nText"),
            fault(MARKDOWN, "---\nallowed_tools: []\n"),
            fault(YAML, "denied_tools:\n  - *.secret\n"),
            fault(YAML, &format!("a: {}\n", "[".repeat(1_000))),
            fault(YAML, &"x".repeat(70_000)),
        ];
        insta::assert_snapshot!(faults.join("\n"), @r#"
        .coding-agent-rules.yaml, line 3: allowed_tools: invalid type: string "workspace/*", expected a sequence; it takes the keys system_prompt_extension, allowed_tools, denied_tools, file_patterns, environment (a text, two lists, and two sections)
        .coding-agent-rules.yaml, line 3: found unexpected end of stream; it takes the keys system_prompt_extension, allowed_tools, denied_tools, file_patterns, environment (a text, two lists, and two sections)
        .coding-agent-rules.yaml, line 1: invalid type: sequence, expected a section of keys; it takes the keys system_prompt_extension, allowed_tools, denied_tools, file_patterns, environment (a text, two lists, and two sections)
        .coding-agent-rules.md, line 4: denied_tools: invalid type: integer `7`, expected a sequence; it takes the keys system_prompt_extension, allowed_tools, denied_tools, file_patterns, environment (a text, two lists, and two sections)
        .coding-agent-rules.md, line 1: `---` begins settings that no second line `---` ends; add that line below the settings
        .coding-agent-rules.yaml, line 2: did not find expected alphabetic or numeric character; it takes the keys system_prompt_extension, allowed_tools, denied_tools, file_patterns, environment (a text, two lists, and two sections)
        .coding-agent-rules.yaml, line 2: did not find expected node content; it takes the keys system_prompt_extension, allowed_tools, denied_tools, file_patterns, environment (a text, two lists, and two sections)
        .coding-agent-rules.yaml has 70000 bytes and may have 65536; shorten it
        "#);
    }

    #[test]
    fn a_few_aliases_cannot_become_a_great_many_values() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            let _ = writeln!(text, "a{level}: &a{level} [{}]", [before.as_str(); 9].join(", "));
        }
        // Unknown keys are skipped with their values, and no list accepts a nested one.
        assert_eq!(Settings::read(YAML, &text).unwrap().unknown.len(), 12);
        text.push_str("denied_tools: [*a11]\n");
        let fault = Settings::read(YAML, &text).unwrap_err().to_string();
        assert!(fault.contains("expected a string"), "{fault}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_fall_over(text in "[-a-z:&*\\[\\]{}!|>\"'# \n]{0,300}") {
            let _ = Settings::read(YAML, &text);
            let _ = Settings::read(MARKDOWN, &text);
        }
    }
}
