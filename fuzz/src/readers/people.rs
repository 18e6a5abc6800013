//! Readers of the texts that people write for the program: commands in comments, and the rules of a
//! project.

use coding_agent::rules::Settings;
use coding_agent::task::command::Said;

use super::text;

/// Reads the command of a comment, and what is left of it for the model.
pub fn comment_command(bytes: &[u8]) {
    let body = text(bytes);
    let said = Said::of(&body);
    assert!(said.words.len() <= body.len());
    if let Some(command) = said.command {
        let first = body.split('\n').find(|line| !line.trim().is_empty());
        assert!(first.is_some_and(|line| line.to_ascii_lowercase().starts_with("/agent")));
        // It is handed from process to process in words.
        let written = command.to_string();
        assert_eq!(written.parse(), Ok(command), "{written}");
    }
}

/// Reads a file of rules, under each of the names it may have; what it says of files and tools can
/// be asked.
pub fn rules(bytes: &[u8]) {
    let text = text(bytes);
    for name in Settings::names() {
        let settings = match Settings::read(name, &text) {
            Ok(settings) => settings,
            Err(malformed) => {
                assert!(!malformed.to_string().is_empty());
                continue;
            }
        };
        let _ = settings.tools.refusal("workspace/read_file");
        let _ = settings.files.sentence();
        let filter = settings.files.filter();
        for path in ["src/main.rs", "a/b/c/日本.md", &"x/".repeat(500)] {
            let _ = filter.takes_folder(path);
            let _ = filter.takes(path);
        }
        // What is left out by its own name is left out, however many patterns stand beside it.
        for path in &settings.files.exclude {
            let is_plain = path.bytes().all(|byte| byte.is_ascii_alphanumeric());
            assert!(!is_plain || !filter.takes(path), "{path} is not left out");
        }
    }
}
