//! Whole comments, composed as the program composes them and judged as the forges render them.

use coding_agent::agent::record::hold_reason::HoldReason;
use coding_agent::agent::record::{Failure, HeldResult, KeptWork, Paused, PausedBy, Record, SavedWork, WorkFile};
use coding_agent::agent::services::{ReviewSettings, Settings};
use coding_agent::agent::settings::ChangeRequests;
use coding_agent::agent::settings::Planning;
use coding_agent::agent::settings::Steering;
use coding_agent::agent::text::change_request;
use coding_agent::agent::text::comments;
use coding_agent::agent::text::replies;
use coding_agent::agent::text::template;
use coding_agent::approval;
use coding_agent::markdown::compose::Page;
use coding_agent::plan::{Plan, Subtask, TaskDecomposition};
use coding_agent::review::document::Document;
use coding_agent::review::evidence::Known;
use coding_agent::review::{Analysis, Blocker, Review};
use coding_agent::secret::Redactor;
use coding_agent::task::labels::Labels;
use coding_agent::task::state::{Stage, State};
use comrak::nodes::NodeValue;
use comrak::{Arena, Options, parse_document};

use super::text;

/// The elements of HTML that the program writes.
const OWN: [&str; 7] = [
    "<details>",
    "</details>",
    "<summary>",
    "</summary>",
    "<sub>",
    "</sub>",
    "<br>",
];
/// The character without width that the program puts into texts.
const GAP: char = '\u{200b}';
const ADDRESS: &str = "https://forge.example/acme/widgets/pull/2";

/// Writes the comments of a run in which strangers' words stand wherever they can.
pub fn comments(bytes: &[u8]) {
    let text = text(bytes);
    let parts: Vec<&str> = text.split("%%%").collect();
    let part = |number: usize| parts[number % parts.len()].to_owned();
    let record = record(&part);
    let settings = settings();
    let labels = Labels::default();
    let run = "0198c0de-0000-7000-8000-000000000000".parse();
    let Ok(run) = run else { return };
    for state in [
        State::Working,
        State::Done,
        State::Failed,
        State::Paused(Stage::Working),
    ] {
        judged(&comments::progress(run, state, &record, &settings, &labels)).has(&["model turn"]);
    }
    let done = judged(&comments::done(&record, &settings));
    done.has(&["Nothing was checked", "model turn"]);
    let failure = Failure::of_task(part(2));
    let saved = SavedWork::Kept(KeptWork::File(WorkFile {
        file: part(3),
        reference: part(1),
    }));
    let failed = comments::failed(&failure, &record, &settings, &labels.trigger, Some(&saved));
    judged(&failed).has(&[
        "This could not be done",
        "commits of a fork are never pushed",
        "To start a new run",
    ]);
    let mut denied = record.clone();
    denied.delivered.denial = Some(part(2));
    let stopped = replies::stopped(&part(0), Some(&saved), &denied, &settings, &part(1));
    judged(&stopped).has(&["The result was not approved", "To start a new run"]);
    for saved in [None, Some(&saved)] {
        judged(&replies::withdrawn(&part(1), State::Stopped, saved, &record, &part(0)));
    }
    judged(&comments::turned_away(Some(&part(0)), &part(1)));
    judged(&change_request::about(&record));
    judged(&change_request::thread_answer(&record));
    for is_follow_up in [true, false] {
        let standing = change_request::standing(&record, &settings, None, (run, is_follow_up));
        judged(&standing).has(&["Nothing was checked", "model turn"]);
    }
    for page in template::pages(&part(3)) {
        judged(&page);
    }
    if let Some(question) = replies::set_aside(&record, &settings, &part(0)) {
        judged(&question).has(&["resumes it", "model turn"]);
    }
    if let Some(question) = replies::set_aside(&held_back(&record, &part), &settings, &part(0)) {
        judged(&question).has(&[
            "It needs your approval",
            "An approval pushes",
            "ends it",
            "What would be pushed",
        ]);
    }
}

/// Returns the record of a run whose result waits for approval.
fn held_back(record: &Record, part: &dyn Fn(usize) -> String) -> Record {
    let mut held = record.clone();
    held.waiting.paused = Some(Paused {
        by: PausedBy::Objections(Box::new(HeldResult {
            objections: vec![
                HoldReason::Protected { path: part(0) },
                HoldReason::Protected { path: part(1) },
            ],
            diff: part(2),
            ..HeldResult::default()
        })),
        at: chrono::DateTime::default(),
        saved: None,
    });
    held
}

fn record(part: &dyn Fn(usize) -> String) -> Record {
    let subtask = |number: usize| Subtask {
        id: number.to_string(),
        description: part(number),
        ..Subtask::default()
    };
    let mut record = Record::default();
    record.request.title = part(0);
    record.planned.plan = Some(Plan {
        comment: part(0),
        task_decomposition: TaskDecomposition {
            subtasks: (0..3).map(subtask).collect(),
            ..TaskDecomposition::default()
        },
        ..Plan::default()
    });
    record.planned.environment = Some(part(3));
    record.worked.doing = part(1);
    record.thread.notes = vec![part(2), part(3)];
    record.reviewed.faults = vec![vec![part(1)]];
    let reviews = [&mut record.reviewed.plan, &mut record.reviewed.result];
    for (number, reviews) in reviews.into_iter().enumerate() {
        let document = Document::of_lines("a plan");
        reviews.record(&document, Ok(review(&|at| part(at + number))), &Known::default());
        reviews.send_back();
        reviews.record(&document, Err(part(2)), &Known::default());
    }
    record.worked.turns = 1;
    record.worked.summary = Some(part(1));
    record.waiting.paused = Some(Paused {
        by: PausedBy::Question(part(2)),
        at: chrono::DateTime::default(),
        saved: Some(SavedWork::Branch(part(0))),
    });
    record
}

/// Returns a review that says the parts in each of its fields.
fn review(part: &dyn Fn(usize) -> String) -> Review {
    Review {
        conclusion: part(0),
        rationale: part(1),
        analysis: Analysis {
            strengths: vec![part(2)],
            weaknesses: vec![part(3), part(0)],
        },
        recommendations: vec![part(1)],
        blockers: vec![Blocker {
            claim: part(2),
            evidence: vec![part(3)],
            why: part(0),
        }],
        technical_notes: part(1),
        ..Review::default()
    }
}

fn settings() -> Settings {
    Settings {
        state_dir: "/state".into(),
        outputs_dir: "/outputs".into(),
        program: "/program".into(),
        max_turns: 1,
        prices: coding_agent::llm::config::PriceList::default(),
        budget: coding_agent::agent::record::budget::Budget::default(),
        change_requests: ChangeRequests::default(),
        planning: Planning::default(),
        steering: Steering::default(),
        approval: approval::config::Config::default(),
        repository: coding_agent::repository::Config::default(),
        max_work_bytes: 0,
        mcp_servers: Vec::new(),
        mcp_schema_bytes: 0,
        edits: coding_agent::llm::config::Edits::Auto,
        health: None,
        index: coding_agent::index::Config::default(),
        review: ReviewSettings::default(),
        system_prompt: coding_agent::agent::prompt::system_prompt::SHIPPED.into(),
    }
}

/// The parts of a page that people see.
pub struct Shown {
    pub markdown: String,
    /// The text that is no code, with a line for each line and block.
    text: String,
    code: String,
}

impl Shown {
    fn has(&self, sentences: &[&str]) {
        for sentence in sentences {
            assert!(
                self.text.contains(sentence),
                "{sentence:?} is hidden in {:?}",
                self.markdown
            );
        }
    }

    /// Returns everything that can be read, but for spaces.
    pub fn words(&self) -> (String, String) {
        let bare = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect();
        (bare(&self.text), bare(&self.code))
    }
}

/// Judges a page in the dialects of GitHub and GitLab, and returns what it shows.
pub fn judged(page: &Page) -> Shown {
    let markdown = page.written(&Redactor::new(&[])).into_string();
    let github = shown(&markdown, &dialect(false));
    let gitlab = shown(&markdown, &dialect(true));
    assert_eq!(github.words(), gitlab.words(), "the forges differ about {markdown:?}");
    github
}

fn dialect(is_gitlab: bool) -> Options<'static> {
    let mut options = Options::default();
    let extension = &mut options.extension;
    extension.strikethrough = true;
    extension.table = true;
    extension.autolink = true;
    extension.tasklist = true;
    extension.footnotes = true;
    extension.alerts = true;
    extension.math_dollars = true;
    extension.math_code = true;
    extension.multiline_block_quotes = is_gitlab;
    extension.wikilinks_title_before_pipe = is_gitlab;
    options.parse.relaxed_autolinks = is_gitlab;
    options
}

fn shown(markdown: &str, options: &Options) -> Shown {
    let arena = Arena::new();
    let page = format!("{markdown}\n\nWhatStandsBelow");
    let mut shown = Shown {
        markdown: markdown.to_owned(),
        text: String::new(),
        code: String::new(),
    };
    let mut blocks = Vec::new();
    for node in parse_document(&arena, &page, options).descendants() {
        let node = node.data.borrow();
        match &node.value {
            NodeValue::Text(text) => shown.text.push_str(text),
            NodeValue::Code(code) => {
                shown.text.push('\0');
                shown.code.push_str(&code.literal);
            }
            NodeValue::CodeBlock(block) => {
                shown.code.push_str(&block.literal);
                blocks.push((node.sourcepos.start.line, node.sourcepos.end.line));
            }
            NodeValue::HtmlBlock(html) => shown.text.push_str(&without_own(&html.literal, markdown)),
            NodeValue::HtmlInline(html) => shown.text.push_str(&without_own(html, markdown)),
            NodeValue::Link(link) => assert_eq!(link.url, ADDRESS, "a link leads out in {markdown:?}"),
            NodeValue::Document
            | NodeValue::BlockQuote
            | NodeValue::List(_)
            | NodeValue::Item(_)
            | NodeValue::TaskItem(_)
            | NodeValue::Paragraph
            | NodeValue::Heading(_)
            | NodeValue::ThematicBreak
            | NodeValue::Table(_)
            | NodeValue::TableRow(_)
            | NodeValue::TableCell
            | NodeValue::SoftBreak
            | NodeValue::LineBreak => shown.text.push('\n'),
            // What is left out of the text marks where a word ends.
            NodeValue::Emph | NodeValue::Strong => shown.text.push('\0'),
            other => panic!("{other:?} is in {markdown:?}"),
        }
    }
    assert!(
        shown.text.ends_with("\nWhatStandsBelow"),
        "what stands below is hidden by {markdown:?}"
    );
    assert!(!commands(markdown, &blocks), "a bot is commanded by {markdown:?}");
    assert!(!calls_somebody(&shown.text), "somebody is called by {markdown:?}");
    assert!(!refers(&shown.text), "something is referred to by {markdown:?}");
    shown.text = shown.text.replace([GAP, '\0'], "");
    shown
}

/// Returns what a page shows of HTML.
fn without_own(html: &str, markdown: &str) -> String {
    let text = OWN.iter().fold(html.to_owned(), |text, tag| text.replace(tag, "\n"));
    assert!(!text.contains('<'), "{html:?} is no text in {markdown:?}");
    text
}

fn calls_somebody(text: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices('@').any(|(at, _)| {
        let follows = text[at + 1..].starts_with(is_name);
        follows && !text[..at].ends_with(is_name)
    })
}

/// Tells whether a text has numbers of items, or of what GitLab numbers besides.
fn refers(text: &str) -> bool {
    text.match_indices(['#', '!', '&', '%', '$', '~'])
        .any(|(at, _)| text[at + 1..].starts_with(|next: char| next.is_ascii_digit()) && !text[at..].starts_with("$0."))
        || text
            .match_indices("GH-7")
            .any(|(at, _)| !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric() || before == '_'))
}

/// Tells whether a line outside of blocks of code begins with a command.
fn commands(markdown: &str, blocks: &[(usize, usize)]) -> bool {
    let is_code = |number: usize| blocks.iter().any(|(first, last)| (*first..=*last).contains(&number));
    let mut lines = markdown.lines().enumerate().filter(|(at, _)| !is_code(at + 1));
    lines.any(|(_, line)| {
        let line = line.trim_start_matches([' ', '\t', '>', '-', '*', '+']);
        let word = line.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
        word.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()))
    })
}
