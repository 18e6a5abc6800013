//! Reasons why an output differs from the recorded one that lie in the recorded machine. Each is
//! checked, line by line where it is about lines: that a command looks as if it could differ is no
//! reason.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::known::Known;
use crate::normal::FOLDER;
use crate::trajectory::Step;

/// The reason for a program that was not run: it came with the recorded image, as what runs code
/// does.
pub const LACKING: &str = "a program that the image has not";

/// The reason for code that was run without the packages of the recorded image.
const OTHER_ENVIRONMENT: &str = "runs code, in another environment than the recorded one";

/// The reasons of commands that did not do here what they did when they were recorded.
pub const DID_NOT_RUN: [&str; 2] = [LACKING, OTHER_ENVIRONMENT];

/// Words with which a recorded machine says that it ended a command itself.
const TIMED_OUT: [&str; 3] = [
    "timed out and has been killed",
    "EXECUTION TIMED OUT",
    "was cancelled because it took more than",
];

/// Files that a build leaves beside a repository, and that stand in a listing without a folder.
const BUILT: [&str; 8] = [
    "__pycache__",
    ".pyc",
    ".egg-info",
    "build",
    "dist",
    ".pytest_cache",
    ".tox",
    ".hypothesis",
];

fn compiled(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Commands whose output is in the order in which a folder has its entries.
static LISTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(
        r"(^|[;&|(]\s*|\n\s*|\bxargs\s+)(\S*/)?(ls|find|tree|rg|du|fd|git (ls-files|grep|status)|grep\b[^|;&\n]*\s-\w*[rR]\w*)\b",
    )
});
static RECURSIVE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"^(cd \S+ && )?ls\s+-\w*R\w*(\s+[\w./-]+)*$"));
static HEAD: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"\|\s*head\b"));
static SORT: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"\|\s*sort\b"));
static GIT: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"(^|[;&|(]\s*|\n\s*)git\b"));
static LOG: LazyLock<Option<Regex>> =
    LazyLock::new(|| compiled(r"\bgit\b[^|;&\n]*\s(log|show|reflog|blame|shortlog)\b"));
static ID: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"\b[0-9a-f]{7,40}\b"));
/// The lines of git's output that name a branch.
static BRANCH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(r"^(On branch \S+|HEAD detached (at|from) \S+|\* .+|Your branch is .*|Not currently on any branch\.)$")
});
/// The path that a line of a listing or a search begins with.
static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(
        r"^(?:[-dl] |\?\? |!! |Binary file |grep: |\d+\s+)?(?P<path>[\w./+@-]+?)(?:[:-]\d+[:-].*|:.*| matches| -> .*|/)?$",
    )
});
/// The path that a command did not find.
static NOT_FOUND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(concat!(
        r"^(?:[\w./-]+: )+(?:line \d+: )?(?:(?:cannot|can't) (?:access|read|open|stat|remove|find) )?",
        r"['‘]?(?P<path>[\w./+@-]+?)['’]?(?: for reading)?: No such file or directory$"
    ))
});
/// The signs that join several commands.
static SEVERAL: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"[;\n]|&&|\|\|"));
static GOES_FIRST: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(r"^\s*cd \S+\s*&&"));
static OUTSIDE: LazyLock<Option<Regex>> =
    LazyLock::new(|| compiled(r"(^|[\s'\x22(:=])(?P<path>/(?:usr|opt|home|root|etc|lib|var)/[^\s:'\x22]*)"));

fn is_match(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Words at the beginning of a command that run code of the project or of its environment.
static RUNS_CODE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let programs = "python[0-9.]*|pytest|py\\.test|pip[0-9.]*|tox|nox|make|conda|nosetests|node|npm|npx|go|mvn|java|javac|(ba)?sh [^-]\\S*|\\./\\S+";
    Regex::new(&format!(
        r"(^|[;&|(]\s*|\n\s*|\b(then|do|env|xargs|time|timeout \S+)\s+)([A-Z_]+=\S*\s+)*(\S*/)?({programs})\b"
    ))
    .ok()
});

/// Tells whether a command runs code for which the recorded image's own Python would be needed.
pub fn runs_code(command: &str) -> bool {
    RUNS_CODE.as_ref().is_some_and(|pattern| pattern.is_match(command))
}

/// One command that shows files, perhaps in a folder that it goes to, and whose output goes nowhere.
static ONLY_READS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compiled(concat!(
        r"^\s*(cd \S+\s*&&\s*)?(cat|head|tail|nl|wc|ls|grep|sed -n)\s[^<>;&|`$\n]*",
        r"(\|\s*(head|tail|wc|grep)[^<>;&|`$\n]*)*\s*$"
    ))
});

/// Tells whether a command can change no file: it is one that shows files.
pub fn only_reads(command: &str) -> bool {
    is_match(&ONLY_READS, command) && !command.contains(" -i")
}

/// Tells whether the lines of a command's output have no order of their own.
pub fn has_no_order(command: &str) -> bool {
    is_match(&LISTS, command) && !is_match(&SORT, command)
}

/// Names a reason that lies in the recorded machine, for outputs that are not alike. `theirs` and
/// `ours` are without what is fleeting.
pub fn reason(step: &Step, (theirs, ours): (&[String], &[String]), known: &Known) -> Option<&'static str> {
    let command = step.action.command()?;
    if step.recorded.status.is_none() && TIMED_OUT.iter().any(|words| step.recorded.output.contains(words)) {
        return Some("timed out when it was recorded");
    }
    if runs_code(command) {
        return Some(OTHER_ENVIRONMENT);
    }
    let (theirs, ours) = (&whole_paths(command, theirs)[..], &whole_paths(command, ours)[..]);
    let (only_theirs, only_ours) = (without(theirs, ours), without(ours, theirs));
    if only_ours.iter().any(|line| line.contains("command not found")) {
        return Some(LACKING);
    }
    if is_one(command)
        && !only_ours.is_empty()
        && only_ours
            .iter()
            .all(|line| not_found(line).is_some_and(|path| known.is_missed(path)))
    {
        return Some("a file that a command which could not run here had made");
    }
    if is_match(&GIT, command)
        && let Some(reason) = git_reason(command, (theirs, ours), &only_theirs, known)
    {
        return Some(reason);
    }
    if has_no_order(command) && is_match(&HEAD, command) && theirs.len() == ours.len() && !theirs.is_empty() {
        return Some("the first of a list that has the order of the recorded machine's folders");
    }
    let line_reason = |line: &&String| {
        let is_outside = || outside(line).is_some_and(|path| !path.starts_with(FOLDER));
        if is_outside() {
            return Some("a file of the recorded image, outside of the repository");
        }
        let is_listed = is_match(&LISTS, command) && only_theirs.contains(line);
        (is_listed && listed(line).is_some_and(|path| is_of_the_image(path, known)))
            .then_some("a file that only the recorder's image had")
    };
    let mut reasons = only_theirs.iter().chain(&only_ours).map(line_reason);
    let first = reasons.next()??;
    reasons.all(|reason| reason.is_some()).then_some(first)
}

/// Names the reason why git says something else of the same repository.
fn git_reason(
    command: &str,
    (theirs, ours): (&[String], &[String]),
    only_theirs: &[&String],
    known: &Known,
) -> Option<&'static str> {
    let ids = |line: &str| -> Vec<String> {
        let pattern = ID.as_ref();
        let found = pattern.into_iter().flat_map(|pattern| pattern.find_iter(line));
        found.map(|id| id.as_str().to_owned()).collect()
    };
    let has_foreign = only_theirs
        .iter()
        .flat_map(|line| ids(line))
        .any(|id| !known.has_object(&id));
    if has_foreign && is_match(&LOG, command) {
        return Some("git: the recorded repository had a commit of its image, which this one has not");
    }
    let blank = |lines: &[String]| -> Vec<String> {
        let is_branch = |line: &&String| is_match(&BRANCH, line);
        let kept = lines.iter().filter(|line| !line.is_empty() && !is_branch(line));
        kept.map(|line| match (&*ID, has_foreign) {
            (Some(pattern), true) => pattern.replace_all(line, "ID").into_owned(),
            _ => line.clone(),
        })
        .collect()
    };
    (blank(theirs) == blank(ours)).then_some("git: the names of commits and branches are the recorded image's")
}

/// Returns a listing of folders below one another (`ls -R`) with the folder before each name, and
/// any other output as it is.
fn whole_paths(command: &str, lines: &[String]) -> Vec<String> {
    if !is_match(&RECURSIVE, command) {
        return lines.to_vec();
    }
    let mut folder = "";
    let mut paths = Vec::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        if let Some(named) = line.strip_suffix(':') {
            folder = named;
        } else {
            let kinds = ["- ", "d ", "l "];
            let name = kinds.iter().find_map(|kind| line.strip_prefix(kind)).unwrap_or(line);
            paths.push(format!("{folder}/{name}"));
        }
    }
    paths
}

/// Returns the lines that the others lack, each as often as it lacks.
fn without<'a>(lines: &'a [String], others: &[String]) -> Vec<&'a String> {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for line in others {
        *left.entry(line).or_default() += 1;
    }
    let is_missing = |line: &&String| match left.get_mut(line.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => !line.trim().is_empty(),
    };
    lines.iter().filter(is_missing).collect()
}

/// Tells whether this is one command, after it went to a folder. Of several, whatever the others show
/// may be missing, too.
fn is_one(command: &str) -> bool {
    let command = match &*GOES_FIRST {
        Some(pattern) => pattern.replace(command.trim(), ""),
        None => command.into(),
    };
    !is_match(&SEVERAL, command.trim())
}

/// Returns the path that a line says was not found.
fn not_found(line: &str) -> Option<&str> {
    let found = NOT_FOUND.as_ref()?.captures(line.trim())?;
    found.name("path").map(|path| path.as_str())
}

fn outside(line: &str) -> Option<&str> {
    let found = OUTSIDE.as_ref()?.captures(line)?;
    found.name("path").map(|path| path.as_str())
}

fn listed(line: &str) -> Option<&str> {
    let found = PATH.as_ref()?.captures(line.trim())?;
    found.name("path").map(|path| path.as_str())
}

/// A word without a folder may be anything, so it has to look as what builds leave.
fn is_of_the_image(path: &str, known: &Known) -> bool {
    let path = path.trim_start_matches(FOLDER);
    let is_built = || {
        path.split('/')
            .any(|part| BUILT.iter().any(|name| part == *name || part.ends_with(name)))
    };
    known.is_of_the_image(path) && (path.trim_matches('/').contains('/') || is_built())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::action::Action;
    use crate::known::tests::known;
    use crate::normal;
    use crate::trajectory::Recorded;

    fn why(command: &str, theirs: &str, ours: &str) -> Option<&'static str> {
        let step = Step {
            action: Action::Call("workspace/execute_command", json!({ "command": command })),
            recorded: Recorded {
                status: Some(0),
                output: theirs.to_owned(),
                tail: None,
            },
        };
        let lines = |text: &str| normal::lines(text, "/testbed");
        let mut known = known(&["src/app.py", "tests/test_app.py", "setup.py"]);
        known.hear(&step.action);
        reason(&step, (&lines(theirs), &lines(ours)), &known)
    }

    #[test]
    fn another_content_has_no_reason() {
        for (command, theirs, ours) in [
            ("cat src/app.py", "one\ntwo\n", "one\n"),
            ("cat docs/guide.md", "of another day\n", "of this day\n"),
            ("grep -n build src/app.py", "3:    build()\n", "3:    dist()\n"),
            ("grep -rn def src", "src/app.py:3:def a():\n", "src/app.py:4:def a():\n"),
            ("ls src", "app.py\nother.py\n", "app.py\n"),
            ("cat src/app.py # git", "build/\n", ""),
            ("git diff", "+one\n", "+two\n"),
        ] {
            assert_eq!(why(command, theirs, ours), None, "{command}");
        }
    }

    #[test]
    fn what_only_the_image_had_is_named_line_by_line() {
        let image = Some("a file that only the recorder's image had");
        assert_eq!(why("ls", "build\nsetup.py\nsrc\n", "setup.py\nsrc\n"), image);
        assert_eq!(
            why(
                "grep -rn def .",
                "./build/lib/app.py:3:def a():\n./src/app.py:3:def a():\n",
                "./src/app.py:3:def a():\n"
            ),
            image
        );
        assert_eq!(
            why("find . -name '*.py'", "./build/lib/app.py\n", "./src/app.py\n"),
            None
        );
        assert_eq!(
            why("ls -la src/cli/made.py", "src/cli/made.py\n", ""),
            None,
            "the command itself names it"
        );
        assert_eq!(
            why(
                "ls -R",
                ".:\nbuild\nsrc\n\n./build:\nlib\n\n./build/lib:\napp.py\n\n./src:\napp.py\n",
                ".:\nsrc\n\n./src:\napp.py\n"
            ),
            image
        );
        assert_eq!(why("ls -R", "./src:\napp.py\ntest_app.py\n", "./src:\napp.py\n"), None);
        let outside = Some("a file of the recorded image, outside of the repository");
        assert_eq!(
            why("which python x", "/opt/miniconda3/bin/python\n", "/usr/bin/python\n"),
            outside
        );
    }

    #[test]
    fn a_file_that_a_missed_command_made_is_a_reason_where_nothing_else_differs() {
        let shell = |command: &str| Action::Call("workspace/execute_command", json!({ "command": command }));
        let step = |command: &str, theirs: &str| Step {
            action: shell(command),
            recorded: Recorded {
                status: Some(0),
                output: theirs.to_owned(),
                tail: None,
            },
        };
        let mut known = known(&["src/app.py"]);
        known.miss(&shell("cd demo && sphinx-build . _build"));
        let why = |command: &str, theirs: &str, ours: &str| {
            let lines = |text: &str| normal::lines(text, "/testbed");
            reason(&step(command, theirs), (&lines(theirs), &lines(ours)), &known)
        };
        let missed = Some("a file that a command which could not run here had made");
        let gone = "cat: demo/_build/index.html: No such file or directory\n";
        assert_eq!(why("cat demo/_build/index.html", "<html>\n", gone), missed);
        assert_eq!(why("cat demo/_build/index.html | head -3", "<html>\n", gone), missed);
        let cannot = "ls: cannot access 'demo/_build': No such file or directory\n";
        assert_eq!(why("ls demo/_build", "index.html\n", cannot), missed);
        let read = "sed: can't read demo/conf.py: No such file or directory\n";
        assert_eq!(why("sed -n 1,9p demo/conf.py", "x = 1\n", read), missed);
        // The second command is another one, and what it shows is missing as well.
        assert_eq!(why("cat demo/_build/a; cat src/app.py", "a\nb\n", gone), None);
        let other = "cat: src/gone.py: No such file or directory\n";
        assert_eq!(why("cat src/gone.py", "x\n", other), None);
    }

    #[test]
    fn a_command_that_only_shows_files_changes_none() {
        for command in [
            "grep \"Babel\" setup.py\n",
            "cat setup.py",
            "cd src && sed -n '1,9p' setup.py | head -3",
        ] {
            assert!(only_reads(command), "{command}");
        }
        for command in [
            "cat setup.py > other.py",
            "cat <<'EOF' > setup.py\nx\nEOF",
            "sed -n -i 1d setup.py",
            "sed -i 's/a/b/' setup.py",
            "cat setup.py; rm setup.py",
            "cat setup.py | tee setup.py",
            "cat $(rm setup.py)",
            "python setup.py",
        ] {
            assert!(!only_reads(command), "{command}");
        }
    }

    #[test]
    fn code_of_the_project_needs_its_own_environment() {
        for command in [
            "python reproduce.py",
            "cd x && PYTHONPATH=. python3 -m pytest",
            "rm a\npytest -q",
            "timeout 9 tox",
        ] {
            assert!(runs_code(command), "{command}");
        }
        for command in [
            "grep -n python setup.py",
            "cat make.bat",
            "ls pytest",
            "sed -i 's/go /x/' a",
        ] {
            assert!(!runs_code(command), "{command}");
        }
        let other = "runs code, in another environment than the recorded one";
        assert_eq!(why("python a.py", "3.9\n", "3.11\n"), Some(other));
    }

    #[test]
    fn git_may_differ_in_names_but_not_in_what_it_says() {
        let names = Some("git: the names of commits and branches are the recorded image's");
        assert_eq!(
            why(
                "git status",
                "On branch master\nnothing to commit\n",
                "On branch main\nnothing to commit\n"
            ),
            names
        );
        assert_eq!(why("git status", "On branch a\n M x\n", "On branch b\n M y\n"), None);
        assert_eq!(
            why("git log --oneline -1", "0123abc SWE\n", "fedcba9 first\n"),
            Some("git: the recorded repository had a commit of its image, which this one has not")
        );
    }

    #[test]
    fn orders_and_lacking_programs_are_checked() {
        let head = Some("the first of a list that has the order of the recorded machine's folders");
        assert_eq!(why("find . | head -1", "./a\n", "./b\n"), head);
        assert_eq!(why("find . | sort | head -1", "./a\n", "./b\n"), None);
        assert_eq!(why("find . | head -2", "./a\n", "./b\n./c\n"), None);
        assert_eq!(why("jq . x", "{}\n", "sh: jq: command not found\n"), Some(LACKING));
        assert!(has_no_order("cd x && grep -rn y .") && !has_no_order("cat a b") && !has_no_order("ls | sort"));
    }
}
