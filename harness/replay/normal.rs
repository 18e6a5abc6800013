//! Outputs without what no two machines have alike: times, addresses, and owners, sizes and dates
//! in listings.

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
        // Searches of another version.
        (r"^grep: (.*): binary file matches$", "Binary file $1 matches"),
    ];
    let compiled = patterns
        .into_iter()
        .filter_map(|(pattern, put)| Some((Regex::new(pattern).ok()?, put)));
    compiled.collect()
});

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

/// Returns the lines in alphabetical order, without the empty ones.
pub fn sorted(lines: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = lines.iter().filter(|line| !line.is_empty()).cloned().collect();
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
    fn searches_name_binary_files_alike() {
        let read = lines(
            "grep: ./a.bin: binary file matches\nBinary file b.bin matches\n",
            "/testbed",
        );
        assert_eq!(
            sorted(&read),
            ["Binary file ./a.bin matches", "Binary file b.bin matches"]
        );
    }
}
