//! Limits on lists: endless pages, or many of the maximum size, would fill the memory.

use crate::forge::http::failure::Failure;
use crate::forge::http::retry::Answer;

/// Maximum number of pages. No real list is longer, and a server whose pages form a circle is not
/// followed for ever.
const MOST_PAGES: usize = 200;
/// Maximum bytes of all pages together: four times the maximum of one answer.
const MOST_BYTES: usize = 128 * 1024 * 1024;

/// Size of the part of a list that was read so far.
#[derive(Debug, Default)]
pub(crate) struct ListLimit {
    pages: usize,
    bytes: usize,
}

impl ListLimit {
    /// Counts one more page; fails if the list has become too long.
    pub(crate) fn add(&mut self, page: &Answer) -> Result<(), Failure> {
        self.pages += 1;
        self.bytes = self.bytes.saturating_add(page.body.len());
        let too_long = |what: String| Err(Failure::Unreadable { reason: what });
        if self.pages > MOST_PAGES {
            return too_long(format!("the list has more than {MOST_PAGES} pages"));
        }
        if self.bytes > MOST_BYTES {
            return too_long(format!("the list has more than {} MB", MOST_BYTES / 1024 / 1024));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    use super::*;

    /// Returns after how many pages of this length a list is given up, and why.
    fn given_up(length: usize) -> (usize, String) {
        let page = Answer {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Bytes::from(vec![b' '; length]),
        };
        let mut listing = ListLimit::default();
        let mut pages = 0;
        loop {
            match listing.add(&page) {
                Ok(()) => pages += 1,
                Err(failure) => return (pages, failure.to_string()),
            }
        }
    }

    #[test]
    fn a_list_has_an_end_in_pages_and_in_bytes() {
        assert_eq!(given_up(2), (200, "the list has more than 200 pages".to_owned()));
        assert_eq!(given_up(30 << 20), (4, "the list has more than 128 MB".to_owned()));
    }
}
