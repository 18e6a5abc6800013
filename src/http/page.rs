//! Answers that are pages of HTML, as websites and proxies have them, and as no API has.

/// The words for such an answer in a message: a page says no more than its status does.
pub const PAGE: &str = "(a page of HTML)";

/// Tells whether the body of an answer is a page.
pub fn is_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}
