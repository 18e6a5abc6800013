//! What a file defines, who uses a name, and what a repository refers to most.

use std::collections::HashMap;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::searching::{is_part, is_test, qualified};
use super::{Index, IndexError};
use crate::repository::CommitId;

/// Files that use a name and are looked through, and lines that are shown.
const MOST_FILES: usize = 60;
const MOST_USES: usize = 60;
const LONGEST_LINE: usize = 200;
/// Names that are like the one asked for.
const MOST_ALIKE: i64 = 20;

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
        if !tree.files.values().any(|file| file.path == path) {
            return Ok(None);
        }
        let rows = sqlx::query(
            "SELECT ?2, coalesce(n.name, ''), coalesce(q.name, ''), c.kind, c.first, c.last FROM snapshot s \
             JOIN path p ON p.path = ?2 JOIN tree t ON t.snapshot = s.id AND t.path = p.id JOIN chunk c ON c.blob = t.blob \
             JOIN name n ON n.id = c.name LEFT JOIN name q ON q.id = c.parent WHERE s.object = ?1 ORDER BY c.first, c.last",
        )
        .bind(commit.as_str())
        .bind(path)
        .fetch_all(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        Ok(Some(rows.iter().map(definition).collect()))
    }

    /// Returns where a name is defined; where it is nowhere, what has it as a part of its name.
    pub async fn definitions(&self, commit: &CommitId, name: &str) -> Result<Vec<Definition>, IndexError> {
        let exact = self.named(commit, "n.name = ?2", name).await?;
        if !exact.is_empty() || !is_part(name) {
            return Ok(exact);
        }
        let parts: Vec<char> = name.chars().collect();
        let query: Vec<String> = parts
            .windows(3)
            .map(|part| format!("\"{}\"", part.iter().collect::<String>()))
            .collect();
        let matching = "n.id IN (SELECT rowid FROM name_parts WHERE name_parts MATCH ?2)";
        self.named(commit, matching, &query.join(" AND ")).await
    }

    async fn named(&self, commit: &CommitId, condition: &str, name: &str) -> Result<Vec<Definition>, IndexError> {
        let statement = format!(
            "SELECT p.path, n.name, coalesce(q.name, ''), c.kind, c.first, c.last FROM name n JOIN chunk c ON c.name = n.id \
             LEFT JOIN name q ON q.id = c.parent JOIN snapshot s ON s.object = ?1 JOIN tree t ON t.snapshot = s.id AND t.blob = c.blob \
             JOIN path p ON p.id = t.path WHERE {condition} ORDER BY length(n.name), p.path, c.first LIMIT {MOST_ALIKE}"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(commit.as_str())
            .bind(name)
            .fetch_all(self.pool())
            .await
            .map_err(|error| self.failed(&error))?;
        let definitions = rows.iter().map(definition);
        Ok(definitions
            .filter(|found| !self.left_out().holds(&found.path))
            .collect())
    }

    /// Returns the lines that use a name, without those that define it, tests last.
    pub async fn uses(
        &self,
        commit: &CommitId,
        name: &str,
        takes: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<Vec<Use>, IndexError> {
        let tree = self.tree(commit).await?;
        let rows = sqlx::query("SELECT r.blob FROM name n JOIN reference r ON r.name = n.id WHERE n.name = ?")
            .bind(name)
            .fetch_all(self.pool())
            .await
            .map_err(|error| self.failed(&error))?;
        let mut files: Vec<(&str, &str)> = rows
            .iter()
            .flat_map(|row| tree.with_content(row.get(0)))
            .map(|(_, file)| (file.path.as_str(), file.object.as_str()))
            .filter(|(path, _)| takes(path) && !self.left_out().holds(path))
            .collect();
        files.sort_by_key(|(path, _)| (is_test(path), path.to_owned()));
        files.truncate(MOST_FILES);
        let objects: Vec<&str> = files.iter().map(|(_, object)| *object).collect();
        let mut lines: HashMap<String, Vec<(usize, String)>> = HashMap::new();
        self.mirror()
            .each_content(&objects, |object, content| {
                lines.insert(object.to_owned(), lines_with(&String::from_utf8_lossy(content), name));
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
        self.tree(commit).await?;
        let rows = sqlx::query(
            "WITH here AS (SELECT DISTINCT t.blob FROM snapshot s JOIN tree t ON t.snapshot = s.id WHERE s.object = ?1), \
             used AS (SELECT r.name, count(*) AS files FROM reference r WHERE r.blob IN here GROUP BY r.name HAVING files > 1) \
             SELECT p.path, n.name, coalesce(q.name, ''), c.kind, c.first, c.last, used.files FROM used \
             JOIN chunk c ON c.name = used.name AND c.blob IN here AND c.kind IN ('function', 'method', 'class', 'type', 'macro') \
             JOIN name n ON n.id = c.name LEFT JOIN name q ON q.id = c.parent \
             JOIN snapshot s ON s.object = ?1 JOIN tree t ON t.snapshot = s.id AND t.blob = c.blob JOIN path p ON p.id = t.path \
             ORDER BY used.files DESC, p.path, c.first LIMIT ?2",
        )
        .bind(commit.as_str())
        .bind(i64::try_from(limit.saturating_mul(10)).unwrap_or(i64::MAX))
        .fetch_all(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        let found: Vec<(Definition, usize)> = rows
            .iter()
            .map(|row| {
                (
                    definition(row),
                    usize::try_from(row.get::<i64, _>(6)).unwrap_or_default(),
                )
            })
            .collect();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (definition, _) in &found {
            *places.entry(last_part(&definition.name)).or_default() += 1;
        }
        let is_clear = |name: &str| places.get(last_part(name)).is_some_and(|count| *count <= 2);
        let clear = found
            .iter()
            .filter(|(found, _)| is_clear(&found.name) && !is_test(&found.path) && !self.left_out().holds(&found.path));
        Ok(clear.take(limit).cloned().collect())
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn definition(row: &SqliteRow) -> Definition {
    let line = |column: usize| usize::try_from(row.get::<i64, _>(column)).unwrap_or(1);
    Definition {
        path: row.get(0),
        name: qualified(row.get(2), row.get(1)),
        kind: row.get(3),
        first: line(4),
        last: line(5),
    }
}

/// Returns the lines that have a name as a whole word, and do not define it.
fn lines_with(text: &str, name: &str) -> Vec<(usize, String)> {
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
    lines
        .map(|(number, line)| (number + 1, line.trim().chars().take(LONGEST_LINE).collect()))
        .collect()
}
