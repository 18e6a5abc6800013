//! Finds the pictures that a page with a Markdown text shows.

use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag};
use regex::Regex;

/// Most bytes of a text that are looked through, and most bytes of an address.
const LONGEST_TEXT: usize = 256 * 1024;
const LONGEST_ADDRESS: usize = 2_000;
/// Most addresses that are returned.
const MOST_LINKS: usize = 20;

#[expect(clippy::expect_used, reason = "the expression is part of the program")]
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?is)<!--.*?(?:-->|\z)|<img\b[^<>]*?\ssrc\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))"#)
        .expect("it is right")
});

/// Returns the addresses of the pictures in a Markdown text, each once, in their order: those of
/// Markdown's own form and those of HTML, in which the forges write what people drop into the page.
/// Pictures in code and in comments are none.
pub fn links(text: &str) -> Vec<String> {
    let text = &text[..text.floor_char_boundary(LONGEST_TEXT)];
    let mut found: Vec<String> = Vec::new();
    let mut html = String::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_GFM) {
        match event {
            // A tag may go over several lines, each of which is an event.
            Event::Html(part) | Event::InlineHtml(part) => html.push_str(&part),
            Event::Start(Tag::Image { dest_url, .. }) => {
                take_html(&mut html, &mut found);
                take(&dest_url, &mut found);
            }
            _ => {}
        }
    }
    take_html(&mut html, &mut found);
    found.truncate(MOST_LINKS);
    found
}

/// Tells whether an address looks like that of a picture which somebody put into a text on a forge,
/// and not like a badge or a picture of another site.
pub fn is_attached(address: &str) -> bool {
    ["/user-attachments/", "/uploads/", "user-images.githubusercontent.com/"]
        .iter()
        .any(|part| address.contains(part))
}

fn take_html(html: &mut String, found: &mut Vec<String>) {
    for captured in TAG.captures_iter(html) {
        let address = (1..=3).find_map(|group| captured.get(group));
        if let Some(address) = address {
            take(&address.as_str().replace("&amp;", "&"), found);
        }
    }
    html.clear();
}

fn take(address: &str, found: &mut Vec<String>) {
    let address = address.trim();
    let is_usable = !address.is_empty() && address.len() <= LONGEST_ADDRESS && !address.contains(char::is_whitespace);
    if is_usable && found.len() <= MOST_LINKS && !found.iter().any(|known| known == address) {
        found.push(address.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_both_forms_are_found_in_their_order_and_once() {
        let text = "See ![a](https://x.example/1.png \"t\") and\n\n\
                    <img width=\"900\" alt=\"Image\" src=\"https://x.example/2?a=1&amp;b=2\" />\n\n\
                    | a |\n|---|\n| <img src='/uploads/3.png'> ![again](https://x.example/1.png) |\n\n\
                    <p>\n<IMG\n  src=https://x.example/4.png\n></p>\n\n![r][ref]\n\n[ref]: https://x.example/5.png\n";
        assert_eq!(
            links(text),
            [
                "https://x.example/1.png",
                "https://x.example/2?a=1&b=2",
                "/uploads/3.png",
                "https://x.example/4.png",
                "https://x.example/5.png"
            ]
        );
    }

    #[test]
    fn what_the_page_shows_no_picture_for_is_none() {
        let text = "`![a](https://x.example/1.png)`\n\n```\n<img src=\"https://x.example/2.png\">\n```\n\n\
                    <!-- <img src=\"https://x.example/3.png\"> -->\n\n[a](https://x.example/4.png) \
                    <a href=\"https://x.example/5.png\">a</a> <img data-src=\"https://x.example/6.png\">";
        assert_eq!(links(text), [] as [String; 0]);
        let many: Vec<String> = (0..100)
            .map(|number| format!("![](https://x.example/{number})"))
            .collect();
        assert_eq!(links(&many.join(" ")).len(), MOST_LINKS);
    }
}
