//! The places that a plan rests on: looked up at the base commit, asked for again once where they
//! are wrong, and then marked.

use crate::agent::claim::Claim;
use crate::agent::prompt::places;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::sections::Evidence;
use crate::forge::Item;
use crate::index::evidence;
use crate::markdown::visible;
use crate::plan::Plan;
use crate::plan::evidence::Citation;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;

/// Records the evidence of a plan as it stands in the base.
pub(super) async fn check(
    claim: &mut Claim,
    mirror: &Mirror,
    commit: &CommitId,
    plan: &Plan,
) -> Result<(), Interruption> {
    let filter = claim.record.planned.rules.files.filter();
    let mut checked = Vec::new();
    for citation in &plan.evidence {
        let fault = if filter.takes(&citation.path) {
            evidence::cited(mirror, commit, citation)
                .await?
                .err()
                .map(|fault| fault.to_string())
        } else {
            Some("the project's rules leave this file out".to_owned())
        };
        checked.push(Evidence {
            cited: citation.clone(),
            link: link(&claim.record.planned.files_url, citation).filter(|_| fault.is_none()),
            fault,
        });
    }
    claim.record.planned.evidence = checked;
    Ok(())
}

/// Returns the message about evidence that does not hold; `None` if all of it does.
pub(super) fn doubts(claim: &Claim) -> Option<String> {
    let evidence = claim.record.planned.evidence.iter();
    let faults: Vec<String> = evidence
        .filter_map(|evidence| Some(format!("{}: {}", evidence.cited.place(), evidence.fault.as_ref()?)))
        .collect();
    (!faults.is_empty()).then(|| places::doubtful(&faults))
}

/// Returns where the files of a commit can be looked at, by the address of the item's page.
pub(super) fn files_url(item: &Item, commit: &CommitId) -> String {
    let home = match &item.change {
        Some(change) if change.is_fork => change.head_clone_url.trim_end_matches(".git"),
        _ => item
            .url
            .split_once("/-/")
            .map(|(home, _)| home)
            .or_else(|| Some(item.url.rsplit_once('/')?.0.rsplit_once('/')?.0))
            .unwrap_or_default(),
    };
    let is_address = home.starts_with("https://") || home.starts_with("http://");
    let folder = if item.url.contains("/-/") { "/-/blob" } else { "/blob" };
    if is_address {
        format!("{home}{folder}/{commit}/")
    } else {
        String::new()
    }
}

fn link(files_url: &str, citation: &Citation) -> Option<String> {
    if files_url.is_empty() {
        return None;
    }
    let path: String = citation
        .path
        .bytes()
        .map(|byte| match byte {
            b'/' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let separator = if files_url.contains("/-/blob/") { "-" } else { "-L" };
    let lines = match citation.lines() {
        Some((first, last)) if first == last => format!("#L{first}"),
        Some((first, last)) => format!("#L{first}{separator}{last}"),
        None => String::new(),
    };
    Some(visible::line(&format!("{files_url}{path}{lines}")))
}

#[cfg(test)]
mod tests {
    use super::{Citation, link};

    #[test]
    fn links_have_the_form_of_each_forge() {
        let citation = |path: &str, lines: &str| Citation {
            path: path.to_owned(),
            lines: lines.to_owned(),
            why: String::new(),
        };
        let of = |url, citation| link(url, &citation).unwrap();
        assert_eq!(
            of("https://github.com/o/r/blob/abc/", citation("src/a b.py", "3-9")),
            "https://github.com/o/r/blob/abc/src/a%20b.py#L3-L9"
        );
        assert_eq!(
            of("https://lab.test/g/r/-/blob/abc/", citation("a.py", "3-9")),
            "https://lab.test/g/r/-/blob/abc/a.py#L3-9"
        );
        assert_eq!(
            of("https://github.com/o/r/blob/abc/", citation("a.py", "7")),
            "https://github.com/o/r/blob/abc/a.py#L7"
        );
        assert_eq!(link("", &citation("a.py", "")), None);
    }
}
