//! The tools of a server, gathered from the pages of its list.
//!
//! The protocol says that the list ends with the first page without a cursor. Not all servers keep
//! to that: some send the same page again and again, with a cursor that is empty, always the same,
//! or new each time. To go on for as long as there is a cursor would show the model each tool a
//! hundred times.

use std::collections::HashSet;

use rmcp::model::Tool;

/// The tools that a server has listed so far.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// No two have the same name.
    pub(super) tools: Vec<Tool>,
    names: HashSet<String>,
    asked_with: HashSet<String>,
}

impl Pages {
    /// Adds a page. Returns the cursor of the next one, unless nothing new is to be expected of it.
    /// A page without any tool says nothing about the next one.
    pub(super) fn add(&mut self, page: Vec<Tool>, cursor: Option<String>) -> Option<String> {
        let mut is_new = page.is_empty();
        for tool in page {
            if self.names.insert(tool.name.to_string()) {
                is_new = true;
                self.tools.push(tool);
            }
        }
        let cursor = cursor.filter(|cursor| is_new && !cursor.is_empty())?;
        self.asked_with.insert(cursor.clone()).then_some(cursor)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    /// Has a server answer with these pages, each its names and the next cursor, as long as they
    /// are asked for. Returns the names, and how many pages were asked for.
    fn gathered(list: &[(&str, Option<&str>)]) -> (String, usize) {
        let (mut pages, mut asked) = (Pages::default(), 0);
        for (names, cursor) in list {
            asked += 1;
            let names = names.split_whitespace();
            let page = names.map(|name| Tool::new(name.to_owned(), "", Map::new())).collect();
            if pages.add(page, cursor.map(str::to_owned)).is_none() {
                break;
            }
        }
        let names: Vec<&str> = pages.tools.iter().map(|tool| &*tool.name).collect();
        (names.join(" "), asked)
    }

    #[test]
    fn a_list_ends_where_nothing_new_comes_and_has_each_name_once() {
        for (list, names, asked) in [
            (vec![("a b", None), ("c", None)], "a b", 1),
            (
                vec![("a", Some("2")), ("b", Some("3")), ("", Some("4")), ("c", None)],
                "a b c",
                4,
            ),
            (vec![("a", Some("")), ("a", Some(""))], "a", 1),
            (vec![("a", Some("x")), ("a", Some("x")), ("a", None)], "a", 2),
            (vec![("a", Some("1")), ("a", Some("2")), ("a", None)], "a", 2),
            (vec![("a", Some("1")), ("b", Some("1")), ("c", None)], "a b", 2),
            (vec![("a a", Some("2")), ("a b", None)], "a b", 2),
        ] {
            assert_eq!(gathered(&list), (names.to_owned(), asked), "{list:?}");
        }
    }
}
