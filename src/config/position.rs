//! Finds the position of a key in the text.
//!
//! The YAML library reports positions only in errors. So a key is found by reading the text once
//! more and failing on purpose when the key is reached: slow, exact, and only done when something
//! is wrong.

use std::fmt;

use serde::Deserializer;
use serde::de::DeserializeSeed;
use serde::de::Error;
use serde::de::IgnoredAny;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;

use super::document::place;
use super::fault::Place;

/// Returns the position of the key at the end of `path`, or of the item if it ends in a list.
pub(super) fn locate(text: &str, path: &[String]) -> Option<Place> {
    let walk = Walk { path };
    match walk.deserialize(serde_yaml::Deserializer::from_str(text)) {
        Err(error) if error.to_string().contains(HERE) => place(&error),
        _ => None,
    }
}

const HERE: &str = "the searched key stands here";

/// Follows `path` through the text and fails at its end.
struct Walk<'a> {
    path: &'a [String],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The library's error for a value that is neither mapping nor list ends with this.
        formatter.write_str(if self.path.is_empty() {
            HERE
        } else {
            "a mapping or a list"
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((key, rest)) = self.path.split_first() else {
            return Err(A::Error::custom(HERE));
        };
        let is_last = rest.is_empty();
        while let Some(is_it) = map.next_key_seed(SearchedKey { key, is_last })? {
            if is_it {
                map.next_value_seed(Walk { path: rest })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((index, rest)) = self.path.split_first() else {
            return Err(A::Error::custom(HERE));
        };
        for _ in 0..index.parse().unwrap_or(0) {
            list.next_element::<IgnoredAny>()?;
        }
        list.next_element_seed(Walk { path: rest })?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

struct SearchedKey<'a> {
    key: &'a str,
    /// Whether the search ends, with an error, when the key is found.
    is_last: bool,
}

impl<'de> DeserializeSeed<'de> for SearchedKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for SearchedKey<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key of text")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        match (key == self.key, self.is_last) {
            (true, true) => Err(E::custom(HERE)),
            (is_it, _) => Ok(is_it),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: &[&str], expected: Option<(usize, usize)>) {
        let path: Vec<String> = path.iter().map(|&key| key.to_owned()).collect();
        let place = locate(text, &path).map(|place| (place.line, place.column));
        assert_eq!(place, expected);
    }

    #[test]
    fn keys_and_items_are_found_where_they_stand() {
        let text = "a: 1\nb:\n  - x\n  - {c: 1, d: [2, 3]}\ne:\n  f:\n    g: |\n      a: 1\n    h: 2\n";
        check(text, &["a"], Some((1, 1)));
        check(text, &["b", "0"], Some((3, 5)));
        check(text, &["b", "1"], Some((4, 5)));
        check(text, &["b", "1", "d"], Some((4, 12)));
        check(text, &["b", "1", "d", "1"], Some((4, 19)));
        check(text, &["e", "f", "h"], Some((9, 5)));
        check(text, &["e", "a"], None);
        check(text, &["b", "7"], None);
        check("", &["a"], None);
    }
}
