//! Source files that the documents name are there.

use std::path::Path;

use crate::{documents, read, root};

/// Files that whoever follows a recipe of CONTRIBUTING.md makes.
const TO_BE_MADE: [&str; 2] = ["src/agent/stages/documenting.rs", "src/llm/provider/gemini.rs"];

/// Folders from which documents name files.
const FOLDERS: [&str; 4] = ["", "src", "tests", "src/agent"];

#[test]
fn every_source_file_that_a_document_names_is_there() {
    let mut named = 0;
    let mut missing = Vec::new();
    for document in documents() {
        let text = read(&document);
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"_/.-".contains(letter));
        for path in words
            .filter(|word| word.contains('/') && Path::new(word).extension().is_some_and(|extension| extension == "rs"))
        {
            named += 1;
            let is_there = FOLDERS.iter().any(|folder| root().join(folder).join(path).is_file());
            if !is_there && !TO_BE_MADE.contains(&path) {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(named > 100, "the documents were not read: {named} files are named");
    assert!(missing.is_empty(), "there is no such file:\n{}", missing.join("\n"));
}
