//! Answers that a forge may confirm instead of sending them again.
//!
//! A page is kept with its `ETag`; asked with `If-None-Match`, a forge answers an unchanged one
//! with an empty 304, which GitHub does not count against the rate limit. Bounded: the oldest pages
//! go when there are too many.
//!
//! The smallest are worth telling the next process, for what cron starts is always a new one: a
//! search that finds nothing is what an idle installation asks for, again and again. Larger pages
//! hold what people wrote; they stay in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::header::ETAG;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::forge::http::retry::Answer;

const MOST_BYTES: usize = 2 * 1024 * 1024;
const MOST_PAGES: usize = 1000;
/// An empty list is shorter and one item is longer, in the words of both forges.
const LONGEST_EMPTY: usize = 200;

/// An answer that a forge can confirm by its tag instead of sending it again.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KnownAnswer {
    path: String,
    tag: String,
    body: String,
}

/// The kept pages, by the path they were asked under.
#[derive(Default)]
pub struct Validators {
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    by_path: HashMap<String, Page>,
    by_age: VecDeque<String>,
    bytes: usize,
    /// Whether the small pages have changed since they were last handed out.
    are_news: bool,
}

/// An answer that the forge can confirm.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) tag: HeaderValue,
    pub(crate) answer: Answer,
}

impl Validators {
    pub(crate) fn known(&self, path: &str) -> Option<Page> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.by_path.get(path).cloned()
    }

    /// Stores an answer that has a tag and is not too large.
    pub(crate) fn keep(&self, path: &str, answer: &Answer) {
        let Some(tag) = answer.headers.get(ETAG) else { return };
        if !answer.status.is_success() || answer.body.len() > MOST_BYTES / 2 {
            return;
        }
        let page = Page {
            tag: copied(tag),
            answer: Answer {
                status: answer.status,
                headers: answer
                    .headers
                    .iter()
                    .map(|(name, value)| (name.clone(), copied(value)))
                    .collect(),
                body: Bytes::copy_from_slice(&answer.body),
            },
        };
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.add(path.to_owned(), page);
        while pages.bytes > MOST_BYTES || pages.by_path.len() > MOST_PAGES {
            let Some(oldest) = pages.by_age.front().cloned() else {
                break;
            };
            pages.remove(&oldest);
        }
    }

    /// Takes over the answers that an earlier process stored. A tag that cannot be one was not
    /// written by this program; its answer is dropped.
    pub(crate) fn recall(&self, answers: Vec<KnownAnswer>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        for answer in answers.into_iter().take(MOST_PAGES) {
            if let Ok(tag) = HeaderValue::from_str(&answer.tag) {
                pages.add(answer.path, Page::of_empty_list(tag, answer.body));
            }
        }
        pages.are_news = false;
    }

    /// Returns the answers for the next process, if they have changed since the last call.
    pub(crate) fn news(&self) -> Option<Vec<KnownAnswer>> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::take(&mut pages.are_news) {
            return None;
        }
        let small = pages.by_path.iter().filter(|(_, page)| page.is_small());
        let known = small.filter_map(|(path, page)| {
            Some(KnownAnswer {
                path: path.clone(),
                tag: page.tag.to_str().ok()?.to_owned(),
                body: String::from_utf8(page.answer.body.to_vec()).ok()?,
            })
        });
        Some(known.collect())
    }
}

impl Page {
    fn of_empty_list(tag: HeaderValue, body: String) -> Self {
        let answer = Answer {
            status: StatusCode::OK,
            headers: HeaderMap::from_iter([(ETAG, tag.clone())]),
            body: Bytes::from(body),
        };
        Self { tag, answer }
    }

    /// Returns how many bytes it holds, about.
    fn size(&self) -> usize {
        let headers = self.answer.headers.iter();
        let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
        headers.sum::<usize>() + self.answer.body.len()
    }

    fn is_small(&self) -> bool {
        self.answer.body.len() <= LONGEST_EMPTY
    }
}

/// Returns a value with memory of its own. One that came over a connection is a part of the buffer
/// that it was read into, and a thousand of them would keep a thousand buffers.
fn copied(value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone())
}

impl Pages {
    fn add(&mut self, path: String, page: Page) {
        self.remove(&path);
        self.are_news |= page.is_small();
        self.bytes += page.size();
        self.by_age.push_back(path.clone());
        self.by_path.insert(path, page);
    }

    fn remove(&mut self, path: &str) {
        if let Some(page) = self.by_path.remove(path) {
            self.are_news |= page.is_small();
            self.bytes -= page.size();
            self.by_age.retain(|known| known != path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(tag: &'static str, size: usize) -> Answer {
        Answer {
            status: StatusCode::OK,
            headers: HeaderMap::from_iter([(ETAG, HeaderValue::from_static(tag))]),
            body: Bytes::from(vec![0; size]),
        }
    }

    #[test]
    fn the_newest_answer_is_known_with_its_tag() {
        let validators = Validators::default();
        validators.keep("/a", &answer("\"1\"", 10));
        validators.keep("/a", &answer("\"2\"", 20));
        let page = validators.known("/a").unwrap();
        assert_eq!((page.tag.to_str().unwrap(), page.answer.body.len()), ("\"2\"", 20));
        assert!(validators.known("/b").is_none());
    }

    #[test]
    fn the_oldest_go_when_there_is_too_much() {
        let validators = Validators::default();
        for page in 0..20 {
            validators.keep(&format!("/{page}"), &answer("\"x\"", MOST_BYTES / 10));
        }
        assert!(validators.known("/0").is_none());
        assert!(validators.known("/19").is_some());
        assert!(validators.pages.lock().unwrap().bytes <= MOST_BYTES);
    }

    #[test]
    fn what_is_kept_holds_no_buffer_of_a_connection() {
        let buffer = Bytes::from(vec![b'x'; 65_536]);
        let is_in_it = |bytes: &[u8]| buffer.as_ptr_range().contains(&bytes.as_ptr());
        let tag = HeaderValue::from_maybe_shared(buffer.slice(..20)).unwrap();
        let given = Answer {
            status: StatusCode::OK,
            headers: HeaderMap::from_iter([(ETAG, tag)]),
            body: buffer.slice(20..40),
        };
        assert!(is_in_it(&given.body) && is_in_it(given.headers[ETAG].as_bytes()));
        let validators = Validators::default();
        validators.keep("/a", &given);
        let page = validators.known("/a").unwrap();
        assert_eq!((&page.answer.body, &page.tag), (&given.body, &given.headers[ETAG]));
        assert!(!is_in_it(&page.answer.body) && !is_in_it(page.tag.as_bytes()));
        assert!(!is_in_it(page.answer.headers[ETAG].as_bytes()));
    }

    #[test]
    fn the_next_process_is_told_of_empty_lists_and_of_nothing_else() {
        let validators = Validators::default();
        assert!(validators.news().is_none());
        validators.keep("/empty", &answer("\"1\"", 2));
        validators.keep("/full", &answer("\"2\"", 5000));
        let news = validators.news().unwrap();
        assert_eq!(news.len(), 1);
        assert!(validators.news().is_none());

        let next = Validators::default();
        next.recall(news);
        assert!(next.news().is_none());
        assert_eq!(next.known("/empty").unwrap().tag, "\"1\"");
        assert!(next.known("/full").is_none());
        next.keep("/empty", &answer("\"3\"", 5000));
        assert_eq!(next.news().unwrap(), []);
    }
}
