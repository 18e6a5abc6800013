//! English and Japanese: the words of the pages, and which of the two a browser gets.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};

use crate::web::cookies::cookie;

/// The cookie with the language that somebody chose.
pub(super) const COOKIE: &str = "coding-agent-language";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum Language {
    English,
    Japanese,
}

impl Language {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Japanese => "ja",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::English => Self::Japanese,
            Self::Japanese => Self::English,
        }
    }

    pub(super) fn of_code(code: &str) -> Option<Self> {
        [Self::English, Self::Japanese]
            .into_iter()
            .find(|language| language.code() == code)
    }

    /// Returns what somebody chose, else what the browser likes better.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        if let Some(chosen) = cookie(headers, COOKIE).and_then(|code| Self::of_code(&code)) {
            return chosen;
        }
        let accepted = headers
            .get(header::ACCEPT_LANGUAGE)
            .and_then(|value| value.to_str().ok());
        let mut best = (Self::English, 0.0);
        for entry in accepted.unwrap_or_default().split(',').take(20) {
            let (name, quality) = entry.split_once(';').unwrap_or((entry, "q=1"));
            let quality = quality.trim().strip_prefix("q=").and_then(|text| text.parse().ok());
            let language = name.trim().split('-').next().and_then(Self::of_code);
            if let (Some(language), Some(quality)) = (language, quality)
                && quality > best.1
            {
                best = (language, quality);
            }
        }
        best.0
    }
}

/// The words of both languages.
pub(super) struct Words {
    english: BTreeMap<String, String>,
    japanese: BTreeMap<String, String>,
}

impl Words {
    pub(super) fn read() -> Result<Self, String> {
        let read = |text: &str| serde_yaml::from_str(text).map_err(|error| error.to_string());
        Ok(Self {
            english: read(include_str!("words/en.yaml"))?,
            japanese: read(include_str!("words/ja.yaml"))?,
        })
    }

    pub(super) fn of(&self, language: Language) -> &BTreeMap<String, String> {
        match language {
            Language::English => &self.english,
            Language::Japanese => &self.japanese,
        }
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        self.english.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_have_the_same_words_and_none_is_empty() {
        let words = Words::read().unwrap();
        let names = |words: &BTreeMap<String, String>| words.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&words.english), names(&words.japanese));
        let mut all = words.english.iter().chain(&words.japanese);
        assert!(all.all(|(_, text)| !text.trim().is_empty()));
        let is_translated = |(name, text): (&String, &String)| words.english[name] != *text;
        let count = words.japanese.iter().filter(|pair| is_translated(*pair)).count();
        assert!(count + 5 > words.japanese.len(), "{count} of {}", words.japanese.len());
    }

    #[test]
    fn the_browser_gets_what_it_likes_unless_somebody_chose() {
        let of = |accepted: &str, cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, accepted.parse().unwrap());
            headers.insert(header::COOKIE, cookie.parse().unwrap());
            Language::of(&headers)
        };
        assert_eq!(of("ja,en-US;q=0.9", "a=b"), Language::Japanese);
        assert_eq!(of("en-US,ja;q=0.9", "a=b"), Language::English);
        assert_eq!(of("fr,ja;q=0.2,en;q=0.1", ""), Language::Japanese);
        assert_eq!(of("fr", ""), Language::English);
        assert_eq!(of("ja", "x=1; coding-agent-language=en"), Language::English);
    }
}
