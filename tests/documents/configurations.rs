//! Every text that people copy into config.yaml is a configuration, by itself and put together as
//! the README says.

use coding_agent::config::Config;

use crate::{blocks, documents, read};

/// Returns the YAML blocks of a document, without what a list indents them by.
fn yaml_in(path: &str) -> Vec<String> {
    let blocks = blocks(&read(path)).into_iter().filter(|(kind, _)| kind == "yaml");
    blocks.map(|(_, block)| undented(&block)).collect()
}

fn undented(block: &str) -> String {
    let indents = block.lines().filter(|line| !line.trim().is_empty());
    let indent = indents
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let lines = block.lines().map(|line| line.get(indent..).unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Loads a text as config.yaml, on a machine where the secrets that it names are.
fn loaded(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let secrets = [
        "github-token",
        "gitlab-token",
        "gitlab_token",
        "anthropic_api_key",
        "slack-app-token",
        "slack-bot-token",
        "store_password",
    ];
    for name in secrets {
        std::fs::write(folder.path().join(name), "a-token").unwrap();
    }
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, text.replace("/run/secrets", place)).unwrap();
    let faults = Config::load(&file, &|name| Some(format!("nobody-guesses-{name}")));
    faults.map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn every_piece_of_configuration_in_the_documents_is_one() {
    let guides = documents().into_iter();
    let guides = guides.filter(|path| path.starts_with("docs/how-to/") || path.starts_with("docs/tutorial"));
    let long = ["README.md", "README.ja.md", "docs/configuration.md"].map(|path| (path.to_owned(), 3));
    let long = long.into_iter().chain([("docs/operations.md".to_owned(), 1)]);
    for (path, least) in long.chain(guides.map(|path| (path, 1))) {
        let pieces = yaml_in(&path);
        assert!(pieces.len() >= least, "{path} has {} pieces", pieces.len());
        for piece in pieces {
            if let Err(faults) = loaded(&piece) {
                // This program may be one that was built without clusters, and then says so alone.
                let is_whole = cfg!(feature = "kubernetes") || !piece.contains("engine: kubernetes");
                let says_so = faults.lines().count() == 1 && faults.contains("--features kubernetes");
                if !is_whole && says_so {
                    continue;
                }
                panic!("{path}:\n{piece}\n{faults}");
            }
        }
    }
}

#[test]
fn the_readme_sets_up_a_forge_and_a_model_that_run_can_work_with() {
    let pieces = yaml_in("README.md");
    let (models, forges): (Vec<_>, Vec<_>) = pieces.into_iter().partition(|piece| piece.starts_with("llm:"));
    assert_eq!((forges.len(), models.len()), (2, 1));
    for forge in forges {
        let config = loaded(&format!("{forge}{}", models[0])).unwrap();
        assert_eq!(config.missing_source(), None);
        assert_eq!(config.doubts(), Vec::<String>::new());
    }
}
