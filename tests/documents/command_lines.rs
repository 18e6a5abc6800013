//! Every command line of the documents is one that the program takes, and every command is in a
//! document.

use std::collections::BTreeSet;

use clap::CommandFactory;
use coding_agent::cli::arguments::Arguments;

use crate::{blocks, documents, is_taken, read, words};

/// Files besides the documents that tell people what to type.
const ALSO: [&str; 2] = ["config.yaml.example", "docker-compose.yml"];

/// Returns the arguments of each call of the program in a line of shell.
fn calls(line: &str) -> Vec<Vec<String>> {
    let line = line.split(" #").next().unwrap_or_default();
    line.split(['|', ';', '>', '(', ')'])
        .flat_map(|part| part.split("&&"))
        .filter_map(|command| {
            let words = words(command);
            // In front of the program: variables, the times of cron, `ExecStart=`, `docker compose
            // exec SERVICE`.
            let is_before = |word: &&String| {
                let is_time = word.chars().all(|letter| "*/,-0123456789".contains(letter));
                is_time || word.contains('=') || ["docker", "compose", "exec"].contains(&word.as_str())
            };
            let before = words.iter().take_while(is_before).count();
            let mut rest = &words[before..];
            if before > 0 && words[..before].ends_with(&["exec".to_owned()]) {
                rest = rest.get(1..).unwrap_or_default();
            }
            let (program, arguments) = rest.split_first()?;
            let is_it = program == "coding-agent" || program == "/usr/local/bin/coding-agent";
            (is_it && !arguments.is_empty()).then(|| arguments.to_vec())
        })
        .collect()
}

/// Returns every call of the program in a text: in code blocks line by line, and between backticks.
fn calls_in(text: &str, is_code: bool) -> Vec<Vec<String>> {
    if is_code {
        let comments = text.lines().map(|line| line.trim_start().trim_start_matches("# "));
        return comments.flat_map(calls).chain(inline(text)).collect();
    }
    let blocks = blocks(text);
    let lines = blocks.iter().flat_map(|(_, block)| block.lines());
    lines.flat_map(calls).chain(inline(text)).collect()
}

fn inline(text: &str) -> Vec<Vec<String>> {
    let paragraph = text.replace("```", "");
    let pieces: Vec<_> = paragraph.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    pieces.iter().flat_map(|piece| calls(piece)).collect()
}

/// `config check|schema` stands for both.
fn all_of(arguments: &[String]) -> Vec<Vec<String>> {
    arguments.iter().fold(vec![Vec::new()], |lines, word| {
        lines
            .iter()
            .flat_map(|line| {
                word.split('|')
                    .map(|choice| [line.as_slice(), &[choice.to_owned()]].concat())
            })
            .collect()
    })
}

/// The documents that people write. The reference is made of the help itself: it tells of every
/// command, and its examples are followed by explanations.
fn by_people() -> Vec<String> {
    let documents = documents().into_iter();
    documents.filter(|path| !path.starts_with("docs/reference/")).collect()
}

fn documented() -> Vec<(String, Vec<String>)> {
    let documents = by_people().into_iter().map(|path| (path, false));
    let others = ALSO.map(|path| (path.to_owned(), true));
    documents
        .chain(others)
        .flat_map(|(path, is_code)| {
            let calls = calls_in(&read(&path), is_code);
            calls.into_iter().map(move |call| (path.clone(), call))
        })
        .flat_map(|(path, call)| all_of(&call).into_iter().map(move |call| (path.clone(), call)))
        .collect()
}

#[test]
fn every_command_line_of_the_documents_is_taken() {
    let wrong: Vec<_> = documented()
        .into_iter()
        .filter_map(|(path, call)| {
            let said = is_taken(&call).err()?;
            Some(format!("{path}: coding-agent {}\n{said}", call.join(" ")))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_and_option_is_in_a_document() {
    let written: BTreeSet<String> = documented().into_iter().flat_map(|(_, call)| call).collect();
    let told: String = by_people().iter().map(|path| read(path)).collect();
    let program = Arguments::command();
    let missing: Vec<_> = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .filter(|command| !written.contains(command.get_name()) && !told.contains(&format!("`{}`", command.get_name())))
        .map(|command| command.get_name().to_owned())
        .collect();
    assert_eq!(missing, Vec::<String>::new(), "no document tells of these");
    let options = program.get_subcommands().filter(|command| !command.is_hide_set());
    let untold: BTreeSet<_> = options
        .flat_map(clap::Command::get_arguments)
        .filter_map(|argument| argument.get_long())
        .filter(|name| !told.contains(&format!("--{name}")))
        .collect();
    assert_eq!(untold, BTreeSet::new(), "no document tells of these");
}

/// Days before today are compressed.
#[test]
fn whoever_reads_the_journal_is_told_to_read_its_earlier_days_too() {
    let mut told = 0;
    for path in by_people() {
        let text = read(&path);
        for rest in text.split("journal-*.jsonl").skip(1) {
            told += 1;
            assert!(rest.starts_with('*'), "{path} leaves out the files `.jsonl.gz`");
        }
    }
    assert!(told > 0, "no document reads the journal");
}

#[test]
fn calls_are_found_wherever_they_stand() {
    let found = |line: &str| {
        let calls = calls(line);
        calls.iter().map(|call| call.join(" ")).collect::<Vec<_>>().join(" + ")
    };
    assert_eq!(
        found("*/5 * * * * cd /srv/coding-agent && /usr/local/bin/coding-agent run"),
        "run"
    );
    assert_eq!(
        found("KEY=... coding-agent run --task \"a b\" --dry-run # only show"),
        "run --task a b --dry-run"
    );
    assert_eq!(found("docker compose exec coding-agent coding-agent status"), "status");
    assert_eq!(found("ExecStart=/usr/local/bin/coding-agent run"), "");
    assert_eq!(found("crontab -u coding-agent -e"), "");
    assert_eq!(
        found("coding-agent config schema > a.json; coding-agent fly"),
        "config schema + fly"
    );
}

#[test]
fn every_target_of_make_that_the_documents_name_is_there() {
    let makefile = read("Makefile");
    for path in documents() {
        let text = read(&path);
        let blocks = blocks(&text);
        let lines = blocks.iter().flat_map(|(_, block)| block.lines()).map(str::to_owned);
        let pieces = text.split('`').skip(1).step_by(2).map(str::to_owned);
        for line in lines.chain(pieces) {
            let words = words(&line);
            if words.first().is_some_and(|word| word == "make") && words.len() > 1 {
                let target = format!("\n{}:", words[1]);
                assert!(makefile.contains(&target), "{path}: {line}: there is no such target");
            }
        }
    }
}

#[test]
fn every_file_that_the_documents_link_is_there() {
    for path in documents() {
        let folder = crate::root().join(&path);
        let folder = folder.parent().unwrap();
        let text = read(&path);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let linked = if file.is_empty() {
                crate::root().join(&path)
            } else {
                folder.join(file)
            };
            assert!(linked.exists(), "{path} links {target}, which is not there");
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&linked).unwrap();
                let headings = text.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(
                    headings.into_iter().any(|known| known == heading),
                    "{path} links {target}"
                );
            }
        }
    }
}

/// The name by which the forges link a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter));
    kept.collect::<String>().replace(' ', "-")
}
