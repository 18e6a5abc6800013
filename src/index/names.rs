//! The names in an index: the definitions of a file, the users of a name, and the definitions that
//! a repository refers to most.

use std::collections::{BTreeMap, HashMap};

use sqlx::Row;

use super::searching::{is_part, is_test, qualified};
use super::stored::digest;
use super::stored::places::{PlaceOf, Places};
use super::tree::Tree;
use super::{Index, IndexError};
use crate::repository::CommitId;
use crate::secret::Redactor;
use crate::syntax::Kind;

/// Most files with uses of a name that are looked through, and most lines that are shown.
const MOST_FILES: usize = 60;
const MOST_USES: usize = 60;
const LONGEST_LINE: usize = 200;
/// Names that are like the one asked for.
const MOST_ALIKE: usize = 20;

/// Something that a file defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub path: String,
    pub name: String,
    pub kind: String,
    pub first: usize,
    pub last: usize,
}

/// A line that uses a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub path: String,
    pub line: usize,
    pub text: String,
}

impl Index {
    /// Returns what a file of a commit defines, in order; `None` if there is no such file.
    pub async fn outline(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<Definition>>, IndexError> {
        let tree = self.tree(commit).await?;
        let Some(file) = tree.files.iter().find(|file| file.path == path) else {
            return Ok(None);
        };
        let places = tree.places_of(file).into_iter().flat_map(Places::each);
        let named = places.filter(|place| !place.name.is_empty());
        Ok(Some(named.map(|place| definition(path, place)).collect()))
    }

    /// Returns where a name is defined; where it is nowhere, what has it as a part of its name.
    pub async fn definitions(&self, commit: &CommitId, name: &str) -> Result<Vec<Definition>, IndexError> {
        let tree = self.tree(commit).await?;
        let exact: Vec<_> = tree.named(name).map(|(_, content, place)| (content, place)).collect();
        if !exact.is_empty() || !is_part(name) {
            return Ok(self.first(&tree, exact));
        }
        let part = name.to_lowercase();
        let places = tree.each_place().map(|(_, content, place)| (content, place));
        let alike = places.filter(|(_, place)| place.name.to_lowercase().contains(&part));
        Ok(self.first(&tree, alike.collect()))
    }

    /// Returns the definitions with the shortest names, in the order of their paths.
    fn first(&self, tree: &Tree, found: Vec<(usize, PlaceOf<'_>)>) -> Vec<Definition> {
        let mut lengths: Vec<(usize, Definition)> = Vec::new();
        for (content, place) in found {
            let files = tree.with_content(content).map(|(_, file)| file);
            let files = files.filter(|file| !self.left_out().holds(&file.path));
            lengths.extend(files.map(|file| (place.name.len(), definition(&file.path, place))));
        }
        lengths.sort_by(|(one_length, one), (other_length, other)| {
            let by_place = || (&one.path, one.first).cmp(&(&other.path, other.first));
            one_length.cmp(other_length).then_with(by_place)
        });
        lengths.truncate(MOST_ALIKE);
        lengths.into_iter().map(|(_, definition)| definition).collect()
    }

    /// Returns the lines that use a name, without those that define it and without secrets, tests
    /// last.
    pub async fn uses(
        &self,
        commit: &CommitId,
        name: &str,
        takes: &(dyn Fn(&str) -> bool + Send + Sync),
        redactor: &Redactor,
    ) -> Result<Vec<Use>, IndexError> {
        let tree = self.tree(commit).await?;
        let wanted = digest(name);
        let mut using = Vec::new();
        self.each_use(&tree, Some(wanted), |content, uses| {
            if uses.contains(&wanted) {
                using.push(content);
            }
        })
        .await?;
        let mut files: Vec<(&str, &str)> = using
            .iter()
            .flat_map(|content| tree.with_content(*content))
            .map(|(_, file)| (file.path.as_str(), tree.object(file)))
            .filter(|(path, _)| takes(path) && !self.left_out().holds(path))
            .collect();
        files.sort_by_key(|(path, _)| (is_test(path), path.to_owned()));
        files.truncate(MOST_FILES);
        let objects: Vec<&str> = files.iter().map(|(_, object)| *object).collect();
        let mut lines: HashMap<String, Vec<(usize, String)>> = HashMap::new();
        self.texts()
            .each(&objects, |object, content| {
                let text = String::from_utf8_lossy(content);
                lines.insert(object.to_owned(), lines_with(&text, name, redactor));
            })
            .await?;
        let mut uses = Vec::new();
        for (path, object) in files {
            for (line, text) in lines.get(object).into_iter().flatten() {
                uses.push(Use {
                    path: path.to_owned(),
                    line: *line,
                    text: text.clone(),
                });
            }
        }
        uses.truncate(MOST_USES);
        Ok(uses)
    }

    /// Returns what the most files refer to, of what is defined in one or two places.
    pub async fn most_referred(&self, commit: &CommitId, limit: usize) -> Result<Vec<(Definition, usize)>, IndexError> {
        let tree = self.tree(commit).await?;
        let mut uses_of: HashMap<u32, usize> = HashMap::new();
        self.each_use(&tree, None, |_, uses| {
            for used in uses {
                *uses_of.entry(*used).or_default() += 1;
            }
        })
        .await?;
        uses_of.retain(|_, files| *files > 1);
        // A long one is several places, of which the first counts.
        let mut defined: HashMap<&str, BTreeMap<(&str, &str), PlaceOf<'_>>> = HashMap::new();
        for (_, content, place) in tree.each_place().filter(|(_, _, place)| is_referred_to(place.kind)) {
            if uses_of.contains_key(&digest(place.name)) {
                let places = defined.entry(place.name).or_default();
                for (_, file) in tree.with_content(content) {
                    places.entry((file.path.as_str(), place.parent)).or_insert(place);
                }
            }
        }
        let mut clear = Vec::new();
        for (name, places) in defined.into_iter().filter(|(_, places)| places.len() <= 2) {
            let files = uses_of.get(&digest(name)).copied().unwrap_or_default();
            let shown = places
                .into_iter()
                .filter(|((path, _), _)| !is_test(path) && !self.left_out().holds(path));
            clear.extend(shown.map(|((path, _), place)| (definition(path, place), files)));
        }
        clear.sort_by(|(one, one_files), (other, other_files)| {
            let by_place = || (&one.path, one.first, &one.name).cmp(&(&other.path, other.first, &other.name));
            other_files.cmp(one_files).then_with(by_place)
        });
        clear.truncate(limit);
        Ok(clear)
    }

    /// Calls `take` with each content of a commit and the digests of the names that it uses: with
    /// all contents, or at least with those that use a certain name.
    async fn each_use(
        &self,
        tree: &Tree,
        name: Option<u32>,
        mut take: impl FnMut(usize, &[u32]),
    ) -> Result<(), IndexError> {
        // Four bytes may also be found across the border of two digests.
        let rows = sqlx::query("SELECT id, uses FROM blob WHERE ?1 IS NULL OR instr(uses, ?1) > 0 ORDER BY id")
            .bind(name.map(|name| name.to_le_bytes().to_vec()))
            .fetch_all(self.pool())
            .await
            .map_err(|error| self.failed(&error))?;
        let mut uses = Vec::new();
        for row in &rows {
            let id = row.get::<i64, _>(0).cast_unsigned();
            let Ok(content) = tree.contents.binary_search_by_key(&id, |content| content.known.id) else {
                continue;
            };
            let (digests, _) = row.get::<&[u8], _>(1).as_chunks::<4>();
            uses.clear();
            uses.extend(digests.iter().map(|digest| u32::from_le_bytes(*digest)));
            take(content, &uses);
        }
        Ok(())
    }
}

fn is_referred_to(kind: Kind) -> bool {
    match kind {
        Kind::Function | Kind::Method | Kind::Class | Kind::Type | Kind::Macro => true,
        Kind::Module | Kind::Section | Kind::Key | Kind::Lines => false,
    }
}

fn definition(path: &str, place: PlaceOf<'_>) -> Definition {
    Definition {
        path: path.to_owned(),
        name: qualified(place.parent, place.name),
        kind: place.kind.name().to_owned(),
        first: place.first,
        last: place.last,
    }
}

/// Returns the lines that have a name as a whole word, and do not define it. Each is cleaned before
/// it is cut: nobody recognises the half of a secret that a cut leaves.
fn lines_with(text: &str, name: &str, redactor: &Redactor) -> Vec<(usize, String)> {
    const DEFINE: [&str; 9] = [
        "def ",
        "class ",
        "fn ",
        "func ",
        "function ",
        "struct ",
        "interface ",
        "trait ",
        "type ",
    ];
    let is_inner = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let lines = text.lines().enumerate().filter(|(_, line)| {
        line.match_indices(name).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            !is_inner(before.chars().next_back())
                && !is_inner(after.chars().next())
                && !DEFINE.iter().any(|word| before.ends_with(word))
        })
    });
    let shown = |line: &str| -> String {
        let clean = redactor.clean(line.trim());
        clean.as_str().chars().take(LONGEST_LINE).collect()
    };
    lines
        .take(MOST_USES)
        .map(|(number, line)| (number + 1, shown(line)))
        .collect()
}
