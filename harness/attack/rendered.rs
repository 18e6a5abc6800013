//! The bot's texts as the forges show them: read by a reader of Markdown that others wrote, in the
//! dialects of both.

use comrak::nodes::NodeValue;
use comrak::{Arena, Options, parse_document};

/// The only elements of HTML that may be there.
const ELEMENTS: [&str; 7] = [
    "<details>",
    "</details>",
    "<summary>",
    "</summary>",
    "<sub>",
    "</sub>",
    "<br>",
];
const BELOW: &str = "what stands below";

/// Returns what a text does besides being read. `own` is the number of the item that it may close.
pub fn effects(text: &str, own: u64) -> Vec<String> {
    let mut found = Vec::new();
    for is_gitlab in [false, true] {
        look(text, own, is_gitlab, &mut found);
    }
    found
}

/// Returns the source without its code, as a reader of Markdown finds it: backticks may stand in
/// code, too.
pub fn without_code(text: &str) -> String {
    let mut options = Options::default();
    options.extension.table = true;
    let arena = Arena::new();
    let mut lines: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
    for node in parse_document(&arena, text, &options).descendants() {
        let node = node.data.borrow();
        if !matches!(node.value, NodeValue::Code(_) | NodeValue::CodeBlock(_)) {
            continue;
        }
        let (start, end) = (node.sourcepos.start, node.sourcepos.end);
        for number in start.line..=end.line {
            let Some(line) = number.checked_sub(1).and_then(|at| lines.get_mut(at)) else {
                continue;
            };
            let first = if number == start.line {
                start.column.saturating_sub(1)
            } else {
                0
            };
            let last = if number == end.line { end.column } else { line.len() };
            let last = last.min(line.len());
            line[first.min(last)..last].fill(b' ');
        }
    }
    let lines = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn look(text: &str, own: u64, is_gitlab: bool, found: &mut Vec<String>) {
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.autolink = true;
    options.extension.footnotes = true;
    options.extension.alerts = true;
    options.extension.math_dollars = true;
    options.extension.math_code = true;
    options.extension.multiline_block_quotes = is_gitlab;
    options.extension.wikilinks_title_before_pipe = is_gitlab;
    options.parse.relaxed_autolinks = is_gitlab;
    let arena = Arena::new();
    let page = format!("{text}\n\n{BELOW}");
    let mut words = String::new();
    for node in parse_document(&arena, &page, &options).descendants() {
        match &node.data.borrow().value {
            NodeValue::Text(text) => words.push_str(text),
            NodeValue::HtmlBlock(html) => markup(&html.literal, found, &mut words),
            NodeValue::HtmlInline(html) => markup(html, found, &mut words),
            NodeValue::Image(link) => found.push(format!("loads {}", link.url)),
            NodeValue::Link(link)
                if !link.url.starts_with("http://127.0.0.1") && !link.url.starts_with("http://localhost") =>
            {
                found.push(format!("leads to {}", link.url));
            }
            NodeValue::CodeBlock(block) => {
                let language = block.info.to_lowercase();
                if ["mermaid", "math", "geojson", "topojson", "stl", "plantuml"].contains(&language.as_str()) {
                    found.push(format!("has the page draw {language}"));
                }
            }
            NodeValue::Math(_) | NodeValue::Alert(_) | NodeValue::FootnoteReference(_) | NodeValue::WikiLink(_) => {
                found.push("has a formula, an alert, a note or a page".to_owned());
            }
            NodeValue::Code(_) | NodeValue::Emph | NodeValue::Strong => words.push('\0'),
            _ => words.push('\n'),
        }
    }
    if !words.ends_with(BELOW) || words.ends_with(&format!("\0{BELOW}")) {
        found.push("hides what stands below".to_owned());
    }
    let words = words.replace(&format!("Closes #{own}"), "");
    let letters: Vec<char> = words.chars().collect();
    let calls = letters.windows(3).any(|three| {
        three[1] == '@' && !three[0].is_ascii_alphanumeric() && (three[2].is_ascii_alphanumeric() || three[2] == '_')
    });
    if calls {
        found.push("calls people".to_owned());
    }
    let refers = letters
        .windows(2)
        .any(|two| "#!&%~".contains(two[0]) && two[1].is_ascii_digit());
    if refers || ["GH-1", "GH-7", "JIRA-12"].iter().any(|key| words.contains(key)) {
        found.push("refers to an item".to_owned());
    }
    if words.contains(['\u{202e}', '\u{2066}', '\u{200d}']) {
        found.push("turns its words around".to_owned());
    }
}

fn markup(html: &str, found: &mut Vec<String>, words: &mut String) {
    // The bot's own mark, which the end of the text bears.
    let html = match (
        html.find("<!-- coding-agent:"),
        html.ends_with("-->") || html.ends_with("-->\n"),
    ) {
        (Some(start), true) => &html[..start],
        _ => html,
    };
    let rest = ELEMENTS
        .iter()
        .fold(html.to_owned(), |rest, tag| rest.replace(tag, "\n"));
    if rest.contains('<') {
        found.push(format!("has an element of HTML: {html}"));
    }
    words.push_str(&rest);
    words.push('\n');
}
