//! The tasks: a small repository with an issue, a test that fails for all to see, hidden tests, and
//! a mend that makes them pass. They ship as text archives in `tasks/LANGUAGE`, in three grades: a
//! fault in one line; one that has to be understood; work in several files.

use std::path::Path;

use anyhow::Context;
use coding_agent_harness::archive::Archive;

const TASKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/solve_rate/tasks");

#[derive(Debug, Clone)]
pub struct Task {
    /// Such as `python/leap_year`.
    pub name: String,
    pub language: Language,
    pub grade: u8,
    pub title: String,
    pub body: String,
    pub files: Files,
    /// Files that are laid over the result, and the command that runs them.
    pub hidden: Files,
    /// Files that mend it: the proof that it can be solved.
    pub mend: Files,
}

/// Paths and contents, byte for byte.
pub type Files = Vec<(String, Vec<u8>)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    Python,
    JavaScript,
    Go,
    Java,
}

impl Language {
    pub const ALL: [Self; 4] = [Self::Python, Self::JavaScript, Self::Go, Self::Java];

    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::Go => "go",
            Self::Java => "java",
        }
    }

    /// Returns the name of the environment that has its tools.
    pub fn environment(self) -> &'static str {
        match self {
            Self::JavaScript => "node",
            other => other.name(),
        }
    }

    /// Returns the command that runs the tests that everybody sees.
    pub fn visible_command(self) -> &'static str {
        match self {
            Self::Python => "python3 -m unittest discover -q -s tests -t .",
            Self::JavaScript => "node --test",
            Self::Go => "go test ./...",
            Self::Java => "sh run-tests.sh Tests",
        }
    }

    pub fn hidden_command(self) -> &'static str {
        match self {
            Self::Python => "python3 -m unittest -q tests.test_hidden",
            Self::JavaScript => "node --test test/hidden.test.js",
            Self::Go => "go test -run Hidden ./...",
            Self::Java => "sh run-tests.sh HiddenTests",
        }
    }
}

impl Task {
    /// Returns the files as they are with others in their place, or beside them.
    pub fn with(&self, layers: &[&Files]) -> Files {
        let mut files = self.files.clone();
        for (path, content) in layers.iter().flat_map(|layer| layer.iter()) {
            match files.iter_mut().find(|(own, _)| own == path) {
                Some((_, own)) => own.clone_from(content),
                None => files.push((path.clone(), content.clone())),
            }
        }
        files
    }

    /// Returns the files that are no tests.
    pub fn sources(&self) -> impl Iterator<Item = &(String, Vec<u8>)> {
        let is_test = |path: &str| path.to_lowercase().contains("test") || path == "package.json" || path == "go.mod";
        self.files.iter().filter(move |(path, _)| !is_test(path))
    }

    /// Tells whether others wrote it: nobody has proven that its tests notice its fault.
    pub fn is_borrowed(&self) -> bool {
        !Language::ALL
            .iter()
            .any(|language| self.name.starts_with(language.name()))
    }

    fn read(language: Language, path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let archive = Archive::read(&text);
        let issue = archive.file("issue.md").context("it has no issue.md")?;
        let (title, body) = issue.split_once('\n').context("its issue has no body")?;
        let folder = |name: &str| {
            let files = archive.folder(name).into_iter();
            files
                .map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec()))
                .collect::<Files>()
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut files = folder("repository");
        match language {
            Language::Java => files.push(("run-tests.sh".to_owned(), JAVA_RUNNER.as_bytes().to_vec())),
            // Without it Python finds no tests in the folder.
            Language::Python => files.push(("tests/__init__.py".to_owned(), Vec::new())),
            Language::JavaScript | Language::Go => {}
        }
        Ok(Self {
            name: format!("{}/{stem}", language.name()),
            language,
            grade: archive
                .said("grade")
                .and_then(|grade| grade.parse().ok())
                .context("it has no grade")?,
            title: title.trim_start_matches("# ").to_owned(),
            body: body.trim().to_owned(),
            files,
            hidden: folder("hidden"),
            mend: folder("mend"),
        })
    }
}

/// Runs a class with a `main` that fails by an exception; there is no library for tests in the
/// image.
const JAVA_RUNNER: &str =
    "set -e\nout=$(mktemp -d)\njavac -encoding UTF-8 -d \"$out\" *.java\njava -cp \"$out\" \"${1:-Tests}\"\n";

/// Returns all tasks that ship, by name.
pub fn shipped() -> anyhow::Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for language in Language::ALL {
        let folder = Path::new(TASKS).join(language.name());
        let entries = std::fs::read_dir(&folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            tasks.push(Task::read(language, &path).with_context(|| format!("{} is no task", path.display()))?);
        }
    }
    tasks.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tasks)
}
