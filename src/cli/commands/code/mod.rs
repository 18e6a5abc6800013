//! `index` and `search`: the code index of a folder.

mod hook; // the git hook that marks what changed
mod ingested; // paths that are taken in, or left out
mod searched; // places, for people and for scripts

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use crate::cli::arguments::{IndexCommand, Search};
use crate::cli::exit;
use crate::cli::session::{complain, configuration_or_defaults, print};
use crate::config::Config;
use crate::index::{FolderIndex, IndexError, MARK};
use crate::plain::counted;
use crate::secret::Redactor;
pub(in crate::cli) use searched::reranker;

/// Brings the index of a folder up to date, or does what the command says.
pub async fn index(config: Option<&Path>, root: Option<PathBuf>, command: Option<IndexCommand>) -> ExitCode {
    let root = root.unwrap_or_else(|| PathBuf::from("."));
    on_folder(config, |config| async move {
        match command {
            None => brought_up(&config, &root).await,
            Some(IndexCommand::Status { json }) => status(&config, &root, json).await,
            Some(IndexCommand::InstallHook) => hook::install(&root),
            Some(IndexCommand::Ingest { paths, diff, json }) => {
                ingested::taken_in(&config, &root, (paths, diff), json).await
            }
            Some(IndexCommand::Prune { paths, json }) => ingested::left_out(&config, &root, &paths, json).await,
        }
    })
    .await
}

/// Searches the index of a folder, brought up to date.
pub async fn search(config: Option<&Path>, asked: Search) -> ExitCode {
    on_folder(config, |config| async move { searched::told(&config, &asked).await }).await
}

async fn on_folder<Told: Future<Output = Result<String, String>>>(
    config: Option<&Path>,
    tell: impl FnOnce(Config) -> Told,
) -> ExitCode {
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let redactor = Redactor::new(&config.secrets());
    match tell(config).await {
        Ok(text) => {
            print(text.trim_end());
            exit::SUCCESS.into()
        }
        Err(reason) => {
            complain(redactor.clean(&reason));
            exit::FAILED.into()
        }
    }
}

/// Opens the index of a folder.
async fn open(config: &Config, root: &Path) -> Result<FolderIndex, String> {
    let opened = FolderIndex::open(&config.index, &config.git, &config.state_dir, root).await;
    opened.map_err(|error| error.to_string())
}

async fn brought_up(config: &Config, root: &Path) -> Result<String, String> {
    let begun = Instant::now();
    let opened = open(config, root).await?;
    let in_words = |error: IndexError| error.to_string();
    let counts = opened.index.counts(&opened.commit).await.map_err(in_words)?;
    Ok(format!(
        "{}: {}, {}, {} ms",
        opened.folder.display(),
        counted(counts.files, "file"),
        counted(counts.places, "place"),
        begun.elapsed().as_millis()
    ))
}

async fn status(config: &Config, root: &Path, json: bool) -> Result<String, String> {
    let file = FolderIndex::file(&config.git, &config.state_dir, root).await;
    let file = file.map_err(|error| error.to_string())?;
    let bytes = file
        .as_ref()
        .and_then(|file| std::fs::metadata(file).ok())
        .map(|metadata| metadata.len());
    let git = root.join(".git");
    let (has_hook, is_marked) = (hook::is_installed(&git), git.join(MARK).is_file());
    if json {
        let file = file.map(|file| file.display().to_string());
        return Ok(
            serde_json::json!({"file": file, "bytes": bytes, "hook": has_hook, "changed": is_marked}).to_string(),
        );
    }
    let hook = match (has_hook, is_marked) {
        (true, true) => "the hook is installed, and something was committed since",
        (true, false) => "the hook is installed, and nothing was committed since",
        (false, _) => "the hook is not installed",
    };
    Ok(match (file, bytes) {
        (Some(file), Some(bytes)) => format!("{} ({bytes} bytes); {hook}", file.display()),
        _ => format!("there is no index of this folder yet: the first search makes it; {hook}"),
    })
}
