//! Submodules of the project: fetches those that may be fetched, and says which folders are empty.

use std::fmt::Write as _;

use url::Url;

use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::source::Source;
use crate::plain::printable;
use crate::repository::CommitId;
use crate::repository::reading::submodules::Submodule;

/// Number of submodules that the model is told by name.
const MOST_NAMED: usize = 30;

/// Fetches the contents of the commit's submodules as far as that is allowed. Returns what the
/// model is told of them; empty for a project without any.
pub(crate) async fn fetch(run: &mut Run, source: &Source, commit: &CommitId) -> Result<String, Interruption> {
    let submodules = source.mirror.submodules(commit).await?;
    let settings = &run.claim.services.settings;
    let login = source.remote.as_ref().and_then(|remote| remote.login.as_ref());
    let mut told = Vec::new();
    for submodule in submodules {
        let fetching = source
            .mirror
            .fetch_submodule(&settings.repository, &settings.state_dir, login, &submodule);
        let why_not = run.claim.unless_stopped(Box::pin(fetching)).await?;
        told.push((submodule, why_not));
    }
    Ok(text(&prompt::fence(run.claim.lease.run), &told))
}

/// Returns the text for the model; paths and addresses are text from outside as well.
fn text(fence: &str, submodules: &[(Submodule, Option<String>)]) -> String {
    if submodules.is_empty() {
        return String::new();
    }
    let mut text =
        "\nThis project has submodules, which belong to other repositories: changes there cannot be delivered, and \
         which commit of them the project uses cannot be changed.\n"
            .to_owned();
    let _ = writeln!(text, "<{fence}>");
    for (submodule, why_not) in submodules.iter().take(MOST_NAMED) {
        let place = submodule.url.as_deref().map_or_else(String::new, shown);
        let state = match why_not {
            None => "its files are there".to_owned(),
            Some(reason) => format!("its folder is empty: {reason}"),
        };
        let line = format!("{}{place}: {state}", submodule.path);
        let _ = writeln!(text, "{}", printable(&line));
    }
    if submodules.len() > MOST_NAMED {
        let _ = writeln!(text, "[... {} more ...]", submodules.len() - MOST_NAMED);
    }
    let _ = writeln!(text, "</{fence}>");
    text
}

/// Returns an address in brackets, without a login that may stand in it.
fn shown(url: &str) -> String {
    let shown = match Url::parse(url) {
        Ok(mut parsed) => {
            let _ = parsed.set_username("");
            let _ = parsed.set_password(None);
            parsed.to_string()
        }
        // Relative, or the short form of ssh.
        Err(_) => url.to_owned(),
    };
    format!(" ({shown})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_told_which_folders_are_empty() {
        let submodule = |path: &str, url: Option<&str>| Submodule {
            path: path.to_owned(),
            url: url.map(str::to_owned),
            commit: CommitId::nothing(),
        };
        assert_eq!(text("data", &[]), "");
        insta::assert_snapshot!(
            text("data", &[
                (submodule("lib", Some("../lib.git")), None),
                (submodule("far\n", Some("https://me:word@far.example/far.git")), Some("it is not on the same forge".to_owned())),
                (submodule("lost", None), Some("it is not on the same forge".to_owned())),
            ]),
            @"

        This project has submodules, which belong to other repositories: changes there cannot be delivered, and which commit of them the project uses cannot be changed.
        <data>
        lib (../lib.git): its files are there
        far\u{fffd} (https://far.example/far.git): its folder is empty: it is not on the same forge
        lost: its folder is empty: it is not on the same forge
        </data>
        "
        );
    }
}
