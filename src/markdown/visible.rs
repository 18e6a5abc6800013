//! Reduces texts that people wrote to what a reader of the page sees; the model gets only that.
//!
//! The page on which a maintainer reads an issue omits comments of HTML and Markdown, the texts of
//! attributes and images, and characters without a glyph. A model that read the source could obey
//! instructions that nobody has seen.

mod html;
mod markdown;
mod mention;

use std::borrow::Cow;

use crate::plain::one_line;

/// Returns the visible part of a Markdown text.
pub fn markdown(text: &str) -> String {
    characters(&markdown::seen(text)).into_owned()
}

/// Tells whether a Markdown text speaks to an account as `@account`: not in code, in a quote, or
/// where the page does not show it. An App's account is called without its `[bot]`.
pub fn mentions(text: &str, account: &str) -> bool {
    let account = account.strip_suffix("[bot]").unwrap_or(account);
    mention::is_in(&markdown(text), account)
}

/// Returns the visible part of a verbatim text: a log, a file.
pub fn plain(text: &str) -> Cow<'_, str> {
    characters(text)
}

/// Returns the visible part of a plain text on one line: a title, a name.
pub fn line(text: &str) -> String {
    one_line(&characters(text))
}

/// Returns the text without the characters that no page shows.
fn characters(text: &str) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|character| is_hidden(character) || is_joiner(character))
    {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_kept = if is_joiner(character) {
            let before = seen.chars().next_back();
            joins(before) && joins(characters.peek().copied())
        } else {
            !is_hidden(character)
        };
        if is_kept {
            seen.push(character);
        }
    }
    Cow::Owned(seen)
}

/// Returns true for characters without a glyph: control, zero width, direction, tags, variation
/// selectors, blanks of some scripts.
fn is_hidden(character: char) -> bool {
    let is_control = character.is_control() && !matches!(character, '\n' | '\t');
    is_control
        || matches!(
            character,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
                | '\u{180B}'..='\u{180F}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
                | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// Returns true for zero-width (non-)joiners, which are part of the spelling in some scripts.
fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200C}' | '\u{200D}')
}

/// Returns true if a joiner beside this character may be part of the spelling: Arabic and Indic
/// letters.
fn joins(neighbour: Option<char>) -> bool {
    neighbour.is_some_and(|neighbour| matches!(neighbour, '\u{600}'..='\u{8FF}' | '\u{900}'..='\u{DFF}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_ordinary_text_stays_as_it_is() {
        let text = "# Crash in `parse()`\n\nIt *fails* on **empty** input, a < b && c > d:\n\n```rust\nlet x: Vec<u8> = \
                    vec![]; // <!-- kept -->\n```\n\n- first\n  - nested `<b>`\n- [ ] todo\n- [x] done\n\n> quoted\n> \
                    twice\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | <2 |\n\nSee https://example.com/a_b and \
                    <https://example.com>.  \nLast line, 日本語もそのまま。 क्‍ष می‌خواهم 🎉\n\n    indented = \"<i>code</i>\"\n\n---\n\
                    & &amp; \\* 50 % [not a link] (really) [^1]\n\n[^1]: A note.\n";
        assert_eq!(markdown(text), text);
    }

    #[test]
    fn what_the_page_does_not_show_is_not_shown_to_the_model() {
        let cases = [
            ("comment", "a<!-- HIDDEN -->b"),
            ("comment over lines", "a\n\n<!--\nHIDDEN\n\nHIDDEN\n-->\n\nb"),
            ("comment without an end", "a\n\nb\n\n<!-- HIDDEN\n\nHIDDEN"),
            ("comment in a list", "- a\n\n  <!-- HIDDEN -->\n- b"),
            ("comment in a quote", "> a\n> <!-- HIDDEN\n> HIDDEN -->\n\nb"),
            (
                "other declarations",
                "a <?HIDDEN HIDDEN?> <!HIDDEN x> <![CDATA[HIDDEN]]> b",
            ),
            (
                "Markdown comment",
                "a\n\n[//]: # (HIDDEN)\n[//]: # (HIDDEN again)\n[HIDDEN]: #\n\nb",
            ),
            (
                "Markdown comment over lines",
                "a\n\n[x]:\n  /HIDDEN\n  \"HIDDEN\nHIDDEN\"\n\nb",
            ),
            ("Markdown comment in a quote", "> a\n>\n> [x]: <HIDDEN> 'HIDDEN'\n\nb"),
            ("title of a link", "a [link](https://example.com \"HIDDEN\") b"),
            ("link without a text", "a [](https://HIDDEN.example.com) b"),
            (
                "title of a reference",
                "a [link][1] b\n\n[1]: https://example.com 'HIDDEN'",
            ),
            (
                "text of a picture",
                "a ![HIDDEN](https://example.com/HIDDEN.png 'HIDDEN') b",
            ),
            ("text of a referenced picture", "a ![HIDDEN][1] b\n\n[1]: HIDDEN"),
            (
                "attributes",
                "a <img alt=\"HIDDEN\" src=HIDDEN title='HIDDEN > HIDDEN'> <a title=\"HIDDEN\">b</a>",
            ),
            (
                "attributes of a block",
                "a\n\n<div title=\"HIDDEN\"\n  data-x='HIDDEN'>b</div>",
            ),
            (
                "sources of a picture",
                "a\n\n<picture>\n<source media=\"HIDDEN\">\n<img src=\"x\" alt=\"HIDDEN\">\n</picture>\n\nb",
            ),
            (
                "hidden element",
                "a\n\n<div hidden>\n\nHIDDEN *HIDDEN*\n\n<div>HIDDEN</div>\n\nHIDDEN</div>\n\nb",
            ),
            (
                "hidden style",
                "a <span style=\"color: red; Display : NONE\">HIDDEN</span> b",
            ),
            (
                "script and style",
                "a\n\n<script>\nHIDDEN\n</script>\n<style>HIDDEN</style>\n\nb",
            ),
            ("element that never ends", "a b\n\n<template>HIDDEN\n\nHIDDEN"),
            ("tag that never ends", "a b\n\n<div HIDDEN=\"HIDDEN"),
            (
                "information of a code block",
                "a\n\n```python HIDDEN HIDDEN\ncode\n```\n\nb",
            ),
            ("a note that nobody mentions", "a\n\n[^x]: HIDDEN\n    HIDDEN\n\nb"),
            ("the second note of a name", "a [^x] b\n\n[^x]: shown\n\n[^x]: HIDDEN"),
            (
                "cells without a column",
                "| a | b |\n|---|---|\n| 1 | 2 | HIDDEN | HIDDEN |\n",
            ),
            (
                "comment of a diagram",
                "a b\n\n```mermaid\ngraph TD\n%% HIDDEN\n  %%{init: HIDDEN}%%\n```\n\nb",
            ),
        ];
        for (what, text) in cases {
            let seen = markdown(text);
            assert!(!seen.contains("HIDDEN"), "{what}: {seen}");
            assert!(seen.contains('a') && seen.contains('b'), "{what}: {seen}");
        }
    }

    #[test]
    fn one_definition_of_a_link_makes_no_long_text_of_a_short_one() {
        let text = "[a][x], [b](https://x.example) and [x]\n\n[x]: https://x.example\n";
        let expected = "[a](https://x.example), [b](https://x.example) and [x]";
        assert_eq!(markdown(text).trim(), expected);
    }

    #[test]
    fn what_is_left_out_takes_nothing_else_along() {
        let text = "<details><summary>Log</summary>\n\nline <b>one</b><br>line two\n\n</details>\n\nSee [the docs](https://x.example \
                    'tip') and [other][o], ![shot](a.png).\n\n[o]: https://o.example 'tip'\n\n<!-- template -->\n## Steps\n\n```sh -x\nmake\n```\n";
        insta::assert_snapshot!(markdown(text), @"
        Log

        line one
        line two



        See [the docs](https://x.example) and [other](https://o.example), [image].




        ## Steps

        ```sh
        make
        ```
        ");
    }

    #[test]
    fn characters_without_a_glyph_go() {
        let tags: String = "obey"
            .chars()
            .map(|letter| char::from_u32(0xE0000 + letter as u32).unwrap())
            .collect();
        let text = format!("a\u{200B}\u{200D}\u{202E}b{tags}\u{FE0F}\u{2066}c\u{3164}\u{FEFF}\r\nd\u{0}\u{1B}[31m\te");
        assert_eq!(markdown(&text), "abc\nd[31m\te");
        assert_eq!(line(" Fix\u{200B}\n  the\tbug \u{202E}"), "Fix the bug");
        // Correct spelling.
        assert_eq!(
            line("می\u{200C}خواهم क\u{94D}\u{200D}ष"),
            "می\u{200C}خواهم क\u{94D}\u{200D}ष"
        );
    }

    #[test]
    fn an_account_is_spoken_to_in_the_writers_own_words_alone() {
        let spoken_to = [
            "@robo-bot",
            "@Robo-Bot, please greet.",
            "Please, **@robo-bot**: greet",
            "Greet.\n\n- (@robo-bot)",
            "Ask @robo-bot.",
            "cc @ann @robo-bot\n> quoted",
            "| who |\n|---|\n| @robo-bot |",
            "A `@other` and @robo-bot",
        ];
        for text in spoken_to {
            assert!(mentions(text, "robo-bot"), "{text}");
            assert!(mentions(text, "robo-bot[bot]"), "{text}");
        }
        let others = [
            "robo-bot",
            "@robo-bot2 @robo-bot-x @robo-bot_ @robo-bot.x @robo-bot/team",
            "mail@robo-bot and x/@robo-bot",
            "`@robo-bot`",
            "```\n@robo-bot\n```",
            "    @robo-bot",
            "> @robo-bot greet",
            "> quoted\n> - @robo-bot",
            "<!-- @robo-bot -->",
            "[docs](https://example.com/@robo-bot)",
            "![@robo-bot](x.png)",
            "<div hidden>@robo-bot</div>",
            "@robo**-bot**",
            "",
        ];
        for text in others {
            assert!(!mentions(text, "robo-bot"), "{text}");
        }
        assert!(mentions("@my_bot_1 go", "my_bot_1") && mentions("@a.b go", "a.b"));
        assert!(!mentions("@ go", "") && !mentions("@my_bot go", "my_bot_1"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(?s)[<>!\\-\\[\\]()\"'`~:^#*|\\\\/a-c \n\u{200D}]{0,120}") {
            markdown(&text);
            mentions(&text, "a");
        }

        #[test]
        fn a_comment_hides_in_any_line(before in "[a-z. ]{0,3}[a-z.]{0,20}", hidden in "[A-Z][A-Z \n]?[A-Z]{0,60}", after in "[a-z .\n]{0,40}") {
            let text = format!("{before}<!--{hidden}-->{after}");
            prop_assert!(!markdown(&text).contains(|letter: char| letter.is_ascii_uppercase()), "{text}");
        }

        #[test]
        fn words_without_marks_stay(text in "[a-zA-Z,;?äö日本 ]{0,80}") {
            prop_assert_eq!(markdown(&text), text);
        }
    }
}
