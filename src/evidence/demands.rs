//! What a task asks for, as far as its words show it: the sentences and the items of its lists.
//!
//! No sentence is understood. Code, quotations, headings and tables are no demands; where one piece
//! too many is counted, a model is asked once more than it need have been.

/// Longest piece, in bytes.
const LONGEST: usize = 300;
/// Most pieces that are returned.
const MOST: usize = 20;
/// Fewest words of a sentence, and fewest characters of one without spaces between its words.
const FEWEST_WORDS: usize = 3;
const FEWEST_CHARACTERS: usize = 8;
/// Numbers of list items, and of pieces of any kind, from which on a task asks for several things.
/// Its title is a piece.
const SEVERAL_ITEMS: usize = 2;
const SEVERAL_PIECES: usize = 3;

/// The pieces of a task, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demands {
    pub pieces: Vec<String>,
    /// The number of pieces that are items of lists.
    items: usize,
}

/// The lines that are read as one.
#[derive(Default)]
struct Open {
    text: String,
    is_item: bool,
}

impl Demands {
    /// Returns the pieces of a task in Markdown.
    pub fn of(task: &str) -> Self {
        let mut demands = Self::default();
        let mut open = Open::default();
        let mut code: Option<&str> = None;
        for line in task.lines() {
            let text = line.trim();
            let fence = ["```", "~~~"].into_iter().find(|fence| text.starts_with(fence));
            match (code, fence) {
                (Some(begun), Some(fence)) if begun == fence => code = None,
                (Some(_), _) => {}
                (None, Some(fence)) => {
                    demands.close(&mut open);
                    code = Some(fence);
                }
                (None, None) => demands.line(&mut open, line),
            }
        }
        demands.close(&mut open);
        demands.pieces.truncate(MOST);
        demands
    }

    /// Tells whether the task asks for more than one thing.
    pub fn are_several(&self) -> bool {
        self.items >= SEVERAL_ITEMS || self.pieces.len() >= SEVERAL_PIECES
    }

    fn line(&mut self, open: &mut Open, line: &str) {
        let text = line.trim();
        if let Some(item) = item(text) {
            self.close(open);
            *open = Open {
                text: item.to_owned(),
                is_item: true,
            };
            return;
        }
        let is_code = line.starts_with("    ") && open.text.is_empty();
        let is_heading = text.starts_with('#') && text.trim_start_matches('#').starts_with(' ');
        if text.is_empty() || is_code || is_heading || text.starts_with(['>', '|', '<']) {
            self.close(open);
            return;
        }
        if !open.text.is_empty() {
            open.text.push(' ');
        }
        open.text.push_str(text);
    }

    fn close(&mut self, open: &mut Open) {
        let Open { text, is_item } = std::mem::take(open);
        let pieces = if is_item {
            vec![text.as_str()]
        } else {
            sentences(&text)
                .into_iter()
                .filter(|sentence| says_something(sentence))
                .collect()
        };
        self.items += usize::from(is_item);
        let cut = |piece: &str| piece[..piece.floor_char_boundary(LONGEST)].to_owned();
        self.pieces.extend(pieces.into_iter().map(cut));
    }
}

/// Returns the text of an item of a list.
fn item(line: &str) -> Option<&str> {
    let digits = line.len() - line.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let marks: &[&str] = if digits > 0 { &[". ", ") "] } else { &["- ", "* ", "+ "] };
    let text = marks
        .iter()
        .find_map(|mark| line[digits..].strip_prefix(mark))?
        .trim_start();
    let boxes = ["[ ] ", "[x] ", "[X] "];
    Some(boxes.iter().find_map(|tick| text.strip_prefix(tick)).unwrap_or(text))
}

/// Takes a paragraph apart. A full stop within code, or before a small letter, ends no sentence.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let (mut start, mut is_code) = (0, false);
    for (at, letter) in paragraph.char_indices() {
        let end = at + letter.len_utf8();
        let behind = &paragraph[end..];
        let is_end = match letter {
            '`' => {
                is_code = !is_code;
                false
            }
            '.' | '!' | '?' => {
                let next = behind.trim_start().chars().next();
                let has_space = behind.is_empty() || behind.starts_with(char::is_whitespace);
                has_space && !next.is_some_and(char::is_lowercase)
            }
            '。' | '！' | '？' => true,
            _ => false,
        };
        if is_end && !is_code {
            sentences.push(paragraph[start..end].trim());
            start = end;
        }
    }
    sentences.push(paragraph[start..].trim());
    sentences
}

/// Tells whether a sentence is more than a greeting.
fn says_something(sentence: &str) -> bool {
    let foreign = sentence.chars().filter(|letter| !letter.is_ascii()).count();
    sentence.split_whitespace().count() >= FEWEST_WORDS || foreign >= FEWEST_CHARACTERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(task: &str) -> (Vec<String>, bool) {
        let demands = Demands::of(task);
        let are_several = demands.are_several();
        (demands.pieces, are_several)
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn a_second_sentence_is_a_second_demand() {
        assert_eq!(
            pieces(
                "The average is always a whole number\n\n`Average([]int{1, 2})` in `average.go` returns 1 instead of 1.5. For no\nnumbers at all it should return 0.\n"
            ),
            (
                texts(&[
                    "The average is always a whole number",
                    "`Average([]int{1, 2})` in `average.go` returns 1 instead of 1.5.",
                    "For no numbers at all it should return 0.",
                ]),
                true
            )
        );
        assert!(
            !pieces(
                "Find never looks at the last word\n\n`Find(\"b. C\")` in `find.go` returns -1, e.g. for two words.\n"
            )
            .1
        );
        assert_eq!(pieces("Greet the reader\n\nThanks!\n").0, texts(&["Greet the reader"]));
        assert!(pieces("平均が整数になる問題を直す\n\n平均が切り捨てられています。空のときは零を返してください。").1);
    }

    #[test]
    fn the_items_of_a_list_are_demands_and_code_and_quotations_are_none() {
        let task = "Dates\n\nTasks should have dates:\n\n- [ ] a `Task` gets a third\n  argument\n* `parse` reads it. Anywhere. \n2) `overdue` lists\n\n\
                    ## Steps to reproduce\n\n> I saw it. You too. And they.\n\n| a | b |\n|---|---|\n\n```python\nassert a. B\n- no\n~~~\n```\n\n    x = 1. Y\n";
        assert_eq!(
            pieces(task),
            (
                texts(&[
                    "Tasks should have dates:",
                    "a `Task` gets a third argument",
                    "`parse` reads it. Anywhere.",
                    "`overdue` lists",
                ]),
                true
            )
        );
        assert!(pieces("- one\n- two\n").1);
        assert!(!pieces("- one\n").1);
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_little_is_returned(task in r"([-*#>`.!? \n|]|1[.)] |[a-zé]{1,9} |。|```\n|[^\n]{0,400}){0,60}") {
            let (pieces, _) = pieces(&task);
            prop_assert!(pieces.len() <= MOST);
            prop_assert!(pieces.iter().all(|piece| piece.len() <= LONGEST));
        }
    }
}
