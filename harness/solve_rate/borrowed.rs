//! Tasks that others wrote, by path: `QUIXBUGS` is a checkout of the programs of that name,
//! `HUMANEVAL` the `.jsonl` or `.jsonl.gz` of the problems of that name, whose solutions get one
//! fault each by fixed rules. Neither is kept here.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::setting::said;
use crate::task::{Files, Language, Task};

/// Faults, as a piece of code and what takes its place. The first that is found is planted.
const FAULTS: [(&str, &str); 12] = [
    (" <= ", " > "),
    (" >= ", " < "),
    (" < ", " >= "),
    (" > ", " <= "),
    (" == ", " != "),
    (" + 1", " + 2"),
    (" - 1", " - 2"),
    (" and ", " or "),
    ("range(", "range(1, "),
    ("True", "False"),
    (" + ", " - "),
    ("return ", "return not "),
];

/// Returns the tasks that the variables name.
pub fn of_environment() -> anyhow::Result<Vec<Task>> {
    let path = |name: &str| said(name).map(PathBuf::from);
    let mut tasks = Vec::new();
    if let Some(folder) = path("QUIXBUGS") {
        tasks.extend(of_quixbugs(&folder).with_context(|| format!("{} is no checkout of QuixBugs", folder.display()))?);
    }
    if let Some(file) = path("HUMANEVAL") {
        let text = text_of(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        tasks.extend(of_human_eval(&text));
    }
    Ok(tasks)
}

fn text_of(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(file)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(String::from_utf8(bytes)?);
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
    Ok(text)
}

/// Reads the programs that have tests as data: graphs have none.
fn of_quixbugs(folder: &Path) -> anyhow::Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for entry in std::fs::read_dir(folder.join("python_programs"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(cases) = std::fs::read_to_string(folder.join(format!("json_testcases/{name}.json"))) else {
            continue;
        };
        if path.extension().is_none_or(|end| end != "py") {
            continue;
        }
        let correct = std::fs::read_to_string(folder.join(format!("correct_python_programs/{name}.py")))?;
        tasks.push(borrowed(
            &format!("quixbugs/{name}"),
            (
                &format!("{name} gives wrong results"),
                &format!("`{name}` in `{name}.py` has a fault in one line. Find and mend it."),
            ),
            (&format!("{name}.py"), &std::fs::read_to_string(&path)?, &correct),
            &quixbugs_test(&name, &cases),
        ));
    }
    tasks.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tasks)
}

fn quixbugs_test(name: &str, cases: &str) -> String {
    let mut test = format!("import json\nimport types\nimport unittest\n\nfrom {name} import {name}\n\nCASES = [\n");
    for line in cases.lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(test, "    json.loads({}),", serde_json::json!(line));
    }
    test.push_str(
        "]\n\n\nclass Hidden(unittest.TestCase):\n    def test_all(self):\n        for given, wanted in CASES:\n            \
         given = given if isinstance(given, list) else [given]\n            ",
    );
    let _ = write!(
        test,
        "found = {name}(*given)\n            \
         if isinstance(found, types.GeneratorType):\n                found = list(found)\n            \
         if isinstance(found, float):\n                self.assertAlmostEqual(found, wanted, places=3)\n            \
         else:\n                self.assertEqual(json.loads(json.dumps(found)), wanted)\n"
    );
    test
}

fn of_human_eval(text: &str) -> Vec<Task> {
    let problems = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tasks = problems.filter_map(|problem| {
        let field = |name: &str| problem[name].as_str();
        let (prompt, solution) = (field("prompt")?, field("canonical_solution")?);
        let (checks, entry) = (field("test")?, field("entry_point")?);
        let name = field("task_id")?.to_lowercase().replace('/', "-");
        let faulty = planted(solution)?;
        let hidden = format!(
            "import unittest\n\nfrom program import *\nfrom program import {entry}\n\n{checks}\n\nclass Hidden(unittest.TestCase):\n    \
             def test_all(self):\n        check({entry})\n"
        );
        Some(borrowed(
            &format!("humaneval/{name}"),
            (
                &format!("{entry} gives wrong results"),
                &format!("`{entry}` in `program.py` does not do what its documentation says. One line has a fault. Find and mend it."),
            ),
            ("program.py", &format!("{prompt}{faulty}"), &format!("{prompt}{solution}")),
            &hidden,
        ))
    });
    tasks.collect()
}

/// Plants the first fault that there is a place for.
fn planted(solution: &str) -> Option<String> {
    let fault = FAULTS.iter().find(|(right, _)| solution.contains(right));
    fault.map(|(right, wrong)| solution.replacen(right, wrong, 1))
}

fn borrowed(name: &str, (title, body): (&str, &str), (path, faulty, mended): (&str, &str, &str), hidden: &str) -> Task {
    Task {
        name: name.to_owned(),
        language: Language::Python,
        grade: 1,
        title: title.to_owned(),
        body: body.to_owned(),
        files: Files::from([(path.to_owned(), faulty.as_bytes().to_vec())]),
        hidden: Files::from([("tests/test_hidden.py".to_owned(), hidden.as_bytes().to_vec())]),
        mend: Files::from([(path.to_owned(), mended.as_bytes().to_vec())]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Bench;

    const PROBLEM: &str = r#"{"task_id": "HumanEval/900", "prompt": "def largest(values):\n    \"\"\"Return the largest.\"\"\"\n", "canonical_solution": "    best = values[0]\n    for value in values:\n        if value > best:\n            best = value\n    return best\n", "test": "def check(candidate):\n    assert candidate([1, 5, 2]) == 5\n", "entry_point": "largest"}"#;

    #[test]
    fn faults_are_planted_by_rule() {
        assert_eq!(planted("if a <= b and c:").as_deref(), Some("if a > b and c:"));
        assert_eq!(planted("pass"), None);
    }

    #[test]
    fn problems_are_read_packed_and_unpacked() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("problems.jsonl");
        let packed = folder.path().join("problems.jsonl.gz");
        std::fs::write(&plain, PROBLEM).unwrap();
        let file = std::fs::File::create(&packed).unwrap();
        let mut packing = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        packing.write_all(PROBLEM.as_bytes()).unwrap();
        packing.finish().unwrap();
        for file in [plain, packed] {
            assert_eq!(text_of(&file).unwrap(), PROBLEM);
        }
    }

    #[tokio::test]
    async fn borrowed_tasks_can_be_solved_and_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("python_programs/twice.py", "def twice(n):\n    return n * 3\n"),
            ("correct_python_programs/twice.py", "def twice(n):\n    return n * 2\n"),
            ("json_testcases/twice.json", "[[2], 4]\n[3, 6]\n"),
            ("python_programs/graph.py", "def graph(n):\n    return n\n"),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let mut tasks = of_quixbugs(folder.path()).unwrap();
        assert_eq!(tasks.len(), 1);
        tasks.extend(of_human_eval(PROBLEM));
        let mut bench = Bench::start(Language::Python).await.unwrap();
        for task in &tasks {
            assert_eq!(bench.flaw_of(task).await.unwrap(), None, "{}", task.name);
        }
        bench.end().await.unwrap();
    }
}
