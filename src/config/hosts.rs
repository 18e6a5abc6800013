//! A section that may be given once or as a list: one entry for each host of a platform.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The hosts of one platform. The first one may go without a name: it is called as the platform is.
#[derive(Debug, Clone)]
pub struct Hosts<T> {
    pub entries: Vec<T>,
    /// Whether it was written as a list, which shows in the keys of faults.
    is_list: bool,
}

impl<T> Hosts<T> {
    /// Returns each entry with its key, such as `github` or `github.1`.
    pub(super) fn with_keys(&self, section: &str) -> impl Iterator<Item = (String, &T)> {
        let entries = self.entries.iter().enumerate();
        entries.map(move |(index, entry)| (key(section, self.is_list, index), entry))
    }

    /// Returns each entry, to be changed, with its key.
    pub(super) fn with_keys_mut(&mut self, section: &str) -> impl Iterator<Item = (String, &mut T)> {
        let is_list = self.is_list;
        let entries = self.entries.iter_mut().enumerate();
        entries.map(move |(index, entry)| (key(section, is_list, index), entry))
    }
}

fn key(section: &str, is_list: bool, index: usize) -> String {
    if is_list {
        format!("{section}.{index}")
    } else {
        section.to_owned()
    }
}

impl<T: Default> Default for Hosts<T> {
    fn default() -> Self {
        Self {
            entries: vec![T::default()],
            is_list: false,
        }
    }
}

/// Implemented by hand: with an untagged enum, errors would lose the key.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Hosts<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}

struct OneOrMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Hosts<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a section with keys, or a list of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Hosts<T>, A::Error> {
        Ok(Hosts {
            entries: vec![T::deserialize(MapAccessDeserializer::new(map))?],
            is_list: false,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Hosts<T>, A::Error> {
        Ok(Hosts {
            entries: Vec::deserialize(SeqAccessDeserializer::new(list))?,
            is_list: true,
        })
    }
}

impl<T: JsonSchema> JsonSchema for Hosts<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Hosts_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }
}
