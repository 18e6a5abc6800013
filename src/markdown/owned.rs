//! The sections of a change request's text that the program owns, so that it can keep them in step
//! with the last result.
//!
//! There are two: what the work is about, and how the last result stands. Each lies between two
//! invisible marks. What people write outside of them is never touched, and a text whose marks are
//! gone is theirs alone. The mark of the second section also says what the program did last: a
//! title or a draft that people changed since is theirs, too.

use std::ops::Range;

use uuid::Uuid;

use super::fence::Fence;
use super::marker::shortened;

/// Maximum characters of the sections: with their marks they fit into a text on GitHub.
const LONGEST_SUMMARY: usize = 20_000;
const LONGEST_RESULT: usize = 36_000;
/// Characters of a title that are compared: forges cut long ones.
const COMPARED: usize = 200;

const SUMMARY: &str = "<!-- coding-agent:summary";
const RESULT: &str = "<!-- coding-agent:result";
const END: &str = "<!-- coding-agent:end -->";
/// The beginnings of titles that make a merge request a draft, or say that a request is one.
const DRAFT_MARKS: [&str; 3] = ["draft:", "[draft]", "(draft)"];

/// The state in which the program last left a change request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub is_draft: bool,
    /// Whether more people can read the change request than the item that it is for.
    pub is_discreet: bool,
    /// Identifies the title.
    pub title: Uuid,
}

/// Returns the identity of a title, whether it has the mark of a draft or not.
pub fn title_id(title: &str) -> Uuid {
    let compared: String = without_draft_mark(title).chars().take(COMPARED).collect();
    Uuid::new_v5(&Uuid::NAMESPACE_OID, compared.trim_end_matches('…').trim().as_bytes())
}

/// Returns a title without the mark of a draft.
pub fn without_draft_mark(title: &str) -> &str {
    let has = |mark: &&&str| {
        title
            .get(..mark.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(mark))
    };
    let mark = DRAFT_MARKS.iter().find(has);
    mark.map_or(title, |mark| title[mark.len()..].trim_start())
}

/// Returns the section about the work.
pub fn summary(text: &str) -> String {
    section(&format!("{SUMMARY} -->"), text, LONGEST_SUMMARY)
}

/// Returns the section about the last result.
pub fn result(text: &str, stamp: Stamp) -> String {
    section(&stamp.mark(), text, LONGEST_RESULT)
}

fn section(mark: &str, text: &str, most: usize) -> String {
    // A command's output, shown as code, may have the words of a mark.
    let text = shortened(text.trim(), most).replace("<!-- coding-agent:", "<!- coding-agent:");
    format!("{mark}\n\n{text}\n\n{END}")
}

/// Returns what the program did last to a change request, if it owns a section of its text.
pub fn stamp(body: &str) -> Option<Stamp> {
    Stamp::read(&body[find(body, RESULT)?.mark])
}

/// Returns `body` with new sections; `None` leaves a text as it is. What has no marks is left as it
/// is, too.
pub fn renewed(body: &str, summary: Option<&str>, result: Option<&str>, stamp: Stamp) -> String {
    let mut body = body.replace("\r\n", "\n");
    if let Some(found) = find(&body, RESULT) {
        let old = body[found.text.clone()].to_owned();
        body.replace_range(found.whole, &self::result(result.unwrap_or(&old), stamp));
    }
    if let (Some(summary), Some(found)) = (summary, find(&body, SUMMARY)) {
        body.replace_range(found.whole, &self::summary(summary));
    }
    body
}

/// Returns a text without the marks, as a reader of the page sees it.
pub fn unmarked(body: &str) -> String {
    let mut body = body.replace("\r\n", "\n").replace(&format!("\n\n{END}"), "");
    for start in [SUMMARY, RESULT] {
        if let Some(from) = body.find(start)
            && let Some(length) = body[from..].find("-->\n\n")
        {
            body.replace_range(from..from + length + "-->\n\n".len(), "");
        }
    }
    body
}

/// Returns the number of the issue that the section about the last result closes. The output of a
/// command, which stands there as code, may have the words of such a line, and closes nothing.
pub fn closes(body: &str) -> Option<u64> {
    let text = &body[find(body, RESULT)?.text];
    let mut open: Option<Fence<'_>> = None;
    text.lines().find_map(|line| {
        if let Some(fence) = open {
            open = (!fence.is_closed_by(line)).then_some(fence);
            return None;
        }
        open = Fence::opened_by(line);
        line.trim_end().strip_prefix("Closes #")?.parse().ok()
    })
}

struct Found {
    mark: Range<usize>,
    text: Range<usize>,
    whole: Range<usize>,
}

fn find(body: &str, start: &str) -> Option<Found> {
    let from = body.find(start)?;
    let text = from + body[from..].find("-->")? + "-->".len();
    let end = text + body[text..].find(END)?;
    // Half a section and the next one are not one.
    let is_whole = !body[text..end].contains("<!-- coding-agent:");
    is_whole.then(|| Found {
        mark: from..text,
        text: text..end,
        whole: from..end + END.len(),
    })
}

impl Stamp {
    fn mark(self) -> String {
        let mut words = String::from(if self.is_draft { "draft" } else { "ready" });
        if self.is_discreet {
            words.push_str(" discreet");
        }
        format!("{RESULT} {words} {} -->", self.title)
    }

    fn read(mark: &str) -> Option<Self> {
        let words: Vec<&str> = mark.strip_prefix(RESULT)?.split_whitespace().collect();
        let is_draft = match *words.first()? {
            "draft" => true,
            "ready" => false,
            _ => return None,
        };
        Some(Self {
            is_draft,
            is_discreet: words.contains(&"discreet"),
            title: words.iter().find_map(|word| word.parse().ok())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(is_draft: bool) -> Stamp {
        Stamp {
            is_draft,
            is_discreet: false,
            title: title_id("Greet"),
        }
    }

    fn body() -> String {
        let sections = [summary("It greets."), result("Checked.\n\nCloses #7", at(true))];
        format!("Above.\n\n{}\n\nBelow.", sections.join("\n\nBetween.\n\n"))
    }

    #[test]
    fn only_what_lies_between_the_marks_is_renewed() {
        let wanted = body()
            .replace("Checked.\n\nCloses #7", "Checked again.")
            .replace("result draft", "result ready");
        let renewed_body = renewed(&body(), None, Some("Checked again."), at(false));
        assert_eq!(renewed_body, wanted);
        assert_eq!(stamp(&renewed_body), Some(at(false)));
        let all = renewed(&renewed_body, Some("It waves."), None, at(false));
        assert_eq!(all, wanted.replace("It greets.", "It waves."));
        assert_eq!(
            unmarked(&renewed_body),
            "Above.\n\nIt greets.\n\nBetween.\n\nChecked again.\n\nBelow."
        );
        // Browsers send other ends of lines.
        assert_eq!(renewed(&wanted.replace('\n', "\r\n"), None, None, at(false)), wanted);
    }

    #[test]
    fn a_text_without_its_marks_belongs_to_people() {
        let without = body().replace(END, "");
        for theirs in ["", "Mine.", without.as_str()] {
            assert_eq!(stamp(theirs), None);
            assert_eq!(renewed(theirs, Some("a"), Some("b"), at(false)), theirs);
        }
    }

    #[test]
    fn what_a_text_quotes_is_no_mark() {
        let text = format!("```\n{END}\n{RESULT} ready -->\n```");
        let body = [summary(&text), result(&text, at(true))].join("\n\n");
        assert_eq!(renewed(&body, Some("a"), Some("b"), at(true)).matches(END).count(), 2);
        assert_eq!(stamp(&body), Some(at(true)));
    }

    #[test]
    fn what_a_text_quotes_closes_nothing() {
        let quoted = "```\n$ make test\nCloses #9\n```";
        assert_eq!(closes(&result(quoted, at(true))), None);
        assert_eq!(closes(&result(&format!("{quoted}\n\nCloses #7"), at(true))), Some(7));
    }

    #[test]
    fn a_draft_has_the_title_of_the_finished_request() {
        for title in ["Greet", "Draft: Greet", "[draft] Greet", "(Draft)Greet"] {
            assert_eq!(title_id(title), title_id("Greet"), "{title}");
        }
        assert_ne!(title_id("Drafts"), title_id("s"));
        assert_eq!(closes(&body()), Some(7));
    }
}
