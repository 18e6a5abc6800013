//! The tutorial's program has the fault that the tutorial says it has, and what is told in two
//! languages is the same to type.

use std::process::Command;

use crate::{blocks, read};

/// Returns the blocks of a document, without the remarks behind commands.
fn without_remarks(path: &str) -> Vec<(String, String)> {
    let blocks = blocks(&read(path)).into_iter();
    let bare = |text: String| {
        let lines = text
            .lines()
            .map(|line| line.split(" #").next().unwrap_or_default().trim_end());
        lines.collect::<Vec<_>>().join("\n")
    };
    blocks.map(|(kind, text)| (kind, bare(text))).collect()
}

#[test]
fn both_languages_have_people_type_the_same() {
    for (one, other) in [
        ("README.md", "README.ja.md"),
        ("docs/tutorial.md", "docs/tutorial.ja.md"),
    ] {
        let (one_s, other_s) = (without_remarks(one), without_remarks(other));
        assert_eq!(one_s.len(), other_s.len(), "{one} and {other}");
        for (block, translated) in one_s.iter().zip(&other_s) {
            assert_eq!(block, translated, "{one} and {other}");
        }
    }
}

#[test]
fn the_program_of_the_tutorial_fails_as_it_says() {
    let shell = |text: &str| {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new("bash");
        command.args(["-e", "-c", text]).env("HOME", home.path());
        (command.output().unwrap(), home)
    };
    let tutorial = read("docs/tutorial.md");
    let all = blocks(&tutorial);
    let (_, making) = all.iter().find(|(_, text)| text.contains("cat > shifts.py")).unwrap();
    let (made, _) = shell(making);
    assert!(made.status.success(), "{made:?}");

    let (tested, _) = shell(&format!("{making}\npython3 -m unittest"));
    assert_eq!(tested.status.code(), Some(1), "{tested:?}");
    let said = String::from_utf8(tested.stderr).unwrap();
    assert!(tutorial.contains("says `AssertionError: -16 != 8`"));
    assert!(
        said.contains("AssertionError: -16 != 8") && said.contains("Ran 2 tests"),
        "{said}"
    );

    // What a model would do.
    let mended = format!("{making}\nsed -i 's/end - begin/(end - begin) % 24/' shifts.py\npython3 -m unittest");
    let (tested, _) = shell(&mended);
    assert!(tested.status.success(), "{tested:?}");
}
