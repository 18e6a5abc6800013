//! Submodules of the project: fetches those that may be fetched, and says which folders are empty.

use std::fmt::Write as _;

use url::Url;

use crate::agent::claim::Claim;
use crate::agent::claim::git_login::login;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::Reporter;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::agent::workspace::source::Source;
use crate::forge::ForgeError;
use crate::plain::printable;
use crate::repository::git::address::{Login, Remote};
use crate::repository::mirror::Mirror;
use crate::repository::reading::submodules::Submodule;
use crate::repository::remote::submodules::Whereabouts;
use crate::repository::{CommitId, RepositoryError};

/// Number of submodules that the model is told by name.
const MOST_NAMED: usize = 30;

/// Fetches the contents of the commit's submodules as far as that is allowed. Returns what the
/// model is told of them; empty for a project without any.
pub(crate) async fn fetch(run: &mut Run, source: &Source, commit: &CommitId) -> Result<String, Interruption> {
    let mut told = Vec::new();
    for submodule in source.mirror.submodules(commit).await? {
        let why_not = match source.mirror.whereabouts(&submodule).await {
            Whereabouts::Here => None,
            Whereabouts::Nowhere(reason) => Some(reason.to_owned()),
            Whereabouts::There { url, repository } => {
                let own = source.remote.as_ref().and_then(|remote| remote.login.as_ref());
                let (login, refusal) = login_for(&run.reporter, &repository, own).await?;
                fetch_one(&run.claim, &Remote { url, login }, &submodule, refusal).await?
            }
        };
        told.push((submodule, why_not));
    }
    Ok(text(&prompt::fence(run.claim.lease.run), &told))
}

/// Returns the login for another repository of the forge. Where it gives none, that is the item's
/// `own`, which suffices for one that everybody may read, with the reason.
async fn login_for(
    reporter: &Reporter,
    repository: &str,
    own: Option<&Login>,
) -> Result<(Option<Login>, Option<String>), Interruption> {
    let ReportTarget::Item { forge, .. } = &reporter.destination else {
        return Ok((own.cloned(), None));
    };
    match forge.git_credentials_to_read(repository).await {
        Ok(credentials) => Ok((Some(login(credentials)), None)),
        Err(error @ (ForgeError::RateLimited { .. } | ForgeError::Unavailable { .. })) => Err(error.into()),
        Err(error) => Ok((own.cloned(), Some(error.to_string()))),
    }
}

/// Fetches a submodule. Returns in a few words why its files are not there, `None` if they are; the
/// `refusal` of a login for it says more than how git was refused without.
async fn fetch_one(
    claim: &Claim,
    remote: &Remote,
    submodule: &Submodule,
    refusal: Option<String>,
) -> Result<Option<String>, Interruption> {
    let settings = &claim.services.settings;
    let fetching = Mirror::fetch_submodule(&settings.repository, &settings.state_dir, remote, submodule);
    let fetched = Box::pin(async { Ok::<_, Interruption>(fetching.await) });
    match claim.unless_stopped(fetched).await? {
        Ok(true) => Ok(None),
        Ok(false) => Ok(Some("no branch or tag has its commit".to_owned())),
        Err(error @ RepositoryError::Unavailable { .. }) => Err(error.into()),
        Err(error) => Ok(Some(refusal.unwrap_or_else(|| error.to_string()))),
    }
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
