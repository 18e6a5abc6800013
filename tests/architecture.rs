//! The invariants of `docs/ARCHITECTURE.md` that a machine can check.
#![expect(clippy::unwrap_used, reason = "a test that cannot read the sources has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The floors, from the bottom up. Modules of one floor do not import one another, but for the
/// exceptions below.
const FLOORS: [&[&str]; 5] = [
    &[
        "conversation",
        "plan",
        "rules",
        "evidence",
        "egress",
        "secret",
        "approval",
        "markdown",
        "task",
    ],
    &["process", "certificates", "private"],
    &[
        "environment",
        "executor",
        "gateway",
        "forge",
        "journal",
        "llm",
        "queue",
        "repository",
        "store",
        "tool",
    ],
    &["agent"],
    &["config", "service", "doctor", "cli"],
];

/// Floors whose modules may import those listed before them.
const ORDERED: [usize; 2] = [0, 4];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    sources(&root, &mut found);
    found
        .into_iter()
        .map(|path| {
            let below = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let module = below.split(['/', '.']).next().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            (module, path, text)
        })
        .collect()
}

fn place(module: &str) -> Option<(usize, usize)> {
    FLOORS.iter().enumerate().find_map(|(floor, modules)| {
        modules
            .iter()
            .position(|known| *known == module)
            .map(|position| (floor, position))
    })
}

#[test]
fn reading_order_is_import_order() {
    let mut wrong = Vec::new();
    for (module, path, text) in all_sources() {
        let Some((floor, position)) = place(&module) else {
            assert!(
                ["lib", "main", "bin"].contains(&module.as_str()),
                "{module} is on no floor"
            );
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for import in line.split("crate::").skip(1) {
                let imported = import
                    .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                    .next()
                    .unwrap();
                let Some((other_floor, other_position)) = place(imported) else {
                    continue;
                };
                let is_below = other_floor < floor
                    || imported == module
                    || (other_floor == floor && ORDERED.contains(&floor) && other_position < position);
                if !is_below && !line.trim_start().starts_with("//") {
                    wrong.push(format!(
                        "{}:{}: {module} imports {imported}",
                        path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "imports that point up or sideways:\n{}",
        wrong.join("\n")
    );
}

/// Returns the files of each folder, by folder and name, with the neighbours in it that they
/// import.
fn neighbours() -> BTreeMap<(PathBuf, String), BTreeSet<String>> {
    let files = all_sources();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let beside = |folder: &Path| -> BTreeSet<String> {
        let files = files
            .iter()
            .map(|(_, path, _)| path)
            .filter(|path| path.parent() == Some(folder));
        files.map(|path| name(path)).collect()
    };
    let mut found = BTreeMap::new();
    for (_, path, text) in &files {
        let (folder, name) = (path.parent().unwrap(), name(path));
        let product = text.split("#[cfg(test)]").next().unwrap();
        let known = beside(folder);
        let code: Vec<_> = product
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("//"))
            .collect();
        let code = code.join(" ");
        let imported = code
            .split("super::")
            .skip(1)
            .flat_map(|rest| match rest.strip_prefix('{') {
                Some(several) => several.split('}').next().unwrap().split(',').map(first_name).collect(),
                None => vec![first_name(rest)],
            })
            .filter(|other| known.contains(other) && *other != name && *other != "mod")
            .collect();
        if name != "mod" {
            found.insert((folder.to_owned(), name), imported);
        }
    }
    found
}

fn first_name(path: &str) -> String {
    let is_part = |letter: &char| letter.is_alphanumeric() || *letter == '_';
    path.trim_start().chars().take_while(is_part).collect()
}

#[test]
fn the_files_of_a_folder_import_one_another_in_no_circle() {
    // Whoever imports nobody that is left is read first, and so on; what remains is a circle.
    let mut left = neighbours();
    loop {
        let remaining: BTreeSet<_> = left.keys().cloned().collect();
        let readable: Vec<_> = left
            .iter()
            .filter(|((folder, _), imported)| {
                !imported
                    .iter()
                    .any(|other| remaining.contains(&(folder.clone(), other.clone())))
            })
            .map(|(file, _)| file.clone())
            .collect();
        if readable.is_empty() {
            break;
        }
        left.retain(|file, _| !readable.contains(file));
    }
    assert!(
        left.is_empty(),
        "these import one another in a circle, or from one: {left:#?}"
    );
}

#[test]
fn the_order_of_lib_rs_is_the_order_of_the_floors() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let listed: Vec<_> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "))
        .map(|line| place(line.split(';').next().unwrap()).unwrap().0)
        .collect();
    assert!(
        listed.is_sorted(),
        "lib.rs lists a module above one of a lower floor: {listed:?}"
    );
    assert_eq!(listed.len(), FLOORS.iter().map(|modules| modules.len()).sum::<usize>());
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<_> = all_sources()
        .into_iter()
        .filter(|(_, _, text)| !text.starts_with("//!"))
        .map(|(_, path, _)| path)
        .collect();
    assert!(silent.is_empty(), "files without a //! head: {silent:?}");
}

#[test]
fn no_file_has_grown_past_reading() {
    let long: Vec<_> = all_sources()
        .into_iter()
        .map(|(_, path, text)| {
            (
                text.lines().take_while(|line| !line.starts_with("mod tests {")).count(),
                path,
            )
        })
        .filter(|(lines, _)| *lines > 400)
        .collect();
    assert!(long.is_empty(), "files with more than 400 lines: {long:?}");
}

/// They start processes and hand on PATH, proxies and the like; what they read goes nowhere else.
const HAND_ON_THE_ENVIRONMENT: [&str; 2] = ["repository/git.rs", "tool/stdio.rs"];

#[test]
fn only_the_top_floor_reads_the_environment_and_prints() {
    let mut wrong = Vec::new();
    for (module, path, text) in all_sources() {
        let product = text.split("#[cfg(test)]").next().unwrap();
        let may_read = ["config", "cli"].contains(&module.as_str())
            || HAND_ON_THE_ENVIRONMENT.iter().any(|end| path.ends_with(end));
        let reads = product.contains("std::env::var") && !may_read;
        let prints = product.contains("println!") && !["cli", "bin"].contains(&module.as_str());
        if reads || prints {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "these read the environment or print: {wrong:?}");
}

#[test]
fn no_comment_is_wider_than_a_hundred_columns() {
    let wide: Vec<_> = all_sources()
        .into_iter()
        .flat_map(|(_, path, text)| {
            let lines = text.lines().enumerate();
            lines
                .filter(|(_, line)| line.trim_start().starts_with("//") && line.chars().count() > 100)
                .map(|(number, _)| format!("{}:{}", path.display(), number + 1))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(wide.is_empty(), "comments past column 100:\n{}", wide.join("\n"));
}
