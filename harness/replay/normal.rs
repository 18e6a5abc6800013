//! Outputs without what no two machines have alike: times, addresses, sizes of folders, dates in
//! listings, and the files that a recorded image had beside the repository.

use std::sync::LazyLock;

use regex::Regex;

/// The folder in which the program has the repository.
pub const FOLDER: &str = "/workspace/project";

/// The parts of an output that differ from run to run, each with its replacement.
static FLEETING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (r"\b0x[0-9a-f]{5,}\b", "0xADDRESS"),
        (r"\b\d+\.\d+ ?s(econds)?\b", "TIME"),
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4})?", "DATE"),
        // `ls -l`: kind and name stay. Owner, size of a folder, date and rights are the machine's.
        (
            r"^([-dl])[rwxsStT-]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+\d+\s+\w{3}\s+\d+\s+[\d:]+\s+",
            "$1 ",
        ),
        (r"^total \d+$", ""),
        // How long git writes names depends on how many there are.
        (
            r"^index ([0-9a-f]{7})[0-9a-f]*\.\.([0-9a-f]{7})[0-9a-f]*",
            "index $1..$2",
        ),
        (r"^(/bin/|/usr/bin/)?(ba)?sh: (line )?(\d+: )?", "sh: "),
    ];
    let compiled = patterns
        .into_iter()
        .filter_map(|(pattern, put)| Some((Regex::new(pattern).ok()?, put)));
    compiled.collect()
});

/// Files that a build leaves beside a repository, as the recorded images had them.
const BUILT: [&str; 9] = [
    "__pycache__",
    ".pyc",
    ".egg-info",
    "build",
    "dist",
    ".pytest_cache",
    ".tox",
    "_version.py",
    ".hypothesis",
];

/// Returns the lines of an output, with `folder` as ours and without what is fleeting.
pub fn lines(output: &str, folder: &str) -> Vec<String> {
    let output = output.replace(folder, FOLDER).replace('\r', "");
    let mut lines: Vec<String> = output.lines().map(line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn line(line: &str) -> String {
    let mut line = line.trim_end().to_owned();
    for (pattern, put) in FLEETING.iter() {
        line = pattern.replace_all(&line, *put).into_owned();
    }
    line.trim_end().to_owned()
}

/// Returns the lines that name nothing that a build left, in alphabetical order: neither the order
/// of a folder's entries nor what was built there is the repository's.
pub fn without_order(lines: &[String]) -> Vec<String> {
    let is_built = |line: &String| BUILT.iter().any(|name| line.contains(name));
    let mut lines: Vec<String> = lines
        .iter()
        .filter(|line| !line.is_empty() && !is_built(line))
        .cloned()
        .collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fleeting_goes() {
        let text = "total 172\ndrwxr-xr-x 4 root root 4096 Oct 24  2024 docs\n-rw-r--r-- 1 a b 12 Nov 23 12:30 a.py\n\
                    <A at 0x7f3a2b1c> in 0.12s at /testbed/a.py\n\n";
        assert_eq!(
            lines(text, "/testbed"),
            [
                "",
                "d docs",
                "- a.py",
                "<A at 0xADDRESS> in TIME at /workspace/project/a.py"
            ]
        );
    }

    #[test]
    fn order_and_what_was_built_are_not_the_repositorys() {
        let read = lines("b\na\nx/__pycache__/a.pyc: binary file matches\n", "/testbed");
        assert_eq!(without_order(&read), ["a", "b"]);
    }
}
