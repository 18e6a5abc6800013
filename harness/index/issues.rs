//! Files by the texts of issues.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use coding_agent::index::evidence;
use coding_agent::index::{Hit, Index, Reranker, Wanted};
use coding_agent::llm::config::Config;
use coding_agent::llm::models::Models;
use coding_agent::plan::evidence::Citation;
use coding_agent::repository::CommitId;
use coding_agent::secret::Redactor;
use serde_json::json;

use super::cases::{Issue, variable};
use super::judge::{HEAD, Score};
use super::opened::Opened;

/// The number of places of an answer; each file has at most three.
const PLACES: usize = 60;
/// The number of places of each answer that are cited, as a plan cites them.
const CITED: usize = 5;
/// The seconds that a model of embeddings may take for the places of one issue.
const PATIENCE: u64 = 1_800;

/// The scores of the issues.
#[derive(Default)]
struct Measured {
    /// The score over the code without tests; `everything` has that over all files.
    code: Score,
    everything: Score,
    /// The score over the code for every other issue: weights are chosen on the first half and
    /// confirmed on the second.
    halves: [Score; 2],
    /// The number of places that were cited; `there` counts those that exist at their commit.
    cited: usize,
    there: usize,
    /// The model of EMBEDDINGS, which reorders the places; `reordered` is the score over the code
    /// then.
    reranker: Option<Reranker>,
    reordered: Score,
}

/// Looks for the files of each issue, over the code without tests and over everything.
pub async fn measure(issues: &[Issue]) -> anyhow::Result<()> {
    let mut by_repository: BTreeMap<&Path, Vec<&Issue>> = BTreeMap::new();
    for issue in issues {
        by_repository.entry(&issue.folder).or_default().push(issue);
    }
    let mut measured = Measured {
        reranker: reranker().await?,
        ..Measured::default()
    };
    let mut number = 0;
    for (folder, issues) in by_repository {
        let opened = Opened::of(folder).await?;
        for issue in issues {
            measured.take(&opened, issue, number).await?;
            number += 1;
        }
    }
    println!("\nFiles by the text of an issue that they were changed for\n\n{HEAD}");
    for (score, name) in [
        (&measured.code, "index, Python files without tests"),
        (&measured.halves[0], "of these, the half on which weights were chosen"),
        (&measured.halves[1], "of these, the half on which they were confirmed"),
        (&measured.everything, "index, all files"),
    ] {
        println!("{}", score.row(name));
    }
    if measured.reranker.is_some() {
        println!(
            "{}",
            measured
                .reordered
                .row("index, Python files without tests, reordered by embeddings")
        );
    }
    println!("| *target* | | .50 | | .82 | .90 | .65 |");
    println!(
        "\nPlaces of these answers that exist at their commit: {} of {}",
        measured.there, measured.cited
    );
    Ok(())
}

/// Returns the model that EMBEDDINGS and MODEL name, which must answer: where it does not, places stay
/// in the order of the words, and that would be measured.
async fn reranker() -> anyhow::Result<Option<Reranker>> {
    let (Some(url), Some(model)) = (variable("EMBEDDINGS"), variable("MODEL")) else {
        return Ok(None);
    };
    let models = json!({"vectors": {
        "provider": "openai", "base_url": url, "model": model, "timeout_seconds": PATIENCE}});
    let mut config: Config = serde_json::from_value(json!({ "models": models }))?;
    config.embeddings = Some("vectors".to_owned());
    let Some(model) = Models::new(&config)?.embedder(None) else {
        return Ok(None);
    };
    let redactor = Redactor::default();
    let probe = model.embed(&[redactor.clean("def close_adapter(self):")]).await;
    probe.with_context(|| format!("EMBEDDINGS={url} MODEL={model}", model = model.name()))?;
    Ok(Some(Reranker {
        model,
        redactor: Arc::new(redactor),
    }))
}

impl Measured {
    async fn take(&mut self, opened: &Opened, issue: &Issue, number: usize) -> anyhow::Result<()> {
        let commit = issue.commit.parse()?;
        let hits = found(&opened.index, &commit, issue, &is_code).await?;
        let files = files(&hits);
        if variable("SHOW").is_some() {
            let place = files.iter().position(|path| issue.gold.contains(path));
            let first = &files[..files.len().min(3)];
            println!("{} {place:?} gold {:?} first {first:?}", issue.id, issue.gold);
        }
        self.code.take(&files, &issue.gold);
        self.halves[number % 2].take(&files, &issue.gold);
        for hit in hits.iter().take(CITED) {
            self.cited += 1;
            let holds = evidence::cited(&opened.mirror, &commit, &citation(hit)).await?.is_ok();
            self.there += usize::from(holds);
        }
        let hits = found(&opened.index, &commit, issue, &|_| true).await?;
        self.everything.take(&self::files(&hits), &issue.gold);
        if let Some(reranker) = &self.reranker {
            let index = opened.index.clone().reordered_by(Some(reranker.clone()));
            let hits = found(&index, &commit, issue, &is_code).await?;
            self.reordered.take(&self::files(&hits), &issue.gold);
        }
        Ok(())
    }
}

async fn found(
    index: &Index,
    commit: &CommitId,
    issue: &Issue,
    takes: &(dyn Fn(&str) -> bool + Send + Sync),
) -> anyhow::Result<Vec<Hit>> {
    let redactor = Redactor::default();
    let wanted = Wanted {
        question: &issue.text,
        top_k: PLACES,
        path_prefix: "",
        takes,
        redactor: &redactor,
    };
    Ok(index.search(commit, &wanted).await?)
}

/// Returns the files of places, each once, best first.
pub fn files(hits: &[Hit]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for hit in hits {
        if !files.contains(&hit.path) {
            files.push(hit.path.clone());
        }
    }
    files
}

/// Cites a place as a plan does.
fn citation(hit: &Hit) -> Citation {
    Citation {
        path: hit.path.clone(),
        lines: format!("{}-{}", hit.first, hit.last),
        why: String::new(),
    }
}

/// Tells whether a file counts where the files of tests, documents and others do not.
pub fn is_code(path: &str) -> bool {
    let is_test = path.split('/').any(|part| {
        matches!(part, "test" | "tests" | "testing") || part.starts_with("test_") || part.ends_with("_test.py")
    });
    path.rsplit('.').next() == Some("py") && !is_test
}
