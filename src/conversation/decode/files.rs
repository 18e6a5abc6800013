//! Reads a working reply in the form of whole files: a line with a path and the file's text in a
//! fence, or a fence with commands for bash.
//!
//! Models that are small write a file as they do for people, and break it where it has to be a
//! string in JSON. A block that names no file is that of the shown file which it is plainly made
//! of; else it is refused, since a text written over the wrong file costs more than one more
//! question.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::first_line::{self, FirstLine};
use super::{OWN_KEYS, Unreadable, fault, likeness, paths, search};
use crate::conversation::{Reply, ToolCall, Turn};

/// The mode of writing a file of which the reply may hold a piece only.
pub const PUT: &str = "put";

/// Words behind a fence that mean commands to run.
const SHELLS: [&str; 5] = ["bash", "sh", "shell", "console", "zsh"];
/// Longest comment that is kept of what was said around the blocks, in characters.
const LONGEST_COMMENT: usize = 600;
/// Most blocks of a reply.
const MOST_BLOCKS: usize = 20;

/// The form of a reply, in words for the model. Examples are left out: a small model repeats them.
pub const FORM: &str =
    "Reply with each file that has to change, whole: a line with its path, then its content between two lines ```.";

/// Stands for a path in a line that is read without it.
const STAND_IN: &str = "stand-in.path";

/// Commands that do what no file can say.
const MOVES: [&str; 4] = ["rm", "mv", "git", "mkdir"];

/// A file that the model was shown: its path and its text.
pub type Shown = (String, String);

/// A fenced block of a reply.
#[derive(Debug, PartialEq, Eq)]
struct Block<'text> {
    /// The text behind the opening fence.
    info: &'text str,
    /// The last line above the fence that is not empty, if it belongs to no other block.
    above: &'text str,
    content: String,
    is_closed: bool,
}

/// Returns the turn of a reply whose files are whole. Files end the work: the program checks them
/// then. So does a reply without any, whose author found nothing to change.
///
/// # Errors
/// If a block names no file and is like none that was `shown`, or is cut off.
pub fn turn(reply: &Reply, shown: &[Shown]) -> Result<Turn, Unreadable> {
    let found = search::search(&reply.text);
    if !reply.calls.is_empty() || !reply.broken_calls.is_empty() || found.ends_in_thought {
        return super::turn(reply);
    }
    let (mut blocks, around) = blocks(&found.said);
    blocks.retain(|block| !is_list(block, shown));
    let comment = around
        .chars()
        .take(LONGEST_COMMENT)
        .collect::<String>()
        .trim()
        .to_owned();
    if !blocks.iter().any(|block| !is_answer(block, shown)) {
        return match super::turn(reply) {
            Err(_) if found.objects.is_empty() && found.broken.is_none() && !comment.is_empty() && !reply.cut => {
                Ok(Turn {
                    comment,
                    done: true,
                    ..Turn::default()
                })
            }
            read => read.map_err(|unreadable| unreadable.in_form(FORM)),
        };
    }
    if reply.cut || blocks.iter().any(|block| !block.is_closed) {
        let fault = fault(reply).unwrap_or_else(|| Unreadable::new("The last block does not end with a line ```"));
        return Err(fault.in_form(FORM));
    }
    if blocks.len() > MOST_BLOCKS {
        return Err(Unreadable::new(format!(
            "The reply holds {} blocks, and {MOST_BLOCKS} are read; reply with fewer files at a time",
            blocks.len()
        )));
    }
    let mut calls: Vec<ToolCall> = Vec::new();
    for block in &blocks {
        let call = call(block, shown)?;
        match calls.iter_mut().find(|earlier| names_same_file(earlier, &call)) {
            // A draft and then the file: the last one is what is meant.
            Some(earlier) => *earlier = call,
            None => calls.push(call),
        }
    }
    let done = calls.iter().any(|call| call.args.contains_key("path"));
    if done {
        // The program runs the tests itself; of other commands only those count that a file cannot
        // stand for.
        calls.retain(|call| {
            call.args
                .get("command")
                .is_none_or(|command| only_moves(command.as_str().unwrap_or_default()))
        });
    }
    Ok(Turn { comment, calls, done })
}

/// Returns the texts of the blocks that name a file, with its path; [`paths::heading`] makes lines
/// that name any.
pub fn blocks_with_paths(text: &str) -> Vec<Shown> {
    let path = |block: &Block<'_>| match paths::of_heading(block.above) {
        Some(path) => Some(path.to_owned()),
        None => named(block, &[]),
    };
    let (blocks, _) = blocks(text);
    blocks
        .into_iter()
        .filter_map(|block| Some((path(&block)?, block.content)))
        .collect()
}

fn only_moves(commands: &str) -> bool {
    let mut programs = commands.lines().filter_map(|line| line.split_whitespace().next());
    programs.all(|program| MOVES.contains(&program))
}

/// Returns the path that stands behind a block's fence or in the line above it.
fn named(block: &Block<'_>, shown: &[Shown]) -> Option<String> {
    mentioned(block.info, shown)
        .or_else(|| block.info.split_whitespace().find_map(paths::of_word))
        .or_else(|| mentioned(block.above, shown))
        .or_else(|| paths::of_line(block.above))
}

/// Returns the path of the shown file that a line names, of those whose path is not read as a word:
/// by its path, or by a name that it alone has.
fn mentioned(line: &str, shown: &[Shown]) -> Option<String> {
    let paths = shown.iter().map(|(path, _)| path.as_str());
    let odd: Vec<&str> = paths.filter(|path| paths::is_odd(path)).collect();
    let names = |written: &str| {
        let without = line.replacen(written, STAND_IN, 1);
        line.contains(written) && paths::of_line(&without).as_deref() == Some(STAND_IN)
    };
    let by_path = paths::only(odd.iter().filter(|path| names(path)));
    let by_name = || {
        paths::only(odd.iter().filter(|path| {
            let name = paths::name_of(path);
            paths::is_odd(name) && names(name)
        }))
    };
    by_path.or_else(by_name).map(|path| (*path).to_owned())
}

fn is_shell(block: &Block<'_>) -> bool {
    let kind = block.info.split_whitespace().next().unwrap_or_default().to_lowercase();
    SHELLS.contains(&kind.as_str())
}

fn is_script(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, end)| SHELLS.contains(&end))
}

/// Tells whether a block holds an answer in the form of [`super::turn`], and is no file.
fn is_answer(block: &Block<'_>, shown: &[Shown]) -> bool {
    let content = block.content.trim();
    if !content.starts_with('{') || !content.ends_with('}') {
        return false;
    }
    let objects = search::search(content).objects;
    let has_own_key =
        |(_, object): &(Range<usize>, Map<String, Value>)| OWN_KEYS.iter().any(|key| object.contains_key(*key));
    objects.len() == 1 && (objects.iter().any(has_own_key) || named(block, shown).is_none())
}

/// Tells whether a block is no file, but a list of those that were changed: many write one at the
/// end.
fn is_list(block: &Block<'_>, shown: &[Shown]) -> bool {
    if !block.is_closed || is_shell(block) || !names_files_alone(&block.content) {
        return false;
    }
    match named(block, shown) {
        // A file may hold paths, but not its own alone.
        Some(path) => block.content.trim() == path,
        None => likeness::of(&block.content, shown).is_none(),
    }
}

/// Tells whether a text has lines, and each of them names a file.
fn names_files_alone(content: &str) -> bool {
    let mut lines = content.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| paths::of_first_line(line).is_some())
}

fn names_same_file(one: &ToolCall, other: &ToolCall) -> bool {
    other.args.contains_key("path") && one.args.get("path") == other.args.get("path")
}

fn call(block: &Block<'_>, shown: &[Shown]) -> Result<ToolCall, Unreadable> {
    let is_shell = is_shell(block);
    // Commands are often announced with the name of a file that they run.
    let named = named(block, shown).filter(|path| !is_shell || is_script(path));
    if named.is_none() && is_shell {
        return Ok(tool_call(
            "bash",
            json!({ "command": prompts_taken_off(&block.content) }),
        ));
    }
    if let Some(longer) = named.as_deref().and_then(|path| longer(block, path, shown)) {
        return Err(not_read(longer));
    }
    let place = named
        .map(|path| (path, block.content.clone()))
        .or_else(|| unnamed(block, shown));
    let Some((path, content)) = place else {
        if let Some(path) = paths::unread(block.above) {
            return Err(not_read(path));
        }
        let first = first_line(block);
        return Err(Unreadable::with_form(
            format!("The block that begins with `{first}` names no file: its path must be the line above it"),
            FORM,
        ));
    };
    let path = paths::in_full(path, shown);
    Ok(tool_call(
        "write_file",
        json!({ "path": path, "content": content, "mode": PUT }),
    ))
}

/// Returns the path with spaces of which `path` is only the end, unless that is a shown file's.
fn longer<'text>(block: &Block<'text>, path: &str, shown: &[Shown]) -> Option<&'text str> {
    let full = paths::in_full(path.to_owned(), shown);
    let is_shown = shown.iter().any(|(known, _)| *known == full);
    paths::spaced(block.above).filter(|spaced| !is_shown && spaced.ends_with(path))
}

/// Returns the refusal of a block whose path is not read.
fn not_read(path: &str) -> Unreadable {
    let what = format!(
        "The path `{path}` cannot be read: write the file with a path without spaces and signs, and move it to its \
         place with mv between ```bash and ```"
    );
    Unreadable::with_form(what, FORM)
}

/// Returns the path and the text of a block that is named neither behind its fence nor above it:
/// many write the path as a comment on the first line.
fn unnamed(block: &Block<'_>, shown: &[Shown]) -> Option<(String, String)> {
    let known = likeness::of(&block.content, shown);
    let is_meant = |known: &&str| paths::unread(block.above).is_none_or(|path| paths::may_mean(path, known));
    let first = first_line(block);
    let path = paths::of_first_line(first).filter(|_| !names_files_alone(&block.content));
    let sense = path.as_deref().map(|path| first_line::sense(first, path, known, shown));
    match (sense.unwrap_or(FirstLine::OfText), path) {
        (FirstLine::Heading, Some(path)) => Some((path, without_first_line(&block.content))),
        (FirstLine::Unclear, _) => None,
        (FirstLine::Heading | FirstLine::OfText, _) => known
            .filter(is_meant)
            .map(|known| (known.to_owned(), block.content.clone())),
    }
}

fn first_line<'block>(block: &'block Block<'_>) -> &'block str {
    block.content.lines().next().unwrap_or_default()
}

fn tool_call(tool: &str, args: Value) -> ToolCall {
    let args = match args {
        Value::Object(args) => args,
        _ => Map::new(),
    };
    ToolCall {
        id: String::new(),
        tool: tool.to_owned(),
        args,
    }
}

/// Takes the text apart into its blocks and what stands around them. A fence ends with one that is
/// at least as long, so that a Markdown file can hold shorter ones.
fn blocks(text: &str) -> (Vec<Block<'_>>, String) {
    let (mut blocks, mut around) = (Vec::new(), String::new());
    let mut above = "";
    let mut open: Option<(usize, Block<'_>)> = None;
    for line in text.lines() {
        let length = line.trim_start().bytes().take_while(|byte| *byte == b'`').count();
        let behind = line.trim_start()[length..].trim();
        match &mut open {
            Some((fence, block)) if length >= *fence && behind.is_empty() => {
                block.is_closed = true;
                blocks.extend(open.take().map(|(_, block)| block));
                above = "";
            }
            Some((_, block)) => {
                block.content.push_str(line);
                block.content.push('\n');
            }
            None if length >= 3 => {
                let block = Block {
                    info: behind,
                    above,
                    content: String::new(),
                    is_closed: false,
                };
                open = Some((length, block));
            }
            None => {
                if !line.trim().is_empty() {
                    above = line;
                    if paths::of_line(line).is_none() {
                        around.push_str(line.trim());
                        around.push(' ');
                    }
                }
            }
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    (blocks, around)
}

/// Returns the commands without the `$ ` that some write before each.
fn prompts_taken_off(content: &str) -> String {
    let lines: Vec<&str> = content
        .lines()
        .map(|line| line.strip_prefix("$ ").unwrap_or(line))
        .collect();
    lines.join("\n").trim().to_owned()
}

fn without_first_line(content: &str) -> String {
    content.split_once('\n').map_or("", |(_, rest)| rest).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Turn, String> {
        let reply = Reply {
            text: text.to_owned(),
            ..Reply::default()
        };
        turn(&reply, &shown()).map_err(|unreadable| unreadable.what)
    }

    fn shown() -> Vec<Shown> {
        [
            (
                "lib/dates.js",
                "function date(year, month) {\n  return new Date(month);\n}\n\nmodule.exports = { date };\n",
            ),
            (
                "test/dates.test.js",
                "const { date } = require(\"../lib/dates\");\n\ntest(\"a day\", () => date(1, 2));\n",
            ),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into()
    }

    fn writes(text: &str) -> Vec<(String, String)> {
        let turn = read(text).unwrap();
        let arg = |call: &ToolCall, name: &str| call.args[name].as_str().unwrap_or_default().to_owned();
        assert!(turn.calls.iter().all(|call| call.tool == "write_file"));
        assert!(turn.done);
        turn.calls
            .iter()
            .map(|call| (arg(call, "path"), arg(call, "content")))
            .collect()
    }

    fn one(path: &str, content: &str) -> Vec<(String, String)> {
        vec![(path.to_owned(), content.to_owned())]
    }

    #[test]
    fn a_file_is_named_above_its_block_behind_its_fence_or_on_its_first_line() {
        for text in [
            "src/a.py\n```\nx = 1\n```",
            "The fault is mended.\n\n**src/a.py**:\n\n```python\nx = 1\n```\nThat is all.",
            "Here is `src/a.py`:\n```python\nx = 1\n```",
            "```python src/a.py\nx = 1\n```",
            "```python title=\"src/a.py\"\nx = 1\n```",
            "```python\n# src/a.py\nx = 1\n```",
            "### ./src/a.py\n````\nx = 1\n````",
        ] {
            assert_eq!(writes(text), one("src/a.py", "x = 1\n"), "{text}");
        }
    }

    #[test]
    fn a_longer_fence_holds_shorter_ones_and_the_last_of_two_drafts_counts() {
        let text = "README.md\n````\nRun:\n```sh\nmake\n```\n````";
        assert_eq!(writes(text), one("README.md", "Run:\n```sh\nmake\n```\n"));
        let twice = "a.py\n```\nx = 1\n```\nBetter:\na.py\n```\nx = 2\n```";
        assert_eq!(writes(twice), one("a.py", "x = 2\n"));
    }

    #[test]
    fn a_list_of_the_files_that_were_changed_is_no_file() {
        for list in [
            "I changed only this file:\n```\nsrc/a.py\n```",
            "I changed only src/a.py:\n```\nsrc/a.py\n```",
            "Changed:\n```text\n- src/a.py\n- src/b.py (new)\n```",
            "```\n# src/a.py\n\n```",
        ] {
            let reply = format!("src/a.py\n```\nx = 1\n```\n{list}");
            assert_eq!(writes(&reply), one("src/a.py", "x = 1\n"), "{list}");
        }
        let alone = read("Changed:\n```\nsrc/a.py\n```").unwrap();
        assert_eq!((alone.calls.len(), alone.done), (0, true));
        // A command, and a file that holds paths.
        let script = read("```sh\n./run.sh\n```").unwrap();
        assert_eq!(script.calls[0].args["command"], "./run.sh");
        assert_eq!(writes("files.txt\n```\nsrc/a.py\n```"), one("files.txt", "src/a.py\n"));
    }

    #[test]
    fn commands_are_run_before_the_work_ends() {
        let turn = read("I look first.\n```bash\n$ cat src/a.py\n$ ls\n```").unwrap();
        assert_eq!((turn.calls[0].tool.as_str(), turn.done), ("bash", false));
        assert_eq!(turn.calls[0].args["command"], "cat src/a.py\nls");
        assert_eq!(turn.comment, "I look first.");
        let both = read("a.py\n```\nx\n```\nNow the tests:\n```sh\npytest\n```").unwrap();
        assert_eq!((both.calls.len(), both.done), (1, true));
        let moved = read("a.py\n```\nx\n```\n```sh\ngit rm b.py\n```").unwrap();
        assert_eq!((moved.calls.len(), moved.done), (2, true));
    }

    /// Returns the path to which a block is written, and what, beside these files.
    fn placed(text: &str, shown: &[(&str, &str)]) -> Result<(String, String), String> {
        let reply = Reply {
            text: text.to_owned(),
            ..Reply::default()
        };
        let shown: Vec<Shown> = shown
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        let turn = turn(&reply, &shown).map_err(|unreadable| unreadable.what)?;
        let arg = |name: &str| turn.calls[0].args[name].as_str().unwrap_or_default().to_owned();
        Ok((arg("path"), arg("content")))
    }

    #[test]
    fn the_first_line_of_code_is_taken_for_no_path() {
        let java = "package com.example;\n\nimport java.util.List;\n\npublic class Point {\n    int x;\n}\n";
        let python = "from django.db import models\n\n\nclass Shop(models.Model):\n    name = 1\n";
        let shown = [
            ("src/Point.java", "public class Point {}\n"),
            ("shop/models.py", python),
            ("app/globals.css", "body {}\n"),
            ("lib/run.js", "// Dates for node.js\nlet a = 1;\nlet b = 2;\n"),
        ];
        let of = |path: &str, content: &str| Ok((path.to_owned(), content.to_owned()));
        let of_class = format!("```java\n{java}```");
        assert_eq!(placed(&of_class, &shown), of("src/Point.java", java));
        let changed = python.replace("name = 1", "name = 2");
        let of_models = format!("```\n{changed}```");
        assert_eq!(placed(&of_models, &shown), of("shop/models.py", &changed));
        let style = "```tsx\nimport './globals.css'\n\nexport default () => <p/>\n```";
        assert!(placed(style, &shown).unwrap_err().contains("names no file"));
        // The comment stands in that file.
        let script = "// Dates for node.js\nlet a = 1;\nlet b = 3;\n";
        assert_eq!(placed(&format!("```js\n{script}```"), &shown), of("lib/run.js", script));
        let other = "// lib/other.js\nlet a = 1;\nlet b = 2;\n";
        assert_eq!(
            placed(&format!("```js\n{other}```"), &shown),
            of("lib/other.js", "let a = 1;\nlet b = 2;\n")
        );
    }

    #[test]
    fn a_new_comment_on_another_file_does_not_send_the_block_there() {
        let code = "function date(year, month) {\n  return new Date(month);\n}\n\nmodule.exports = { date };\n";
        let tests = "const { date } = require(\"../lib/dates\");\n\ntest(\"a day\", () => date(1, 2));\n";
        let shown = [("lib/dates.js", code), ("test/dates.test.js", tests)];
        let of = |path: &str, content: &str| Ok((path.to_owned(), content.to_owned()));
        let more = format!("// Tests for dates.js\n{tests}");
        assert_eq!(
            placed(&format!("```js\n{more}```"), &shown),
            of("test/dates.test.js", &more)
        );
        for (first, text) in [
            // Like no file, and like another one than is said.
            ("// Tests for dates.js", "test(\"years\", () => date(3, 4));\n"),
            ("Here is lib/dates.js:", tests),
            ("// Helpers for node.js", code),
        ] {
            let refused = placed(&format!("```js\n{first}\n{text}```"), &shown).unwrap_err();
            assert!(refused.contains("names no file"), "{first}: {refused}");
        }
        for (first, path) in [
            ("// New file: lib/other.js", "lib/other.js"),
            ("// lib/dates.js, with the month fixed", "lib/dates.js"),
        ] {
            assert_eq!(
                placed(&format!("```js\n{first}\n{code}```"), &shown),
                of(path, code),
                "{first}"
            );
        }
        let new = placed("```js\n// Helpers in lib/new.js\nlet a = 1;\n```", &shown);
        assert_eq!(new, of("lib/new.js", "let a = 1;\n"));
    }

    #[test]
    fn a_path_alone_on_the_first_line_names_the_file_though_a_document_quotes_it() {
        let code = "def net(price):\n    return price\n\n\ndef gross(price):\n    return price\n";
        let sample = format!("# utils.py\n{code}");
        let document = format!("# Shop\n\n```python\n{sample}```\n");
        let titled = format!("{sample}\nThat is all of it.\n");
        let reply = format!("Here it is:\n```python\n{sample}```");
        let new = Ok(("utils.py".to_owned(), code.to_owned()));
        assert_eq!(placed(&reply, &[("README.md", document.as_str())]), new);
        let labelled = document.replace("# utils.py", "# File: utils.py");
        let of_label = reply.replace("# utils.py", "# File: utils.py");
        assert_eq!(placed(&of_label, &[("README.md", labelled.as_str())]), new);
        // Both begin with it, and one of them has that path.
        let both = [("README.md", titled.as_str()), ("utils.py", "# utils.py\npass\n")];
        assert_eq!(placed(&reply, &both), new);
        // The file's own first line stays.
        let own = Ok(("shop/utils.py".to_owned(), sample.clone()));
        assert_eq!(placed(&reply, &[("shop/utils.py", sample.as_str())]), own);
        let moved = Ok(("shop/moved.py".to_owned(), sample.clone()));
        assert_eq!(placed(&reply, &[("shop/moved.py", sample.as_str())]), moved);
        // A comment on others is the file's own wherever it stands.
        let tests = "import pytest\n\n# Tests for utils.py\ndef test_net():\n    assert net(1) == 1\n";
        let piece = "# Tests for utils.py\ndef test_net():\n    assert net(2) == 2\n";
        let shown = [("test_utils.py", tests), ("utils.py", code)];
        let expected = Ok(("test_utils.py".to_owned(), piece.to_owned()));
        assert_eq!(placed(&format!("```python\n{piece}```"), &shown), expected);
    }

    #[test]
    fn a_path_that_is_no_plain_word_is_that_of_a_shown_file_or_refused() {
        let page = "export default function Page() {\n  return 1;\n}\n";
        let shown = [
            ("app/page.tsx", page),
            ("app/[slug]/page.tsx", "x\n"),
            ("docs/my file.md", "y\n"),
            ("routes/$id.tsx", "z\n"),
        ];
        for (above, path) in [
            ("app/[slug]/page.tsx", "app/[slug]/page.tsx"),
            ("**[slug]/page.tsx**:", "app/[slug]/page.tsx"),
            ("app/(auth)/page.tsx", "app/(auth)/page.tsx"),
            ("docs/my file.md", "docs/my file.md"),
            ("Here is `./docs/my file.md`:", "docs/my file.md"),
            ("### my file.md", "docs/my file.md"),
            ("`routes/$id.tsx`", "routes/$id.tsx"),
            // As before.
            ("<root>/app/page.tsx", "app/page.tsx"),
            ("../app/page.tsx", "app/page.tsx"),
            ("[page](app/page.tsx)", "app/page.tsx"),
            ("HTML/CSS index.html", "index.html"),
            ("i/o: src/a.py", "src/a.py"),
            ("read/write tests in test_io.py:", "test_io.py"),
            ("New file: input/output helpers in io_utils.py", "io_utils.py"),
        ] {
            let written = placed(&format!("{above}\n```\n{page}```"), &shown);
            assert_eq!(written, Ok((path.to_owned(), page.to_owned())), "{above}");
        }
        let title = placed("```md title=\"docs/my file.md\"\n# x\n```", &shown);
        assert_eq!(title, Ok(("docs/my file.md".to_owned(), "# x\n".to_owned())));
        for path in ["docs/other file.md", "app/{id}/page.tsx", "routes/$new.tsx"] {
            let refused = placed(&format!("`{path}`\n```\n{page}```"), &shown).unwrap_err();
            let expected = format!("The path `{path}` cannot be read");
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }

    #[test]
    fn a_block_without_a_path_is_of_the_file_that_it_is_made_of() {
        let piece = "function date(year, month) {\n  return new Date(month - 1);\n}\n";
        assert_eq!(
            writes(&format!("Like this:\n```js\n{piece}```")),
            one("lib/dates.js", piece)
        );
        assert_eq!(
            writes(&format!("dates.js\n```js\n{piece}```")),
            one("lib/dates.js", piece)
        );
        assert!(read("```js\nconsole.log(1)\n```").is_err());
    }

    #[test]
    fn words_alone_end_the_work_as_well() {
        let turn = read("It is right as it is.").unwrap();
        assert_eq!(
            (turn.comment.as_str(), turn.done, turn.calls.len()),
            ("It is right as it is.", true, 0)
        );
        for text in ["", "{\"x\": 1}", "{\"tool\": "] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_asked_again() {
        for (text, what) in [
            (
                "```python\nx = 1\n```",
                "The block that begins with `x = 1` names no file",
            ),
            ("a.py\n```\nx = 1\n", "The last block does not end with a line ```"),
            (
                "a.py and b.py\n```\nx = 1\n```",
                "The block that begins with `x = 1` names no file",
            ),
            ("../a.py\n```\nx\n```", "The block that begins with `x` names no file"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(what), "{text}: {error}");
        }
        let reply = Reply {
            text: "a.py\n```\nx\n```\nb.py\n```\ny".to_owned(),
            cut: true,
            ..Reply::default()
        };
        assert!(turn(&reply, &[]).unwrap_err().what.contains("cut at the length limit"));
    }

    #[test]
    fn the_form_of_objects_is_read_as_well() {
        let done = read("{\"comment\": \"It is so already.\", \"done\": true}").unwrap();
        assert_eq!((done.done, done.calls.len()), (true, 0));
        let fenced = read("```json\n{\"tool\": \"clock/now\", \"args\": {}}\n```").unwrap();
        assert_eq!(fenced.calls[0].tool, "clock/now");
        assert_eq!(
            writes("data.json\n```\n{\"a\": 1}\n```"),
            one("data.json", "{\"a\": 1}\n")
        );
    }

    #[test]
    fn commands_that_a_file_is_named_for_do_not_overwrite_it() {
        let turn = read("Run `python a.py`:\n```bash\npython a.py\n```").unwrap();
        assert_eq!((turn.calls.len(), turn.calls[0].tool.as_str()), (1, "bash"));
        assert_eq!(writes("tool.sh\n```sh\nmake\n```"), one("tool.sh", "make\n"));
        let sentence = "When the whole program is started with a.py it prints this:\n```\n1\n```";
        assert!(read(sentence).unwrap_err().contains("names no file"));
    }

    #[test]
    fn thinking_writes_nothing() {
        assert_eq!(
            writes("<think>\nb.py\n```\nno\n```\n</think>\na.py\n```\nx\n```"),
            one("a.py", "x\n")
        );
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_or_refused(text in "(a\\.py\n|```(bash|py)?\n|[{}\"x ]{0,4}|\n|<think>|é){0,24}") {
            if let Ok(turn) = read(&text) {
                prop_assert!(turn.done || !turn.calls.is_empty());
                for call in &turn.calls {
                    let path = call.args.get("path").and_then(Value::as_str).unwrap_or_default();
                    prop_assert!(!path.contains("..") && !path.starts_with('/'));
                }
            }
        }
    }
}
