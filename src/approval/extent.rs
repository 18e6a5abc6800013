//! The size of a result, and the order in which people are shown its files.

use serde::{Deserialize, Serialize};

/// The size of what would be pushed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    pub commits: usize,
    pub files: usize,
    /// Lines that are added or removed.
    pub lines: u64,
}

/// A file that differs, with the number of lines that are added or removed in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    pub path: String,
    pub lines: u64,
}

/// Folders and files by which a forge runs something as soon as they are pushed.
const RUN_BY_THE_FORGE: [&str; 19] = [
    ".github/workflows/",
    ".github/actions/",
    ".gitlab-ci.yml",
    ".gitlab/",
    ".gitea/workflows/",
    ".forgejo/workflows/",
    ".circleci/",
    ".buildkite/",
    ".tekton/",
    ".woodpecker",
    ".drone.yml",
    ".travis.yml",
    "azure-pipelines",
    "appveyor.yml",
    "bitbucket-pipelines.yml",
    "cloudbuild.yaml",
    "jenkinsfile",
    "action.yml",
    "action.yaml",
];
/// Number of entries, at the end of the list, that count in every folder.
const IN_EVERY_FOLDER: usize = 3;

/// Returns how early a file is shown: 0 for what a forge runs at once, 1 for what programs on
/// people's machines run or read unasked, 2 for the rest.
pub fn rank(path: &str) -> u8 {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    let anywhere = &RUN_BY_THE_FORGE[RUN_BY_THE_FORGE.len() - IN_EVERY_FOLDER..];
    let is_run = RUN_BY_THE_FORGE.iter().any(|known| path.starts_with(known))
        || anywhere.iter().any(|known| name.starts_with(known));
    match is_run {
        true => 0,
        false if path.starts_with('.') => 1,
        false => 2,
    }
}

/// Sorts files for display: those that need approval first, and among each kind those that the
/// forge runs.
pub fn in_order(mut files: Vec<Touched>, is_objected: impl Fn(&str) -> bool) -> Vec<Touched> {
    files.sort_by_cached_key(|file| (!is_objected(&file.path), rank(&file.path), file.path.clone()));
    files
}

/// Counts the lines that the unified diff of one file adds or removes.
pub fn changed_lines(difference: &str) -> u64 {
    let hunks = difference.lines().skip_while(|line| !line.starts_with("@@"));
    let changed = hunks.filter(|line| line.starts_with(['+', '-']));
    changed.count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_forge_runs_is_shown_before_harmless_files() {
        let touched = |path: &str| Touched {
            path: path.to_owned(),
            lines: 1,
        };
        let paths = [
            ".a/01/AGENTS.md",
            "z.txt",
            "sub/Jenkinsfile.release",
            ".github/workflows/ci.yml",
            ".husky/pre-commit",
            ".gitlab-ci.yml",
        ];
        let sorted = in_order(paths.map(touched).into(), |path| path != "z.txt");
        let sorted: Vec<_> = sorted.into_iter().map(|file| file.path).collect();
        assert_eq!(
            sorted,
            [
                ".github/workflows/ci.yml",
                ".gitlab-ci.yml",
                "sub/Jenkinsfile.release",
                ".a/01/AGENTS.md",
                ".husky/pre-commit",
                "z.txt",
            ]
        );
    }

    #[test]
    fn lines_of_the_head_are_no_changed_lines() {
        let difference = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-y\n+--- z\n";
        assert_eq!(changed_lines(difference), 2);
        assert_eq!(changed_lines("Binary files a/x and b/x differ\n"), 0);
    }
}
