//! What the set-up of a project depends on, so that it need not be done again while that is the same.
//!
//! Commands that only install what is named in lists of dependencies depend on those lists; of any other command nobody knows what it
//! reads, so it depends on every file. A list of what is read by which tool would be shorter runs for more projects, and wrong for some.

use uuid::Uuid;

use crate::repository::CommitId;
use crate::repository::read::Entry;

/// Files that name dependencies or how they are installed, wherever they lie.
const LISTS: [&str; 48] = [
    ".node-version",
    ".npmrc",
    ".nvmrc",
    ".python-version",
    ".ruby-version",
    ".tool-versions",
    ".yarnrc.yml",
    "Cargo.lock",
    "Cargo.toml",
    "Gemfile",
    "Gemfile.lock",
    "Pipfile",
    "Pipfile.lock",
    "build.gradle",
    "build.gradle.kts",
    "bun.lock",
    "bun.lockb",
    "composer.json",
    "composer.lock",
    "conda-lock.yml",
    "environment.yaml",
    "environment.yml",
    "go.mod",
    "go.sum",
    "go.work",
    "go.work.sum",
    "gradle-wrapper.properties",
    "gradle.lockfile",
    "gradle.properties",
    "libs.versions.toml",
    "maven-wrapper.properties",
    "mix.exs",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "package.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "poetry.lock",
    "pom.xml",
    "pyproject.toml",
    "settings.gradle",
    "settings.gradle.kts",
    "setup.cfg",
    "setup.py",
    "uv.lock",
    "yarn.lock",
];

/// How commands begin that install what such files name. What follows may be options and names of packages or of such files.
const INSTALLING: [&str; 30] = [
    "bundle install",
    "cargo fetch",
    "composer install",
    "conda env update",
    "conda install",
    "go get",
    "go mod download",
    "gradle dependencies",
    "./gradlew dependencies",
    "mamba env update",
    "mamba install",
    "mvn -B dependency:",
    "mvn dependency:",
    "mvn -q dependency:",
    "./mvnw dependency:",
    "npm ci",
    "npm i",
    "npm install",
    "pdm install",
    "pip install",
    "pip3 install",
    "pipenv install",
    "pipenv sync",
    "pnpm i",
    "pnpm install",
    "poetry install",
    "python -m pip install",
    "python3 -m pip install",
    "uv sync",
    "yarn install",
];

/// What a project's set-up depends on besides its commands.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Dependencies {
    /// Of which repository.
    repository: String,
    /// A digest of the lists.
    lists: Uuid,
    /// All of its files.
    tree: CommitId,
}

impl Dependencies {
    pub fn of(repository: &str, files: &[Entry], tree: CommitId) -> Self {
        let lists = files.iter().filter(|file| is_list(&file.path));
        let lists: Vec<_> = lists.map(|file| (&file.path, &file.object)).collect();
        Self {
            repository: repository.to_owned(),
            lists: digest(&serde_json::json!(lists).to_string()),
            tree,
        }
    }

    /// Returns a name for what all set-ups of these dependencies have in common.
    pub fn place(&self) -> String {
        digest(&format!("{}\n{}", self.repository, self.lists)).to_string()
    }

    /// Returns a name for a set-up by `commands`: the same name, the same result. `None` where nothing is set up.
    pub fn set_up_by(&self, commands: &[String]) -> Option<String> {
        let commands: Vec<&str> = commands.iter().map(|command| command.trim()).collect();
        if commands.iter().all(|command| command.is_empty()) {
            return None;
        }
        let is_bound_to_lists = commands.iter().all(|command| installs(command));
        let tree = (!is_bound_to_lists).then_some(&self.tree);
        let named = serde_json::json!([self.place(), tree, commands]);
        Some(digest(&named.to_string()).to_string())
    }
}

fn digest(text: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
}

fn is_list(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    // requirements.txt, dev-requirements.in, requirements/test.txt
    LISTS.contains(&name) || path.contains("requirements")
}

/// Tells whether a command does nothing but install what lists or it itself name.
fn installs(command: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || " -_./:=@~^+,[]<>!'\"".contains(character);
    let redirects = command
        .split_whitespace()
        .any(|word| word.starts_with(['<', '>']) || word.starts_with("2>"));
    command.split("&&").map(str::trim).all(|step| {
        let begins = |prefix: &&str| {
            step.strip_prefix(*prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ') || prefix.ends_with(':'))
        };
        step.is_empty() || (!redirects && step.chars().all(is_plain) && INSTALLING.iter().any(begins) && !copies(step))
    })
}

/// Tells whether the project's own code is copied to where it is installed. Installed in place (`-e`), it is the project's files that run.
fn copies(step: &str) -> bool {
    let words: Vec<&str> = step.split_whitespace().collect();
    let is_folder = |word: &str| {
        let word = word.trim_matches(['"', '\'']);
        let path = word.split('[').next().unwrap_or(word);
        path == "." || path.starts_with("./") || path.starts_with('/') || path.starts_with("..")
    };
    let of_file = [
        "-r",
        "--requirement",
        "-c",
        "--constraint",
        "-f",
        "--file",
        "-e",
        "--editable",
    ];
    (1..words.len()).any(|at| is_folder(words[at]) && !of_file.contains(&words[at - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(digit: char) -> CommitId {
        String::from(digit).repeat(40).parse().unwrap()
    }

    fn file(path: &str, object: &str) -> Entry {
        Entry {
            path: path.to_owned(),
            object: object.to_owned(),
            size: 1,
            is_link: false,
        }
    }

    fn set_up(files: &[Entry], digit: char, command: &str) -> Option<String> {
        Dependencies::of("github:acme/widgets", files, tree(digit)).set_up_by(&[command.to_owned()])
    }

    #[test]
    fn what_only_installs_depends_on_the_lists() {
        let before = [file("requirements-dev.txt", "1"), file("a.py", "2")];
        let after = [file("requirements-dev.txt", "1"), file("a.py", "3")];
        let newer = [file("requirements-dev.txt", "4"), file("a.py", "2")];
        for command in [
            "pip install -r requirements-dev.txt",
            "pip install -e '.[test]' \"django>=4,<5\"",
            "npm ci && npm install --save-dev vitest@^1",
            "mvn dependency:resolve",
            "python -m pip install -r ./requirements-dev.txt",
        ] {
            assert!(installs(command), "{command}");
            assert_eq!(set_up(&before, 'a', command), set_up(&after, 'b', command), "{command}");
            assert_ne!(set_up(&before, 'a', command), set_up(&newer, 'a', command), "{command}");
        }
    }

    #[test]
    fn of_anything_else_nobody_knows() {
        for command in [
            "make deps",
            "pip install .",
            "pip install ./packages/core",
            "npm ci; npm run build",
            "npm ci && npm run build",
            "pip install -r requirements.txt | tee log",
            "pip install $(cat list)",
            "pip install x > /dev/null",
            "pip install-x",
            "cd web && npm ci",
        ] {
            assert!(!installs(command), "{command}");
            assert_ne!(set_up(&[], 'a', command), set_up(&[], 'b', command), "{command}");
            assert_eq!(set_up(&[], 'a', command), set_up(&[], 'a', command), "{command}");
        }
    }

    #[test]
    fn where_nothing_is_set_up_there_is_no_name() {
        assert_eq!(set_up(&[], 'a', " "), None);
    }

    #[test]
    fn repositories_share_nothing() {
        let of = |repository: &str| Dependencies::of(repository, &[], tree('a')).set_up_by(&["npm ci".to_owned()]);
        assert_ne!(of("github:acme/widgets"), of("github:acme/gadgets"));
    }
}
