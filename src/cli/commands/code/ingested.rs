//! `index ingest` and `index prune`: paths that are taken into the index of a folder, or left out.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::Config;
use crate::index::{Diff, Ingest, TakenIn};
use crate::plain::{agreeing, counted, printable};

/// Most bytes of a list of changes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Files that people are shown by name.
const SHOWN: usize = 20;

/// Takes paths in, and returns what is printed.
pub(super) async fn taken_in(
    config: &Config,
    root: &Path,
    (paths, diff): (Vec<String>, Option<PathBuf>),
    is_json: bool,
) -> Result<String, String> {
    let asked = Ingest {
        paths: below(root, paths)?,
        diff: diff.map(|file| read(&file)).transpose()?,
    };
    let opened = super::open(config, root).await?;
    let ingested = opened.ingest(&asked).await.map_err(|error| error.to_string())?;
    if is_json {
        return in_json(&ingested);
    }
    let places: usize = ingested.files.iter().map(|file| file.places).sum();
    let mut text = format!(
        "{} with {} {} in the index; {} {} parsed\n",
        counted(ingested.files.len(), "file"),
        counted(places, "place"),
        agreeing(ingested.files.len(), "is", "are"),
        ingested.parsed,
        agreeing(ingested.parsed, "was", "were")
    );
    for TakenIn { path, places } in ingested.files.iter().take(SHOWN) {
        let _ = writeln!(text, "{}: {}", printable(path), counted(*places, "place"));
    }
    if let Some(more) = ingested.files.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
    for path in &ingested.gone {
        let _ = writeln!(text, "{}: not there, and nothing of it is found", printable(path));
    }
    Ok(text)
}

/// Leaves paths out, and returns what is printed.
pub(super) async fn left_out(config: &Config, root: &Path, paths: &[String], is_json: bool) -> Result<String, String> {
    let paths = below(root, paths.to_vec())?;
    let opened = super::open(config, root).await?;
    let pruned = opened.prune(&paths).await.map_err(|error| error.to_string())?;
    if is_json {
        return in_json(&pruned);
    }
    Ok(format!(
        "{} {} left out of every answer until `coding-agent index ingest` takes {} in again",
        counted(pruned.files, "file"),
        agreeing(pruned.files, "is", "are"),
        agreeing(pruned.files, "it", "them")
    ))
}

/// Returns paths relative to the root; those that begin with it are written so by shells.
fn below(root: &Path, paths: Vec<String>) -> Result<Vec<String>, String> {
    let folder = root.canonicalize().map_err(|error| {
        format!(
            "the folder {}: {error}; name an existing folder with --root",
            root.display()
        )
    })?;
    let relative = paths.into_iter().map(|path| {
        let inside = Path::new(&path).strip_prefix(&folder).ok();
        inside
            .and_then(Path::to_str)
            .filter(|inside| !inside.is_empty())
            .map_or_else(|| path.clone(), str::to_owned)
    });
    Ok(relative.collect())
}

fn read(file: &Path) -> Result<Diff, String> {
    let (name, mut text) = (file.display(), String::new());
    let read = if file == Path::new("-") {
        stdin().lock().take(LARGEST).read_to_string(&mut text)
    } else {
        File::open(file).and_then(|file| file.take(LARGEST).read_to_string(&mut text))
    };
    read.map_err(|error| format!("--diff {name}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| {
        format!("--diff {name}: {error}; it is JSON such as {{\"modified\": [\"a.py\"], \"renamed\": [{{\"from\": \"b.py\", \"to\": \"c.py\"}}]}}")
    })
}

fn in_json(answer: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}
