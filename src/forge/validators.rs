//! Answers that a forge may confirm instead of sending them again.
//!
//! A page is kept with its `ETag`; asked with `If-None-Match`, a forge answers an unchanged one with an empty 304, which
//! GitHub does not count against the rate limit. In memory only: what a process that starts anew saves by knowing the
//! tags of an earlier one is one page per repository. Bounded: the oldest pages go when there are too many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use http::HeaderValue;
use http::header::ETAG;

use super::retry::Answer;

const MOST_BYTES: usize = 8 * 1024 * 1024;
const MOST_PAGES: usize = 1000;

/// The kept pages, by the path they were asked under.
#[derive(Default)]
pub(super) struct Validators {
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    by_path: HashMap<String, Page>,
    by_age: VecDeque<String>,
    bytes: usize,
}

/// An answer that the forge can confirm.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) tag: HeaderValue,
    pub(super) answer: Answer,
}

impl Validators {
    pub(super) fn known(&self, path: &str) -> Option<Page> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.by_path.get(path).cloned()
    }

    /// Keeps an answer that has a tag and is not too large.
    pub(super) fn keep(&self, path: &str, answer: &Answer) {
        let Some(tag) = answer.headers.get(ETAG) else { return };
        if !answer.status.is_success() || answer.body.len() > MOST_BYTES / 4 {
            return;
        }
        let page = Page {
            tag: tag.clone(),
            answer: answer.clone(),
        };
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.remove(path);
        pages.bytes += page.answer.body.len();
        pages.by_age.push_back(path.to_owned());
        pages.by_path.insert(path.to_owned(), page);
        while pages.bytes > MOST_BYTES || pages.by_path.len() > MOST_PAGES {
            let Some(oldest) = pages.by_age.front().cloned() else {
                break;
            };
            pages.remove(&oldest);
        }
    }
}

impl Pages {
    fn remove(&mut self, path: &str) {
        if let Some(page) = self.by_path.remove(path) {
            self.bytes -= page.answer.body.len();
            self.by_age.retain(|known| known != path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

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
}
