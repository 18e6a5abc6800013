//! Tests of sanitized texts, and properties of every text.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::block::written;
use super::compose::{Line, Page};
use super::escape::GAP;
use super::sanitize;
use crate::secret::Redactor;

fn harmless(text: &str) -> String {
    written(&sanitize::blocks(text))
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(harmless(text).replace(GAP, "¦"), expected, "{text}");
}

#[test]
fn an_ordinary_text_keeps_its_form() {
    let text = "It *fails* on **empty** input, a < b && c > d:\n\n```rust\nlet x: Vec<u8> = vec![]; // @all\n```\n\n* first\n  * nested\n* second, \
                `#7` and `/merge`\n\n> quoted\n> twice\n\n3. three\n4. four\n\n| a | b |\n| --- | --- |\n| 1 | **2** |\n\n日本語もそのまま。**重要**です。\n\n* loose\n\n  \
                more of it\n\n* list";
    check(text, text);
}

#[test]
fn nobody_is_called() {
    check(
        "@all, cc (@acme/owners) and \\@bob",
        "@¦all, cc (@¦acme/owners) and @¦bob",
    );
    check("_@all_ and **@bob**", "*@¦all* and **@¦bob**");
    check("__@_@all", "`__@_@all`");
    check("@\\_all @&lowbar;all", "@¦\\_all @¦\\_all");
    check(
        "`@pytest.fixture` and ``a ` @all``",
        "`@pytest.fixture` and ``a ` @all``",
    );
    check("`@all and ``@all", "\\`@¦all and \\`\\`@¦all");
    check("`a\nb` @all `", "`a b` @¦all \\`");
    check("&#64;all &commat;all", "@¦all @¦all");
    check("\\`@all\\`", "\\`@¦all\\`");
    check("@*all*", "@*all*");
    check("*@*all", "\\*@¦\\*all");
    check("bob@[example.org](x)", "bob@¦example.org (`x`)");
}

#[test]
fn no_bot_is_commanded() {
    check("/merge now\n> /retest", "\\/merge now\n\n> \\/retest");
    check("- /close\n- [x] /merge", "* \\/close\n* \\[x] /merge");
    check(
        "&#47;merge\n\n&#10;/merge\n**/merge** ",
        "\\/merge\n\n\\/merge\n**\\/merge**",
    );
    check("@dependabot merge", "@¦dependabot merge");
}

#[test]
fn nothing_is_closed_or_mentioned() {
    check("Fixes #7, see GH-8", "Fixes #¦7, see GH-¦8");
    check("closes: acme/widgets#7", "closes: acme/widgets#¦7");
    check("it fixes\n#7", "it fixes\n\\#¦7");
    check("Fixes #*7* and #<b>7", "Fixes #*7* and #&lt;b>7");
    check("Fixes [#7](#8)", "Fixes #¦7 (`#8`)");
    check(
        "Fixes https://forge.example/a/b/issues/7",
        "Fixes `https://forge.example/a/b/issues/7`",
    );
    check("ht*tps:*//forge.example/7", "ht¦tps:¦//forge.example/7");
}

#[test]
fn nothing_is_hidden_or_loaded() {
    check("<!-- <b>x</b> a < b", "&lt;!-- &lt;b>x&lt;/b> a < b");
    check("a <!-- x\n\ny --> b", "a &lt;!-- x\n\ny --> b");
    check("<details>\n\n@all", "&lt;details>\n\n@¦all");
    check("![x](https://evil.example/?key)", "x (`https://evil.example/?key`)");
    check("!![x](https://evil.example/)", "!¦x (`https://evil.example/`)");
    check(
        "![x][y] [z]\n\n[y]: https://evil.example/ 'a title'",
        "x (`https://evil.example/`) \\[z]\n\n\\[y\\]: `https://evil.example/` 'a title'",
    );
    check("[a](b) and <https://a.example>", "a (`b`) and `https://a.example`");
    check(
        "[^1] and [x]: y\n\n[^1]: a note",
        "\\[^¦1] and \\[x\\]: y\n\n\\[^¦1\\]: a note",
    );
    check("> [!NOTE]\n> x", "> \\[!NOTE]\n> x");
    check("[[_TOC_]] {+ a +} {{x}}", "\\[\\[*TOC*]] \\{+ a +} \\{{x}}");
    check("$x$ and $`y`$", "`$x$` and `$`¦`y`¦`$`");
}

#[test]
fn no_block_reaches_out_of_its_place() {
    check("~~~~\n<!-- @all", "```\n<!-- @all\n```");
    check("```\n~~~\n@all", "```\n~~~\n@all\n```");
    check("```a`b\n@all", "\\`\\`\\`a\\`b\n@¦all");
    check("x\n    ```\n@all", "x\n\\`\\`\\`\n@¦all");
    check("- a\n  ```\n@all", "* a\n\n@¦all");
    check("1. ~~~ x\n@all", "@¦all");
    check("> ~~~\n> x\n@all", "> ```\n> x\n> ```\n\n@¦all");
    check("~~~\r~~~\r@all", "@¦all");
    check("```\n```\u{a0}\n@all", "````\n```\u{a0}\n@all\n````");
    check("~~~ @all ![x](https://evil.example/)\na", "```\na\n```");
    check(
        "```mermaid\na\n```\n```RUST x\nb\n```",
        "```\na\n```\n\n```rust\nb\n```",
    );
    check("````\n```\n````", "````\n```\n````");
}

#[test]
fn signs_that_are_code_to_some_are_code_to_all() {
    check("[x](a`b) @all `", "x (``a`b``) @¦all \\`");
    check("see https://a.example/`x @all `", "see `https://a.example/`¦`x @all`");
    check("a<`@all>` Fixes", "a¦\\`@¦all¦\\` Fixes");
    check("| `a | @all` | `@all` |", "\\| `a | @all` \\| `@all` \\|");
    check("|a|\n|-|\n|`x\\|y` @all|", "| a |\n| --- |\n| x\\|y @¦all |");
}

#[test]
fn a_line_is_one_line() {
    let line = |text, most| sanitize::line(text, most).replace(GAP, "¦");
    assert_eq!(line("```sh", 100), "\\`\\`\\`sh");
    assert_eq!(
        line("~~~ @all ![x](https://evil.example/p?d=SECRET)", 100),
        "\\~¦\\~¦\\~ @¦all x (`https://evil.example/p?d=SECRET`)"
    );
    assert_eq!(line(" Reading <b>\nand `more`", 100), "Reading &lt;b> and `more`");
    assert_eq!(line("# a\n- b\n\n    c", 100), "\\# a - b c");
    assert_eq!(line("日本語です", 3), "日本語…");
    assert_eq!(line("[a]: https://b", 100), "\\[a\\]: `https://b`");
    assert_eq!(line("1. **first**", 100), "1\\. **first**");
}

#[test]
fn parts_stay_apart() {
    let mut page = Page::default();
    page.heading(Line::filled(
        "Done: {} {}",
        [Line::name("#7 <b>"), Line::address("https://a.example/x")],
    ));
    page.items(vec![
        Line::from("[ ] ").and(Line::said("~~~ @all", 100)),
        Line::code("```"),
    ]);
    page.note("```sh\nrm\n```");
    page.note("Look at `this`.\n\n<details>");
    let mut inner = Page::default();
    inner.code("</details>\n```");
    page.details("What", inner);
    page.small(vec![Line::figures("1 · <b> $2.00"), "x".into()]);
    page.closes(7);
    insta::assert_snapshot!(page.written(&Redactor::new(&[])).as_str().replace(GAP, "¦"), @r"
    ### Done: #¦7 &lt;b> https://a.example/x

    - [ ] \~¦\~¦\~ @¦all
    - ```` ``` ````

    > ⚠️
    >
    > ```sh
    > rm
    > ```

    > ⚠️ Look at `this`.
    >
    > &lt;details>

    <details><summary>What</summary>

    ````
    </details>
    ```
    ````

    </details>

    <sub>1 · b $2.00<br>x</sub>

    Closes #7
    ");
}

#[test]
fn a_secret_is_found_before_signs_are_put_into_it() {
    let redactor = Redactor::new(&["hunter*2*_hunter".into()]);
    let mut page = Page::default();
    page.said("It is hunter*2*_hunter, or hunter\u{200b}*2*_hunter.");
    page.paragraph(Line::said("hunter*2*_hunter", 100).and(Line::name("hunter*2*_hunter")));
    assert_eq!(
        page.written(&redactor).as_str(),
        "It is [redacted], or [redacted].\n\n[redacted][redacted]"
    );
}

/// Returns the words that a page shows, without [`GAP`].
fn words(markdown: &str) -> Vec<String> {
    let mut seen = String::new();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Text(text) | Event::Code(text) => seen.push_str(&text),
            Event::End(TagEnd::Emphasis | TagEnd::Strong) | Event::Start(Tag::Emphasis | Tag::Strong) => {}
            Event::Start(Tag::Image { .. } | Tag::Link { .. }) | Event::Html(_) | Event::InlineHtml(_) => {
                panic!("{markdown:?}")
            }
            _ => seen.push(' '),
        }
    }
    seen.replace(GAP, "").split_whitespace().map(str::to_owned).collect()
}

proptest! {
    #[test]
    fn what_is_written_again_shows_the_same_words(text in "(?s)([@#/!<>&\\[\\]()*_`~|$:.\\-+=1-3a-c \n\\\\]|> |- |1\\. |``` |\n\n|\n    |https://a){0,60}") {
        let once = harmless(&text);
        prop_assert_eq!(words(&once), words(&harmless(&once)), "{:?} {:?}", once, harmless(&once));
    }

    #[test]
    fn words_without_signs_stay(text in "[a-zA-Z,;?äö日本 ]{0,80}") {
        prop_assert_eq!(words(&harmless(&text)), words(&text));
    }

    #[test]
    fn nothing_grows_much(text in "(?s)([>*|`\\[(&<-] ?|a|\n){0,400}") {
        prop_assert!(harmless(&text).len() <= 40 * text.len() + 100);
    }
}
