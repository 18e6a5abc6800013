//! The invariants of `docs/ARCHITECTURE.md` that a machine can check.
#![expect(clippy::unwrap_used, reason = "a test that cannot read the sources has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The floors, from the bottom up. Modules of one floor do not import one another, but for the
/// exceptions below.
const FLOORS: [&[&str]; 9] = [
    &[
        "spelling",
        "plain",
        "picture",
        "conversation",
        "plan",
        "rules",
        "evidence",
        "egress",
        "finding",
        "secret",
        "approval",
        "markdown",
        "lfs",
        "syntax",
        "task",
        "review",
        "routing",
    ],
    &[
        "process",
        "certificates",
        "http",
        "private",
        "file_lock",
        "signature",
        "link",
        "reach",
    ],
    &[
        "environment",
        "executor",
        "gateway",
        "forge",
        "llm",
        "messenger",
        "queue",
        "repository",
        "store",
        "tool",
    ],
    &["index"],
    &["journal"],
    &["traces"],
    &["workspace", "reviewer"],
    &["agent"],
    &["config", "service", "chat", "doctor", "evaluation", "web", "cli"],
];

/// Floors whose modules may import those listed before them.
const ORDERED: [usize; 3] = [0, 1, 8];

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

/// Returns a file's text up to its test module, if that stands in it.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
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

/// Returns the modules that a folder declares in its `mod.rs`, in order, without those of tests.
fn declared(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("mod.rs")).unwrap_or_default();
    let text = text.replace("#[cfg(test)]\n", "#[cfg(test)] ");
    let names = text.lines().filter_map(|line| {
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")?
            .split_once(';')
            .map(|(name, _)| name.to_owned())
    });
    names.collect()
}

/// Returns the code of a module, its folder included, without comments and tests; and, apart, that
/// of its own file, for which `super` is the folder.
fn code_of(folder: &Path, module: &str) -> (String, String) {
    let mut paths = Vec::new();
    let below = folder.join(module);
    if below.is_dir() {
        sources(&below, &mut paths);
    }
    let is_test = |path: &PathBuf| path.iter().any(|part| part == "tests" || part == "tests.rs");
    paths.retain(|path| !is_test(path));
    let code = |path: &Path| -> String {
        let text = fs::read_to_string(path).unwrap_or_default();
        let product = without_tests(&text);
        let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join(" ")
    };
    let own: String = [folder.join(format!("{module}.rs")), below.join("mod.rs")]
        .iter()
        .map(|path| code(path))
        .collect();
    let inner: String = paths.iter().map(|path| code(path)).collect();
    (own.clone() + &inner, own)
}

/// Returns the names that follow `prefix` in `code`, those of a braced group included.
fn named_after<'a>(prefix: &str, code: &'a str) -> BTreeSet<&'a str> {
    let first = |path: &'a str| {
        let path = path.trim_start();
        let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        &path[..end.unwrap_or(path.len())]
    };
    let rests = code.split(prefix).skip(1);
    rests
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(several) => several.split('}').next().unwrap().split(',').map(first).collect(),
            None => vec![first(rest)],
        })
        .collect()
}

/// Returns the folders below `src` that have a `mod.rs`, with their module paths.
fn rooms() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = all_sources()
        .into_iter()
        .filter(|(_, path, _)| path.ends_with("mod.rs"));
    folders
        .map(|(_, path, _)| {
            let folder = path.parent().unwrap().to_owned();
            let below = folder.strip_prefix(&root).unwrap().to_str().unwrap().replace('/', "::");
            (folder, format!("crate::{below}::"))
        })
        .collect()
}

/// Returns the modules of a room, each with those of its siblings that it imports.
fn siblings(folder: &Path, path: &str) -> Vec<(String, BTreeSet<String>)> {
    let modules = declared(folder);
    let imports = modules.iter().map(|module| {
        let (all, own) = code_of(folder, module);
        let mut imported = named_after(path, &all);
        imported.extend(named_after("super::", &own));
        let siblings = modules.iter().filter(|other| *other != module);
        let imported = siblings.filter(|other| imported.contains(other.as_str())).cloned();
        (module.clone(), imported.collect())
    });
    imports.collect()
}

#[test]
fn the_modules_of_a_folder_import_one_another_in_no_circle() {
    let mut circles = Vec::new();
    for (folder, path) in rooms() {
        // Whoever imports nobody that is left is read first, and so on; what remains is a circle.
        let mut left = siblings(&folder, &path);
        loop {
            let remaining: BTreeSet<_> = left.iter().map(|(module, _)| module.clone()).collect();
            let before = left.len();
            left.retain(|(_, imported)| imported.iter().any(|other| remaining.contains(other)));
            if left.len() == before {
                break;
            }
        }
        circles.extend(
            left.into_iter()
                .map(|(module, imported)| (path.clone() + &module, imported)),
        );
    }
    assert!(
        circles.is_empty(),
        "these import one another in a circle, or from one: {circles:#?}"
    );
}

/// Rooms whose `mod.rs` is a map: the modules are listed in reading order, and that is import order.
const MAPS: [&str; 9] = [
    "crate::agent::",
    "crate::cli::",
    "crate::environment::",
    "crate::executor::",
    "crate::forge::",
    "crate::llm::",
    "crate::repository::",
    "crate::store::",
    "crate::workspace::",
];

#[test]
fn the_order_of_a_map_is_import_order() {
    let mut wrong = Vec::new();
    for (folder, path) in rooms() {
        if !MAPS.iter().any(|map| path.starts_with(map)) {
            continue;
        }
        let mut above = BTreeSet::new();
        for (module, imported) in siblings(&folder, &path) {
            let below = imported.difference(&above);
            wrong.extend(below.map(|other| format!("{path}{module} imports {other}, which is listed below it")));
            above.insert(module);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_folder_has_few_enough_files_to_choose_from() {
    let mut crowded = Vec::new();
    for (folder, path) in rooms() {
        let modules = declared(&folder).into_iter().filter(|module| module != "tests");
        let files = modules
            .filter(|module| folder.join(format!("{module}.rs")).is_file())
            .count();
        if files > 12 {
            crowded.push((path, files));
        }
    }
    assert!(crowded.is_empty(), "more than 12 files: {crowded:?}");
}

/// Tells whether two folders are one room: the same folder, one within the other, or, away from the
/// maps, below the same top module.
fn is_one_room(home: &Path, other: &Path) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let top = |folder: &Path| folder.strip_prefix(&root).unwrap().iter().next().map(PathBuf::from);
    let has_map = |top: &PathBuf| MAPS.contains(&format!("crate::{}::", top.display()).as_str());
    let shares_top = top(home) == top(other) && !top(home).as_ref().is_some_and(has_map);
    home.starts_with(other) || other.starts_with(home) || shares_top
}

/// Types whose `impl` blocks stand in the room that declares them. A method elsewhere is a
/// dependency that no `use` line shows.
#[test]
fn impl_blocks_stay_in_the_room_of_their_type() {
    let mut homes: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut impls = Vec::new();
    for (_, path, text) in all_sources() {
        let room = path.parent().unwrap().to_owned();
        let product = without_tests(&text);
        for line in product.lines() {
            let words: Vec<_> = line
                .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .collect();
            let declares = words.iter().position(|word| ["struct", "enum"].contains(word));
            if let Some(name) = declares
                .filter(|_| !line.trim_start().starts_with("//"))
                .and_then(|at| words.get(at + 1))
            {
                homes.entry((*name).to_owned()).or_default().insert(room.clone());
            }
            if let Some(rest) = line.strip_prefix("impl") {
                // Of a generic type the parameters stand first.
                let rest = match rest.strip_prefix('<') {
                    Some(generic) => generic.split_once('>').map_or("", |(_, rest)| rest),
                    None => rest,
                };
                if !rest.contains(" for ") {
                    let name = rest.trim_start();
                    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                    impls.push((name[..end.unwrap_or(name.len())].to_owned(), room.clone(), path.clone()));
                }
            }
        }
    }
    let away: Vec<_> = impls
        .into_iter()
        .filter(|(name, room, _)| {
            let home = homes.get(name);
            !home.is_some_and(|homes| homes.iter().any(|home| is_one_room(home, room)))
        })
        .collect();
    assert!(away.is_empty(), "impl blocks away from their type: {away:#?}");
}

/// The libraries that one folder alone may name, so that what it speaks to can be replaced.
const CONFINED: [(&str, &str); 3] = [
    ("bollard::", "src/environment/docker/"),
    ("kube::", "src/environment/kubernetes/"),
    ("k8s_openapi::", "src/environment/kubernetes/"),
];

#[test]
fn a_library_behind_a_seam_is_named_in_one_folder() {
    let mut wrong = Vec::new();
    for (_, path, text) in all_sources() {
        for (library, folder) in CONFINED {
            if without_tests(&text).contains(library) && !path.to_str().unwrap().contains(folder) {
                wrong.push(format!("{} names {library}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What would go on as if an empty record had been saved, behind one that cannot be read.
const FORGETFUL: [&str; 4] = [".unwrap_or_default()", ".unwrap_or(", ".ok()", ".map_or"];

#[test]
fn no_record_that_cannot_be_read_becomes_an_empty_one() {
    let mut wrong = Vec::new();
    for (_, path, text) in all_sources() {
        let lines = without_tests(&text).lines();
        let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
        let code: String = lines.flat_map(str::split_whitespace).collect();
        for rest in code.split("Record::read(").skip(1) {
            let mut open = 1;
            let end = rest.find(|sign: char| {
                open += i32::from(sign == '(') - i32::from(sign == ')');
                open == 0
            });
            let behind = &rest[end.map_or(rest.len(), |end| end + 1)..];
            if FORGETFUL.iter().any(|way| behind.starts_with(way)) {
                wrong.push(path.display().to_string());
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "records that cannot be read are taken for empty ones: {wrong:?}"
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
