//! The project's rules, read from the base branch: never from the branch that is worked on, whose
//! author may be anyone.
//!
//! Their authors may write to the base branch, so they are given to the model as rules and not as
//! data; their size is limited all the same. Unusable ones are reported in comments, and the run
//! continues without them.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::agent::claim::Claim;
use crate::agent::dialogue::room;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::Reporter;
use crate::agent::workspace::source;
use crate::conversation::excerpt;
use crate::forge::Item;
use crate::markdown::visible;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::repository::reading::files::TreeEntry;
use crate::rules::{Files, Rules, Settings, Text, is_nested_rule};
use crate::task::id::RunId;

/// Files in the root whose text is a rule, in order of precedence.
const ROOT_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"];
/// Maximum number of rule files in other folders.
const MOST_NESTED: usize = 20;
/// Maximum bytes of one text in the prompt.
const MOST_BYTES: usize = 16 * 1024;
/// Percentage of the window for all texts together, within the two bounds.
const SHARE: u64 = 8;
const FEWEST_BYTES_IN_ALL: usize = 4 * 1024;
const MOST_BYTES_IN_ALL: usize = 32 * 1024;
/// Maximum size of a rule file; a larger one was not written by people as a rule.
const LARGEST_FILE: u64 = 1024 * 1024;
/// Maximum number of project files that are examined, for rules and for the overview.
pub(crate) const MOST_FILES: usize = 100_000;

/// Reads the rules for an item from the branch that its change will be merged into.
pub(crate) async fn read_rules(
    claim: &mut Claim,
    reporter: &mut Reporter,
    item: &Item,
    mirror: &Mirror,
) -> Result<(), Interruption> {
    let wanted = item.change.as_ref().map(|change| change.base_branch.clone());
    let of_a_fork = item.change.as_ref().is_some_and(|change| change.is_fork);
    let mirror = if of_a_fork {
        let settings = &claim.services.settings;
        let home = source::home(reporter, item).await?;
        let fetching = Box::pin(Mirror::fetch(&settings.repository, &settings.state_dir, &home));
        claim.unless_stopped(fetching).await?
    } else {
        mirror.clone()
    };
    let default = match &item.default_branch {
        Some(branch) => mirror.branch(branch).await?,
        None => None,
    };
    let wanted = match wanted {
        Some(branch) => mirror.branch(&branch).await?,
        None => None,
    };
    match (wanted, default) {
        (Some(wanted), Some(default)) if wanted != default => {
            // The author of a request can select any branch as its base, even an old one.
            read_rules_of(claim, &mirror, &default).await?;
            let default = std::mem::take(&mut claim.record.planned.rules);
            read_rules_of(claim, &mirror, &wanted).await?;
            claim.record.planned.rules.restrict_by(&default);
            Ok(())
        }
        (Some(commit), _) | (None, Some(commit)) => read_rules_of(claim, &mirror, &commit).await,
        (None, None) => Ok(()),
    }
}

/// Returns the rules for the system prompts.
pub(crate) fn rules_prompt(claim: &Claim) -> String {
    shown(claim.lease.run, &claim.record.planned.rules)
}

/// Reads the rules of a commit into the record.
pub(crate) async fn read_rules_of(claim: &mut Claim, mirror: &Mirror, commit: &CommitId) -> Result<(), Interruption> {
    let (files, _) = mirror.files(commit, MOST_FILES).await?;
    let mut rules = Rules::default();
    let mut texts = Vec::new();
    if let Some(text) = read_settings(claim, mirror, commit, &files, &mut rules).await? {
        texts.push(text);
    }
    for path in rule_files(&files) {
        if let Some(text) = read_rule_file(claim, mirror, commit, path).await? {
            texts.push(Text {
                path: path.path.clone(),
                text,
            });
        }
    }
    rules.texts = bounded(claim, texts);
    claim.record.planned.rules = rules;
    Ok(())
}

/// Reads `.coding-agent-rules.*` and returns its text for the model.
async fn read_settings(
    claim: &mut Claim,
    mirror: &Mirror,
    commit: &CommitId,
    files: &[TreeEntry],
    rules: &mut Rules,
) -> Result<Option<Text>, Interruption> {
    let names = Settings::names();
    let mut there = names
        .iter()
        .filter_map(|name| files.iter().find(|file| file.path == *name && !file.is_link));
    let Some(entry) = there.next() else {
        return Ok(None);
    };
    for other in there {
        let (other, used) = (&other.path, &entry.path);
        claim.warn(format!(
            "`{other}` is not used, because there is also `{used}`; join the two."
        ));
    }
    let Some(text) = read_rule_file(claim, mirror, commit, entry).await? else {
        return Ok(None);
    };
    let settings = match Settings::read(&entry.path, &text) {
        Ok(settings) => settings,
        Err(malformed) => {
            claim.warn(format!(
                "The project's rules cannot be read, and the run goes on without them: {malformed}."
            ));
            return Ok(None);
        }
    };
    for key in &settings.unknown {
        claim.warn(format!(
            "`{}` has the key `{key}`, which means nothing there; correct or remove it.",
            entry.path
        ));
    }
    rules.tools = settings.tools;
    rules.files = settings.files;
    rules.environment = settings.environment;
    Ok(Some(Text {
        path: entry.path.clone(),
        text: settings.extension,
    })
    .filter(|text| !text.text.is_empty()))
}

/// Reads one file; a file that is binary or too large is reported to people and ignored.
async fn read_rule_file(
    claim: &mut Claim,
    mirror: &Mirror,
    commit: &CommitId,
    entry: &TreeEntry,
) -> Result<Option<String>, Interruption> {
    let path = &entry.path;
    if entry.size > LARGEST_FILE {
        claim.warn(format!(
            "`{path}` has {} bytes and is not taken for a rule; shorten it.",
            entry.size
        ));
        return Ok(None);
    }
    let Some(bytes) = mirror.file(commit, path, LARGEST_FILE).await? else {
        return Ok(None);
    };
    let Ok(text) = String::from_utf8(bytes) else {
        claim.warn(format!(
            "`{path}` is not text in UTF-8 and is not taken for a rule; save it as UTF-8."
        ));
        return Ok(None);
    };
    // Characters that are invisible in an editor must not reach the model.
    Ok(Some(
        claim.services.redactor.clean(&visible::plain(&text)).into_string(),
    ))
}

/// Limits the texts to their share of the window, and reports what was cut or dropped.
fn bounded(claim: &mut Claim, texts: Vec<Text>) -> Vec<Text> {
    let mut left = room::bytes_of_window(claim, SHARE).clamp(FEWEST_BYTES_IN_ALL, MOST_BYTES_IN_ALL);
    let mut kept = Vec::new();
    let mut seen = HashSet::new();
    for Text { path, text } in texts {
        let text = text.trim();
        // Many projects have the same text under two names.
        if text.is_empty() || !seen.insert(text.to_owned()) {
            continue;
        }
        let most = MOST_BYTES.min(left);
        if text.len() > most {
            claim.warn(format!(
                "`{path}` has {} bytes, and rules get {most} of the model's window here; only its beginning and end are \
                 given to the model.",
                text.len()
            ));
        }
        let text = excerpt::middle_cut(text, most, None);
        left = left.saturating_sub(text.len()).max(256);
        kept.push(Text { path, text });
    }
    kept
}

/// Returns the project's rules for the model; empty if there are none. They are not data, but
/// delimited blocks separate them from the program's own rules and from one another.
fn shown(run: RunId, rules: &Rules) -> String {
    let mark = prompt::fence(run).replace("data-", "rules-");
    let mut text = String::new();
    for rule in &rules.texts {
        let path = rule.path.replace(|sign: char| sign.is_control() || sign == '"', "?");
        let folder = rule
            .folder()
            .replace(|sign: char| sign.is_control() || sign == '"', "?");
        let scope = if folder.is_empty() {
            String::new()
        } else {
            format!(" for=\"{folder}/\"")
        };
        let _ = writeln!(text, "<{mark} file=\"{path}\"{scope}>");
        let _ = writeln!(text, "{}\n</{mark}>", rule.text);
    }
    let files = rules.files.sentence();
    if !files.is_empty() {
        let _ = writeln!(text, "{files}");
    }
    text
}

/// Returns the message to the model about changes that the rules exclude.
pub(crate) fn outside_the_rules(paths: &str, files: &Files) -> String {
    format!(
        "Your work changes what {}: {paths}. Put these files back as they were (`git checkout` of the base commit, or remove \
         new ones) and find another way, or it will be refused as a whole; then finish again.",
        files.reason()
    )
}

/// Returns the files whose texts are rules in order of precedence: first those of the whole
/// project, then those of folders, from the root down.
fn rule_files(files: &[TreeEntry]) -> Vec<&TreeEntry> {
    let of_root = ROOT_FILES
        .iter()
        .filter_map(|path| files.iter().find(|file| file.path == *path));
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned).unwrap_or_default();
    let mut nested: Vec<&TreeEntry> = files
        .iter()
        .filter(|file| file.path.contains('/') && is_nested_rule(&name(&file.path)))
        .collect();
    nested.sort_by_key(|file| file.path.matches('/').count());
    nested.truncate(MOST_NESTED);
    of_root.chain(nested).filter(|file| !file.is_link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_own_come_first_and_then_the_folders_from_the_root_down() {
        let entry = |path: &str, is_link: bool| TreeEntry {
            object: String::new(),
            path: path.to_owned(),
            size: 1,
            is_link,
        };
        let files = [
            entry(".github/copilot-instructions.md", false),
            entry("AGENTS.md", false),
            entry("CLAUDE.md", true),
            entry("a/b/AGENTS.md", false),
            entry("src/MYAGENTS.md", false),
            entry("web/AGENTS.md", false),
        ];
        let found: Vec<&str> = rule_files(&files).iter().map(|file| file.path.as_str()).collect();
        assert_eq!(
            found,
            [
                "AGENTS.md",
                ".github/copilot-instructions.md",
                "web/AGENTS.md",
                "a/b/AGENTS.md"
            ]
        );
    }
}
