//! The words of source code and of questions about it.
//!
//! An identifier counts as a whole and by its parts (`camelCase`, `snake_case`), each in small
//! letters and by its stem. Japanese and Chinese have no spaces between words: each pair of
//! neighbouring letters counts, so that a word of two letters is found.

use std::collections::HashMap;

use super::stem::stem;

/// Bytes of the longest word that counts; longer ones are data, such as keys and encoded files.
pub const LONGEST: usize = 64;

/// Words that stand everywhere: of English, and of the languages of programs. They are in order,
/// since each word of a repository is looked up here.
const EVERYWHERE: &[&str] = &[
    "a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "break", "but", "by", "can",
    "case", "catch", "class", "code", "com", "const", "could", "def", "did", "do", "does", "elif", "else", "except",
    "false", "fn", "for", "from", "func", "function", "get", "had", "has", "have", "how", "http", "https", "i", "if",
    "import", "in", "int", "into", "is", "it", "its", "just", "let", "like", "me", "my", "new", "no", "none", "not",
    "null", "of", "on", "only", "or", "our", "out", "private", "pub", "public", "return", "self", "should", "so",
    "some", "static", "str", "struct", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "to", "true", "try", "up", "use", "used", "using", "var", "void", "was", "we", "were", "what", "when",
    "which", "while", "will", "with", "would", "www", "you", "your",
];

/// Calls `take` with each word of a text, in the form in which it is searched for.
pub fn each(text: &str, mut take: impl FnMut(&str)) {
    let mut small = String::new();
    each_identifier(text, |identifier| match identifier {
        Identifier::Latin(word) => of_identifier(word, &mut small, &mut take),
        Identifier::Unspaced(run) => of_unspaced(run, &mut take),
    });
}

/// Returns how often each word stands in a text.
pub fn counted(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    each(text, |word| {
        if let Some(count) = counts.get_mut(word) {
            *count += 1;
        } else {
            counts.insert(word.to_owned(), 1);
        }
    });
    counts
}

/// Returns the identifiers of a text as they stand there, each once, in their order.
pub fn identifiers(text: &str) -> Vec<&str> {
    let mut seen = std::collections::HashSet::new();
    let mut found = Vec::new();
    each_identifier(text, |identifier| {
        if let Identifier::Latin(word) = identifier
            && seen.insert(word)
        {
            found.push(word);
        }
    });
    found
}

enum Identifier<'t> {
    Latin(&'t str),
    Unspaced(&'t str),
}

fn each_identifier<'t>(text: &'t str, mut take: impl FnMut(Identifier<'t>)) {
    let sort = |letter: char| {
        if is_unspaced(letter) {
            2
        } else {
            u8::from(letter.is_alphanumeric() || letter == '_')
        }
    };
    let (mut begin, mut before) = (0, 0);
    let ends = text.char_indices().map(|(at, letter)| (at, sort(letter)));
    for (at, now) in ends.chain([(text.len(), 0)]) {
        if now != before {
            match before {
                1 if at - begin <= LONGEST => take(Identifier::Latin(&text[begin..at])),
                2 => take(Identifier::Unspaced(&text[begin..at])),
                _ => {}
            }
            (begin, before) = (at, now);
        }
    }
}

/// True for letters of writing that puts no spaces between words.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{3005}'..='\u{3007}')
}

fn of_identifier(word: &str, small: &mut String, take: &mut impl FnMut(&str)) {
    let mut parts = 0;
    each_part(word, |part| {
        parts += 1;
        lowered(part, small);
        if counts(small) {
            take(stem(small));
        }
    });
    if parts > 1 {
        lowered(word, small);
        let whole = small.trim_matches('_');
        if counts(whole) {
            take(whole);
        }
    }
}

/// Writes a word in small letters.
fn lowered(word: &str, small: &mut String) {
    small.clear();
    if word.is_ascii() {
        small.push_str(word);
        small.make_ascii_lowercase();
    } else {
        small.extend(word.chars().flat_map(char::to_lowercase));
    }
}

fn counts(word: &str) -> bool {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    word.len() > 1 && !(is_number && word.len() < 3) && EVERYWHERE.binary_search(&word).is_err()
}

/// Calls `take` with each part of an identifier: `HTTPServer_error2` has `HTTP`, `Server` and
/// `error2`.
fn each_part(word: &str, mut take: impl FnMut(&str)) {
    let (mut begin, mut before) = (0, None);
    let mut letters = word.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '_' {
            if begin < at {
                take(&word[begin..at]);
            }
            begin = at + 1;
        } else if letter.is_uppercase() && begin < at {
            let rises = before.is_some_and(|before: char| before.is_lowercase() || before.is_numeric());
            let ends_capitals =
                before.is_some_and(char::is_uppercase) && letters.peek().is_some_and(|(_, after)| after.is_lowercase());
            if rises || ends_capitals {
                take(&word[begin..at]);
                begin = at;
            }
        }
        before = Some(letter);
    }
    if begin < word.len() {
        take(&word[begin..]);
    }
}

fn of_unspaced(run: &str, take: &mut impl FnMut(&str)) {
    let letters: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    if letters.len() == 2 {
        take(run);
    }
    for pair in letters.windows(3) {
        take(&run[pair[0]..pair[2]]);
    }
}
