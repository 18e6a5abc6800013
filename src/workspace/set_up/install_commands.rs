//! Recognizes commands that only install listed dependencies, without running files of the project.
//!
//! The answer determines the key of a saved set-up, so a command counts only if all of its words
//! are known: its options are in a short list, and each other word is a package of an index or a
//! list whose content is in the key. A list of known dangers was tried before and missed most of
//! them: `npm ci` runs the project's scripts, `bundle install` evaluates its Gemfile, `./gradlew`
//! is a file of the project, `python -m pip` imports from the current folder, and `pip install .`
//! runs whatever builds the project.

use crate::workspace::set_up::dependency_files::{is_archive, is_list};

/// An install command, and the words that may follow it.
struct Installer {
    words: &'static [&'static str],
    /// Options without a value.
    options: &'static [&'static str],
    /// Options whose value is a list of dependencies, as the next word or after `=`.
    with_list: &'static [&'static str],
    /// Option without which the command runs files of the project.
    required: Option<&'static str>,
}

const PIP_OPTIONS: [&str; 13] = [
    "--disable-pip-version-check",
    "--no-cache-dir",
    "--no-deps",
    "--no-input",
    "--only-binary=:all:",
    "--pre",
    "--prefer-binary",
    "--quiet",
    "--require-hashes",
    "--upgrade",
    "--user",
    "-U",
    "-q",
];
const NPM_OPTIONS: [&str; 12] = [
    "--ignore-scripts",
    "--legacy-peer-deps",
    "--no-audit",
    "--no-fund",
    "--no-progress",
    "--no-save",
    "--prefer-offline",
    "--save",
    "--save-dev",
    "--silent",
    "-D",
    "-q",
];
const PIP_LISTS: [&str; 4] = ["--constraint", "--requirement", "-c", "-r"];

const INSTALLERS: [Installer; 8] = [
    pip(&["pip", "install"]),
    pip(&["pip3", "install"]),
    npm(&["npm", "ci"]),
    npm(&["npm", "i"]),
    npm(&["npm", "install"]),
    conda(&["conda", "install"]),
    conda(&["mamba", "install"]),
    Installer {
        words: &["go", "mod", "download"],
        options: &["-x"],
        with_list: &[],
        required: None,
    },
];

const fn pip(words: &'static [&'static str]) -> Installer {
    Installer {
        words,
        options: &PIP_OPTIONS,
        with_list: &PIP_LISTS,
        required: None,
    }
}

const fn npm(words: &'static [&'static str]) -> Installer {
    Installer {
        words,
        options: &NPM_OPTIONS,
        with_list: &[],
        required: Some("--ignore-scripts"),
    }
}

const fn conda(words: &'static [&'static str]) -> Installer {
    Installer {
        words,
        options: &["-y", "--yes", "-q", "--quiet"],
        with_list: &[],
        required: None,
    }
}

/// Returns true if a shell command only installs dependencies that are listed or named in it.
pub(crate) fn only_installs(command: &str) -> bool {
    // A command with characters that make the shell expand, substitute or redirect is rejected.
    let is_plain = |character: char| character.is_ascii_alphanumeric() || " -_./:=@~^+,[]<>!'\"&".contains(character);
    command.chars().all(is_plain)
        && command.split("&&").all(|step| {
            let words: Option<Vec<String>> = words(step);
            words.is_some_and(|words| words.is_empty() || INSTALLERS.iter().any(|installer| installer.takes(&words)))
        })
}

impl Installer {
    fn takes(&self, words: &[String]) -> bool {
        if !words
            .iter()
            .map(String::as_str)
            .take(self.words.len())
            .eq(self.words.iter().copied())
        {
            return false;
        }
        let words = &words[self.words.len()..];
        let is_safe = self
            .required
            .is_none_or(|required| words.iter().any(|word| word == required));
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let is_known =
                if let Some((option, value)) = word.split_once('=').filter(|(option, _)| self.has_list(option)) {
                    option.starts_with("--") && names_list(value)
                } else if self.has_list(word) {
                    words.next().is_some_and(|value| names_list(value))
                } else {
                    self.options.contains(&word.as_str()) || is_package(word)
                };
            if !is_known {
                return false;
            }
        }
        is_safe
    }

    fn has_list(&self, option: &str) -> bool {
        self.with_list.contains(&option)
    }
}

/// Splits a step like a shell, with quotes around whole words only; `None` for anything more
/// complex.
fn words(step: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for word in step.split_whitespace() {
        let quoted = ['\'', '"']
            .iter()
            .find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
        let bare = quoted.unwrap_or(word);
        // Unquoted, these are redirections, background jobs, patterns or the home directory.
        let is_special = quoted.is_none() && word.contains(['<', '>', '[', ']', '!']) && !is_extra(word);
        if is_special || bare.contains(['\'', '"', '&']) || bare.is_empty() {
            return None;
        }
        words.push(bare.to_owned());
    }
    Some(words)
}

/// Returns true if the brackets of a word are a package's extras, as in `requests[socks]==2.31`. As
/// a shell pattern it could only match a file of that very name.
fn is_extra(word: &str) -> bool {
    !word.contains(['<', '>', '!']) && word.matches('[').count() == 1 && word.matches(']').count() == 1
}

fn names_list(path: &str) -> bool {
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_inside = !path.starts_with(['/', '~']) && !path.split('/').any(|part| matches!(part, "" | "." | ".."));
    is_inside && !path.contains(':') && is_list(path)
}

/// Returns true if a word can only be a package of an index, with versions: not an option, path,
/// address or file.
fn is_package(word: &str) -> bool {
    let name = match word.strip_prefix('@').and_then(|scoped| scoped.split_once('/')) {
        Some((_, name)) => name,
        None => word,
    };
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.contains(['/', ':', '~'])
        && !is_archive(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_and_lists_that_are_keyed_only_install() {
        for command in [
            "pip install -r requirements-dev.txt",
            "pip install --no-cache-dir -r ./requirements/test.txt -c constraints.txt pytest",
            "pip install --requirement=requirements.txt \"django>=4,<5\"",
            "pip3 install requests[socks]==2.31",
            "npm ci --ignore-scripts && npm install --ignore-scripts --save-dev vitest@^1 @types/node",
            "conda install -y numpy=1.26",
            "go mod download",
        ] {
            assert!(only_installs(command), "{command}");
        }
    }

    #[test]
    fn whatever_runs_a_file_of_the_project_does_not() {
        for command in [
            "make deps",
            "./gradlew dependencies",
            "gradle dependencies",
            "./mvnw dependency:resolve",
            "mvn dependency:resolve",
            "bundle install",
            "composer install",
            "npm ci",
            "npm install",
            "npm ci --ignore-scripts=false --ignore-scripts",
            "npm install --ignore-scripts ./packages/core",
            "npm install --ignore-scripts core.tgz",
            "npm install --ignore-scripts --prefix web",
            "yarn install --ignore-scripts",
            "pnpm install --ignore-scripts",
            "poetry install",
            "pdm install",
            "uv sync",
            "pipenv install",
            "cargo fetch",
            "conda env update -f environment.yml",
            "python -m pip install flask",
            "pip install .",
            "pip install -e .",
            "pip install -e '.[test]'",
            "pip install ./packages/core",
            "pip install packages/core",
            "pip install core.whl",
            "pip install core.tar.gz[extra]",
            "pip install -r deps/base.txt",
            "pip install -r ../requirements.txt",
            "pip install -r file:requirements.txt",
            "pip install -c pins.txt flask",
            "pip install -f wheels flask",
            "pip install --find-links=wheels flask",
            "pip install 'x @ file:///workspace/project'",
        ] {
            assert!(!only_installs(command), "{command}");
        }
    }

    #[test]
    fn what_the_shell_would_do_with_it_is_not_guessed() {
        for command in [
            "npm ci --ignore-scripts; npm run build",
            "npm ci --ignore-scripts && npm run build",
            "npm ci --ignore-scripts & npm run build",
            "pip install -r requirements.txt | tee log",
            "pip install $(cat list)",
            "pip install django>=4",
            "pip install x > /dev/null",
            "pip install-x",
            "cd web && npm ci --ignore-scripts",
            "pip install 'a b'",
            "pip install x\npip install .",
        ] {
            assert!(!only_installs(command), "{command:?}");
        }
    }
}
