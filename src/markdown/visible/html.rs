//! Returns the visible part of HTML: the text between the tags, except in hidden elements.

use std::ops::Range;

/// The hidden ranges of a document, found piece by piece from its beginning.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    /// The open hidden element: its start, its name, and the nesting depth of that name.
    open: Option<(usize, String, usize)>,
    spans: Vec<Range<usize>>,
}

/// Elements whose content is never shown.
const UNSEEN: [&str; 9] = [
    "script", "style", "template", "noscript", "title", "head", "iframe", "object", "noembed",
];
/// Void elements, which have no content and no end tag.
const EMPTY: [&str; 9] = ["area", "base", "br", "col", "hr", "img", "input", "source", "track"];

impl Hidden {
    /// Returns the hidden ranges of the document; an unclosed element extends to `end`.
    pub(super) fn into_spans(mut self, end: usize) -> Vec<Range<usize>> {
        if let Some((start, ..)) = self.open {
            self.spans.push(start..end);
        }
        self.spans
    }

    /// Returns the visible part of `html`, which begins at `offset` in the document.
    pub(super) fn text(&mut self, html: &str, offset: usize) -> String {
        let mut seen = String::new();
        let mut at = 0;
        while let Some(found) = html[at..].find('<') {
            let start = at + found;
            self.show(&mut seen, &html[at..start]);
            let rest = &html[start..];
            let length = if let Some(comment) = rest.strip_prefix("<!--") {
                4 + end_of(comment, "-->")
            } else if let Some(data) = rest.strip_prefix("<![CDATA[") {
                9 + end_of(data, "]]>")
            } else if rest.starts_with("<!") || rest.starts_with("<?") {
                end_of(rest, ">")
            } else if rest[1..].starts_with(|letter: char| letter == '/' || letter.is_ascii_alphabetic()) {
                let tag = Tag::read(rest);
                self.meet(&tag, offset + start);
                self.show(&mut seen, tag.shown());
                tag.length
            } else {
                self.show(&mut seen, "<");
                1
            };
            at = start + length;
        }
        self.show(&mut seen, &html[at..]);
        seen
    }

    fn show(&self, seen: &mut String, text: &str) {
        if self.open.is_none() {
            seen.push_str(text);
        }
    }

    fn meet(&mut self, tag: &Tag, at: usize) {
        match &mut self.open {
            None if !tag.is_end && tag.hides() => self.open = Some((at, tag.name.clone(), 1)),
            Some((_, name, depth)) if *name == tag.name && !tag.is_end => *depth += 1,
            Some((start, name, depth)) if *name == tag.name => {
                *depth -= 1;
                if *depth == 0 {
                    self.spans.push(*start..at + tag.length);
                    self.open = None;
                }
            }
            None | Some(_) => {}
        }
    }
}

/// Returns the number of bytes up to and including `mark`, or all if it is absent.
fn end_of(text: &str, mark: &str) -> usize {
    text.find(mark).map_or(text.len(), |found| found + mark.len())
}

struct Tag {
    name: String,
    is_end: bool,
    /// Including the angle brackets.
    length: usize,
    is_hidden: bool,
}

impl Tag {
    /// Parses the tag at the beginning of `html`. An unclosed tag extends to the end.
    fn read(html: &str) -> Self {
        let is_end = html.starts_with("</");
        let name_at = if is_end { 2 } else { 1 };
        let name_length = html[name_at..]
            .find(|letter: char| letter.is_whitespace() || letter == '>' || letter == '/')
            .unwrap_or(html.len() - name_at);
        let mut tag = Self {
            name: html[name_at..name_at + name_length].to_ascii_lowercase(),
            is_end,
            length: html.len(),
            is_hidden: false,
        };
        let mut at = name_at + name_length;
        // Parses one attribute per iteration.
        loop {
            let rest = html[at..].trim_start_matches(|letter: char| letter.is_whitespace() || letter == '/');
            at = html.len() - rest.len();
            if rest.is_empty() {
                return tag;
            }
            if rest.starts_with('>') {
                tag.length = at + 1;
                return tag;
            }
            let name_end = rest
                .char_indices()
                .skip(1)
                .find(|(_, letter)| letter.is_whitespace() || "=>/".contains(*letter))
                .map_or(rest.len(), |(index, _)| index);
            let name = &rest[..name_end];
            let after = rest[name_end..].trim_start();
            at = html.len() - rest[name_end..].len();
            let mut value = "";
            if let Some(given) = after.strip_prefix('=') {
                let given = given.trim_start();
                let (length, skipped) = match given.chars().next() {
                    Some(quote @ ('"' | '\'')) => (given[1..].find(quote).unwrap_or(given.len() - 1), 1),
                    _ => (
                        given
                            .find(|letter: char| letter.is_whitespace() || letter == '>')
                            .unwrap_or(given.len()),
                        0,
                    ),
                };
                value = &given[skipped..skipped + length];
                at = html.len() - given.len() + (length + 2 * skipped).min(given.len());
            }
            tag.is_hidden |= hides(name, value);
        }
    }

    fn hides(&self) -> bool {
        let is_empty = EMPTY.contains(&self.name.as_str());
        !is_empty && (self.is_hidden || UNSEEN.contains(&self.name.as_str()))
    }

    /// Returns the text that replaces the tag.
    fn shown(&self) -> &'static str {
        match self.name.as_str() {
            "br" => "\n",
            "img" => "[image]",
            _ => "",
        }
    }
}

fn hides(attribute: &str, value: &str) -> bool {
    if attribute.eq_ignore_ascii_case("hidden") {
        return true;
    }
    let style: String = value.split_whitespace().collect::<String>().to_ascii_lowercase();
    attribute.eq_ignore_ascii_case("style")
        && ["display:none", "visibility:hidden", "font-size:0", "opacity:0"]
            .iter()
            .any(|way| style.contains(way))
}
