//! The site of the documents: every page has its place in the table of contents, and every link
//! leads to something that the site has. mdBook itself is not needed to see that; the check of what
//! it built, which `make site` ends with, is tried on pages with and without faults.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{blocks, documents, is_markdown, read, root};

/// Returns what a text links, without what stands in blocks of code.
fn links(text: &str) -> Vec<String> {
    let mut is_code = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    prose
        .flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split(')').next()))
        .map(str::to_owned)
        .collect()
}

/// Returns a path from the top of the repository for a link in the page `from`.
fn resolved(from: &str, link: &str) -> String {
    let folder = Path::new(from).parent().unwrap();
    let mut parts = Vec::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => assert!(parts.pop().is_some(), "{from} links {link}, outside of the repository"),
            Component::Normal(name) => parts.push(name.to_str().unwrap().to_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

/// Returns the pages of the table of contents, from the top of the repository.
fn pages() -> Vec<String> {
    let summary = read("docs/SUMMARY.md");
    links(&summary)
        .iter()
        .map(|link| resolved("docs/SUMMARY.md", link))
        .collect()
}

/// Returns a folder with the documents that the site, the archive and the Debian package are made
/// of.
fn copied() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut script = Command::new(root().join("scripts/documents"));
    let output = script.arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    folder
}

#[test]
fn every_document_has_one_place_in_the_table_of_contents() {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for page in pages() {
        assert!(root().join(&page).is_file(), "there is no {page}");
        *times.entry(page).or_default() += 1;
    }
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let missing: Vec<_> = documents()
        .into_iter()
        .filter(|path| is_markdown(path) && path != "docs/SUMMARY.md" && !times.contains_key(path))
        .collect();
    assert_eq!(missing, Vec::<String>::new(), "docs/SUMMARY.md does not list these");
}

#[test]
fn every_link_of_a_page_leads_to_something_that_goes_with_it() {
    let copied = copied();
    let pages: BTreeSet<String> = pages().into_iter().collect();
    for page in &pages {
        assert!(
            copied.path().join(page).is_file(),
            "scripts/documents leaves out {page}"
        );
        for link in links(&read(page)) {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let target = resolved(page, file);
            let is_page = pages.contains(&target);
            let is_file = !is_markdown(&target) && copied.path().join(&target).is_file();
            assert!(
                is_page || is_file,
                "{page} links {link}, which scripts/documents leaves out"
            );
        }
    }
}

/// The site, a terminal and an editor show the source of such a diagram.
#[test]
fn no_page_has_a_diagram_that_only_the_forges_draw() {
    let pages = pages();
    let drawn = pages.iter().filter(|page| {
        let blocks = blocks(&read(page));
        blocks.iter().any(|(kind, _)| kind.trim_start().starts_with("mermaid"))
    });
    assert_eq!(drawn.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn the_site_the_archive_and_the_package_have_the_same_documents() {
    for script in ["scripts/site", "scripts/dist", "scripts/package-debian"] {
        let text = read(script);
        let is_called = text.lines().any(|line| line.trim().starts_with("scripts/documents "));
        assert!(is_called, "{script} copies documents of its own");
    }
    assert!(read("book.toml").contains("src = \"docs\""));
}

/// Returns the heading's name in links, as mdBook and the forges make it.
fn name_of(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim();
    words
        .chars()
        .filter_map(|letter| match letter {
            letter if letter.is_whitespace() => Some('-'),
            letter if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

/// Returns the names of a page's headings.
fn headings(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let headings = text.lines().filter(|line| {
        is_code ^= line.trim_start().starts_with("```");
        let level = line.chars().take_while(|letter| *letter == '#').count();
        !is_code && level > 0 && line[level..].starts_with(' ')
    });
    headings.map(name_of).collect()
}

#[test]
fn every_link_to_a_heading_leads_to_one() {
    let mut followed = 0;
    for page in pages() {
        for link in links(&read(&page)) {
            let Some((file, heading)) = link.split_once('#').filter(|(file, _)| !file.contains("://")) else {
                continue;
            };
            let target = if file.is_empty() {
                page.clone()
            } else {
                resolved(&page, file)
            };
            if is_markdown(&target) {
                followed += 1;
                assert!(
                    headings(&read(&target)).contains(heading),
                    "{page} links {link}: {target} has no such heading"
                );
            }
        }
    }
    assert!(followed > 50, "{followed}");
}

/// Runs the check of built pages on a folder with these files.
fn check_links(files: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut script = Command::new(root().join("scripts/check-links"));
    script.arg(folder.path()).output().unwrap()
}

#[test]
fn the_check_of_the_built_site_follows_every_link_within_it() {
    let output = check_links(&[
        (
            "index.html",
            "<h1 id=top-page>1</h1> <a href=\"docs/two.html#%E4%BA%8C\">2</a> <a href=\"#top-page\">1</a>\n\
             <img src=\"docs/picture.svg\"> <a href=\"https://example.com/not-asked\">elsewhere</a>",
        ),
        (
            "docs/two.html",
            "<h2 id=二>2</h2> <a href=\"../index.html#top-page\">1</a> <a href=\"../\">1</a>",
        ),
        ("docs/picture.svg", "<svg/>"),
        // Shown for any address, so its links begin at the site.
        ("404.html", "<base href=\"/\"> <a href=\"docs/two.html#二\">2</a>"),
    ]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.ends_with(": 3 pages, all 6 links within the site lead somewhere\n"),
        "{said}"
    );
}

#[test]
fn the_check_of_the_built_site_names_each_broken_link_and_fails() {
    let broken = [
        ("missing.html", "leads to missing.html, which is not there"),
        ("docs/", "leads to docs/index.html, which is not there"),
        (
            "docs/two.html#three",
            "leads to a place in docs/two.html that is not there",
        ),
        ("#two", "leads to a place in index.html that is not there"),
        ("../docs/two.html", "leads out of the site"),
        ("/docs/two.html", "leads out of the site"),
    ];
    for (link, reason) in broken {
        let page = format!("<h1 id=one>1</h1> <a href=\"docs/two.html\">2</a>\n<a href=\"{link}\">x</a>");
        let output = check_links(&[("index.html", page.as_str()), ("docs/two.html", "<h2 id=two>2</h2>")]);
        assert_eq!(output.status.code(), Some(1), "{link}: {output:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("index.html:2: '{link}' {reason}\n"));
    }
    let output = check_links(&[("index.html", "<img src=\"gone.png\">")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn the_check_of_the_built_site_fails_where_there_is_nothing_to_check() {
    let empty: [&[(&str, &str)]; 3] = [
        &[],
        &[("docs/picture.svg", "<svg/>")],
        &[("index.html", "<a href=\"https://example.com/\">elsewhere</a>")],
    ];
    for files in empty {
        let output = check_links(files);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("nothing was checked"), "{said}");
    }
}

#[test]
fn the_site_is_checked_once_it_is_built() {
    let script = read("scripts/site");
    let at = |line: &str| script.lines().position(|one| one.contains(line));
    let (built, checked) = (at("mdbook build"), at("scripts/check-links \"$SITE/book\""));
    assert!(built.is_some() && built < checked, "{built:?} {checked:?}");
}
