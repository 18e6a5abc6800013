//! Finds a project's own template of change requests, in the commit that the work began from: the
//! work itself cannot choose it.

use std::path::Path;

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::project_rules::MOST_FILES;
use crate::agent::workspace::source;
use crate::repository::reading::files::TreeEntry;
use crate::task::id::ItemKind;

/// A larger file was not written as a template.
const LARGEST: u64 = 64 * 1024;

/// Places of GitHub, the first that is there counts; a place that ends with `/` is a folder of
/// several, of which the one for all cases is taken, or the only one.
const ON_GITHUB: [&str; 6] = [
    ".github/pull_request_template.md",
    "pull_request_template.md",
    "docs/pull_request_template.md",
    ".github/pull_request_template/",
    "pull_request_template/",
    "docs/pull_request_template/",
];
const ON_GITLAB: [&str; 1] = [".gitlab/merge_request_templates/default.md"];
/// Names of a template for all cases within a folder.
const FOR_ALL: [&str; 2] = ["pull_request_template.md", "default.md"];

/// Returns the template of the run's project, if it has one that can be read.
pub(super) async fn read(run: &mut Run, kind: ItemKind) -> Result<Option<String>, Interruption> {
    let Some(base) = run.claim.record.planned.base.as_ref().map(|base| base.commit.clone()) else {
        return Ok(None);
    };
    let mirror = source::mirror_at_hand(run).await?;
    let (files, _) = mirror.files(&base, MOST_FILES).await?;
    let Some(found) = template(&files, kind) else {
        return Ok(None);
    };
    let bytes = mirror.file(&base, &found.path, LARGEST).await?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn template(files: &[TreeEntry], kind: ItemKind) -> Option<&TreeEntry> {
    let places: &[&str] = match kind {
        ItemKind::MergeRequest => &ON_GITLAB,
        ItemKind::Issue => &ON_GITHUB,
    };
    let usable = |file: &&TreeEntry| !file.is_link && file.size <= LARGEST;
    places.iter().find_map(|place| {
        let below = files.iter().filter(usable).filter(|file| is_at(&file.path, place));
        let below: Vec<&TreeEntry> = below.collect();
        match below[..] {
            [only] => Some(only),
            _ => below.into_iter().find(|file| is_for_all(&file.path)),
        }
    })
}

fn is_for_all(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    FOR_ALL.contains(&name.as_str())
}

/// Tells whether a file is at a place, or in it, in any case: forges ignore it.
fn is_at(path: &str, place: &str) -> bool {
    let path = path.to_lowercase();
    match path.strip_prefix(place) {
        Some("") => true,
        Some(name) => {
            let is_markdown = Path::new(name).extension().is_some_and(|end| end == "md");
            place.ends_with('/') && is_markdown && !name.contains('/')
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(paths: &[&str], kind: ItemKind) -> Option<String> {
        let file = |path: &&str| TreeEntry {
            path: (*path).to_owned(),
            object: String::new(),
            size: 10,
            is_link: false,
        };
        let files: Vec<TreeEntry> = paths.iter().map(file).collect();
        template(&files, kind).map(|file| file.path.clone())
    }

    #[test]
    fn a_template_is_found_at_its_usual_places() {
        for (paths, wanted) in [
            (
                &["docs/pull_request_template.md", ".github/PULL_REQUEST_TEMPLATE.md"][..],
                Some(1),
            ),
            (&["PULL_REQUEST_TEMPLATE/one.md"], Some(0)),
            (
                &[
                    ".github/PULL_REQUEST_TEMPLATE/a.md",
                    ".github/PULL_REQUEST_TEMPLATE/b.md",
                ],
                None,
            ),
            (
                &[
                    ".github/PULL_REQUEST_TEMPLATE/a.md",
                    ".github/PULL_REQUEST_TEMPLATE/Default.md",
                ],
                Some(1),
            ),
            (
                &[
                    "src/pull_request_template.md",
                    ".gitlab/merge_request_templates/Default.md",
                ],
                None,
            ),
        ] {
            let wanted = wanted.map(|index: usize| paths[index].to_owned());
            assert_eq!(chosen(paths, ItemKind::Issue), wanted);
        }
        let on_gitlab = [
            ".gitlab/merge_request_templates/bug.md",
            ".gitlab/merge_request_templates/Default.md",
        ];
        assert_eq!(
            chosen(&on_gitlab, ItemKind::MergeRequest).as_deref(),
            Some(on_gitlab[1])
        );
    }
}
