//! Tools that look into the code index: places by the words of a question, what a file defines,
//! who uses a name. They show what the project's rules let a model see, and change nothing.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::conversation::ToolSpec;
use crate::index::{Definition, Hit, Index, IndexError, PLACES, Wanted};
use crate::plain::printable;
use crate::repository::CommitId;
use crate::rules::{Files, Filter};
use crate::secret::Redactor;
use crate::tool::{ToolError, ToolOutput, ToolServer, own_spec, read_args};
use crate::workspace::tools::path_filter::{within_project, without_root};

const NAME: &str = "repository";
pub(crate) const SEARCH_CODE: &str = "search_code";
pub(crate) const OUTLINE: &str = "outline";
pub(crate) const WHO_USES: &str = "who_uses";

/// Most places of an answer.
const MOST_PLACES: usize = 20;
/// Lines of a place that are shown.
const LINES: usize = 4;
const LONGEST_LINE: usize = 160;
const MOST_DEFINITIONS: usize = 300;

/// The index of one commit, without files that the project's rules exclude.
#[derive(Clone)]
pub struct CodeSearch {
    index: Index,
    commit: CommitId,
    filter: Arc<Filter>,
    redactor: Arc<Redactor>,
}

/// The tool of the worker: `repository/search_code` alone.
pub struct CodeSearchServer(pub CodeSearch);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchCode {
    /// Words, names, or the whole question.
    query: String,
    /// Number of places; 8 when left out.
    #[serde(default)]
    top_k: Option<usize>,
    /// Only files whose paths begin so.
    #[serde(default)]
    path_prefix: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outline {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhoUses {
    /// Name of a function, class or the like.
    name: String,
}

impl CodeSearch {
    pub fn new(index: Index, commit: CommitId, files: &Files, redactor: Arc<Redactor>) -> Self {
        Self {
            index,
            commit,
            filter: Arc::new(files.filter()),
            redactor,
        }
    }

    /// Returns the best places for a question.
    pub async fn places(&self, question: &str, top_k: usize) -> Result<Vec<Hit>, IndexError> {
        self.found(question, top_k, "").await
    }

    /// Returns the number of files of the commit.
    pub async fn count_files(&self) -> Result<usize, IndexError> {
        Ok(self.index.counts(&self.commit).await?.files)
    }

    /// Returns what most files refer to, with the number of these files.
    pub async fn most_referred(&self, limit: usize) -> Result<Vec<(Definition, usize)>, IndexError> {
        let found = self.index.most_referred(&self.commit, limit).await?;
        Ok(found
            .into_iter()
            .filter(|(definition, _)| self.filter.takes(&definition.path))
            .collect())
    }

    async fn found(&self, query: &str, top_k: usize, path_prefix: &str) -> Result<Vec<Hit>, IndexError> {
        let wanted = Wanted {
            question: query,
            top_k,
            path_prefix,
            takes: &|path| self.filter.takes(path),
            redactor: &self.redactor,
        };
        self.index.search(&self.commit, &wanted).await
    }

    /// Answers a call of one of the tools.
    pub(crate) async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<String, ToolError> {
        match tool {
            SEARCH_CODE => self.search_code(read_args(args)?).await,
            OUTLINE => self.outline(read_args(args)?).await,
            _ => self.who_uses(read_args(args)?).await,
        }
    }

    async fn search_code(&self, args: SearchCode) -> Result<String, ToolError> {
        let top_k = args.top_k.unwrap_or(PLACES).clamp(1, MOST_PLACES);
        let prefix = args.path_prefix.as_deref().map(beneath_root).unwrap_or_default();
        let hits = self.found(&args.query, top_k, &prefix).await.map_err(for_model)?;
        if hits.is_empty() {
            return Ok("no place has these words".to_owned());
        }
        Ok(hits.iter().map(|hit| shown(hit, LINES)).collect())
    }

    async fn outline(&self, args: Outline) -> Result<String, ToolError> {
        let path = beneath_root(&args.path);
        let found = if self.filter.takes(&path) {
            self.index.outline(&self.commit, &path).await.map_err(for_model)?
        } else {
            None
        };
        let Some(definitions) = found else {
            return Err(ToolError::TellModel(format!(
                "not_found 404: there is no file '{path}'"
            )));
        };
        if definitions.is_empty() {
            return Ok("it defines nothing that the index knows; use repository/read_file".to_owned());
        }
        let lines = definitions.iter().take(MOST_DEFINITIONS);
        Ok(lines.fold(String::new(), |mut text, found| {
            let _ = writeln!(text, "{}-{} {} {}", found.first, found.last, found.kind, found.name);
            text
        }))
    }

    async fn who_uses(&self, args: WhoUses) -> Result<String, ToolError> {
        let name = args.name.trim().trim_end_matches("()");
        let name = name.rsplit(['.', ':']).next().unwrap_or(name);
        let definitions = self.index.definitions(&self.commit, name).await.map_err(for_model)?;
        let takes = |path: &str| self.filter.takes(path);
        let uses = self.index.uses(&self.commit, name, &takes, &self.redactor).await;
        let uses = uses.map_err(for_model)?;
        let mut text = String::new();
        for found in definitions.iter().filter(|found| takes(&found.path)) {
            let _ = writeln!(
                text,
                "defined: {}:{}-{} {} {}",
                found.path, found.first, found.last, found.kind, found.name
            );
        }
        for used in &uses {
            let _ = writeln!(text, "{}:{}: {}", used.path, used.line, used.text);
        }
        if text.is_empty() {
            text.push_str("nothing defines, calls or imports this name; repository/search looks at all text");
        }
        Ok(text)
    }
}

/// Returns what each tool is for, for the planner.
pub(crate) fn specs() -> Vec<ToolSpec> {
    vec![
        own_spec::<SearchCode>(
            NAME,
            SEARCH_CODE,
            "Finds places that fit a question best; gives path:first-last.",
        ),
        own_spec::<Outline>(NAME, OUTLINE, "Lists what a file defines, with lines."),
        own_spec::<WhoUses>(NAME, WHO_USES, "Lists where a name is defined, called and imported."),
    ]
}

/// Returns a place with its first lines.
pub fn shown(hit: &Hit, lines: usize) -> String {
    let mut text = format!("{}:{}-{}", printable(&hit.path), hit.first, hit.last);
    for part in [&hit.kind, &hit.name] {
        if !part.is_empty() {
            let _ = write!(text, " {part}");
        }
    }
    text.push('\n');
    for line in hit.text.lines().filter(|line| !line.trim().is_empty()).take(lines) {
        let line: String = line.chars().take(LONGEST_LINE).collect();
        let _ = writeln!(text, "    {line}");
    }
    text
}

#[async_trait]
impl ToolServer for CodeSearchServer {
    fn name(&self) -> &str {
        NAME
    }

    fn system_prompt(&self) -> Option<&str> {
        None
    }

    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError> {
        Ok(vec![own_spec::<SearchCode>(
            NAME,
            SEARCH_CODE,
            "Finds the places of the project, as it was before the work, that fit a question best.",
        )])
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        if tool != SEARCH_CODE {
            return Err(ToolError::TellModel(format!(
                "{NAME} has no tool '{tool}'; it has {SEARCH_CODE}"
            )));
        }
        Ok(ToolOutput {
            text: self.0.call(tool, args).await?,
            is_error: false,
            structured: None,
        })
    }

    fn only_reads(&self, _tool: &str) -> bool {
        true
    }

    async fn close(&self) {}
}

/// Returns `path` relative to the root, which models also write as it is called in the container.
pub(crate) fn beneath_root(path: &str) -> String {
    let path = within_project(path).unwrap_or_else(|| path.to_owned());
    without_root(&path).map(str::to_owned).unwrap_or(path)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn for_model(error: IndexError) -> ToolError {
    ToolError::TellModel(format!("{error}; use repository/search and repository/read_file"))
}
