//! The places of the repository that workers name: looked up at the commit that they looked at, and
//! linked to it.

use std::fmt::Write;

use super::looking::View;
use crate::chat::phrases::Wording;
use crate::index::evidence;
use crate::markdown::visible;
use crate::plan::evidence::Citation;
use crate::review::evidence::named;
use crate::routing::worker::WorkerOutput;

/// Most places that are looked up, and most that are shown.
const MOST: usize = 40;
const MOST_SHOWN: usize = 10;

/// The places that the workers of one message named, as far as they were looked up.
#[derive(Debug, Default)]
pub(in crate::chat) struct Evidence {
    /// Places that exist, as `path:first-last`, with their addresses where people can look at them.
    proven: Vec<(String, Option<String>)>,
    /// Places that do not exist or do not hold what was said, each with its fault.
    doubtful: Vec<(String, String)>,
}

impl Evidence {
    /// Looks up what a worker named; returns the doubts about it, for the chat model.
    pub(in crate::chat) async fn check(&mut self, view: &View, output: &WorkerOutput) -> Result<String, String> {
        let mut doubts = Vec::new();
        for (citation, is_cited) in cited(output) {
            let place = citation.place();
            let is_known = |known: &str| known == place;
            if self.proven.iter().any(|(known, _)| is_known(known))
                || self.doubtful.iter().any(|(known, _)| is_known(known))
            {
                continue;
            }
            let found = evidence::cited(&view.mirror, &view.commit, &citation).await;
            match found.map_err(|error| error.to_string())? {
                Ok(()) => {
                    let link = citation.link(&view.files_url);
                    self.proven.push((place, link.map(|link| visible::line(&link))));
                }
                // A word with a number behind it need not be meant as a file.
                Err(evidence::Fault::NoFile) if !is_cited && !citation.path.contains('/') => {}
                Err(fault) => {
                    doubts.push(format!("{place}: {fault}"));
                    self.doubtful.push((place, fault.to_string()));
                }
            }
        }
        if doubts.is_empty() {
            return Ok(String::new());
        }
        Ok(format!(
            "\nThe program looked these places up, and they are wrong; do not name them:\n- {}",
            doubts.join("\n- ")
        ))
    }

    /// Returns the places for people; empty where none was named.
    pub(in crate::chat) fn in_words(&self, wording: Wording) -> String {
        let mut text = String::new();
        for (place, link) in self.proven.iter().take(MOST_SHOWN) {
            let _ = match link {
                Some(link) => writeln!(text, "- `{place}` {link}"),
                None => writeln!(text, "- `{place}`"),
            };
        }
        for (place, fault) in self.doubtful.iter().take(MOST_SHOWN) {
            let wrong = wording.of("not found", "確認できません");
            let _ = writeln!(text, "- `{place}` ⚠ {wrong}: {fault}");
        }
        if text.is_empty() {
            return text;
        }
        let title = wording.of("Evidence:", "根拠:");
        format!("{title}\n{}", text.trim_end())
    }
}

/// Returns the places that an answer names, and whether they are among those that it cites apart.
fn cited(output: &WorkerOutput) -> Vec<(Citation, bool)> {
    let apart = output.evidence.iter().map(|place| (Citation::read(place), true));
    let within = named(&output.result).map(|place| {
        let lines = format!("{}-{}", place.first, place.last);
        let citation = Citation {
            path: place.path,
            lines,
            why: String::new(),
        };
        (citation, false)
    });
    let cited = apart.chain(within).filter(|(citation, _)| !citation.path.is_empty());
    cited.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_the_list_and_from_the_words() {
        let answer = r#"{"result":"It is in `src/a.py:3-4` (see README.md:1), at 10:30.","needs_next_loop":false,"why":"",
            "next_actions":[],"questions_for_user":[],"confidence":0.9,"risk":"low","evidence":["./src/a.py:3-4","b.rs"]}"#;
        let output = crate::routing::worker::read(answer).unwrap();
        let places: Vec<(String, bool)> = cited(&output)
            .into_iter()
            .map(|(citation, is_cited)| (citation.place(), is_cited))
            .collect();
        let expected = [
            ("src/a.py:3-4", true),
            ("b.rs", true),
            ("src/a.py:3-4", false),
            ("README.md:1", false),
            ("10:30", false),
        ];
        assert_eq!(places, expected.map(|(place, is_cited)| (place.to_owned(), is_cited)));
    }

    #[test]
    fn people_see_links_and_what_is_wrong() {
        let evidence = Evidence {
            proven: vec![("a.py:3".to_owned(), Some("https://x.example/a.py#L3".to_owned()))],
            doubtful: vec![("b.py:9".to_owned(), "the file has 2 lines".to_owned())],
        };
        assert_eq!(
            evidence.in_words(Wording { is_japanese: false }),
            "Evidence:\n- `a.py:3` https://x.example/a.py#L3\n- `b.py:9` ⚠ not found: the file has 2 lines"
        );
        assert_eq!(Evidence::default().in_words(Wording { is_japanese: true }), "");
    }
}
