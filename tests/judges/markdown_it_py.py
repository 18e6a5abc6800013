"""Renders pages with markdown-it-py, and fails where something in them is more than words."""

import json
import os
import re
import sys

from markdown_it import MarkdownIt

# Elements of HTML that the program writes itself.
OWN = {"<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>", "<br>"}
MENTION = re.compile(r"(?<![A-Za-z0-9_])@[A-Za-z0-9_]")
REFERENCE = re.compile(r"[#!]\d")
# Forges look for commands in the lines of the source, where `\/` is none.
COMMAND = re.compile(r"^[ \t]*/[A-Za-z].*", re.MULTILINE)

reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
given = json.load(open(os.environ["PAGES"], encoding="utf-8"))


def faults(page):
    """Yields what is wrong with a page, and at last whether its end is a paragraph of its own."""
    tokens = reader.parse(page)
    has_end = False
    for token in tokens:
        if token.type == "html_block":
            yield from foreign(token.content)
            yield from (f"a command: {line!r}" for line in COMMAND.findall(token.content))
        if token.type != "inline":
            continue
        has_end |= token.content.strip().endswith(given["end"])
        yield from (f"a command: {line!r}" for line in COMMAND.findall(token.content))
        for child in token.children:
            if child.type == "image":
                yield f"a picture: {child.attrs}"
            elif child.type == "link_open" and child.attrs.get("href") != given["address"]:
                yield f"a link: {child.attrs}"
            elif child.type == "html_inline":
                yield from foreign(child.content)
            elif child.type == "text":
                for pattern, what in ((MENTION, "a mention"), (REFERENCE, "a reference")):
                    if pattern.search(child.content):
                        yield f"{what}: {child.content!r}"
                if "://" in child.content.replace(given["address"], ""):
                    yield f"an address: {child.content!r}"
    if not has_end:
        yield "the end is no paragraph of its own"


def foreign(html):
    """Yields elements of HTML that are not the program's own."""
    for element in re.findall(r"<[^>]*>?", html):
        if element not in OWN:
            yield f"an element: {element!r}"


assert given["pages"], "there is no page"
# The reader itself: what is meant to be found is found.
for planted in ("![x](y)", "[x](https://evil.example)", "<b>x</b>", "@all", "see #7", "/close", "see https://evil.example"):
    assert [fault for fault in faults(f"{planted}\n\n{given['end']}")], f"nothing was noticed in {planted!r}"
assert "the end is no paragraph of its own" in faults(f"```\nx\n\n{given['end']}")

failed = 0
for entry in given["pages"]:
    found = list(faults(entry["page"]))
    if found:
        failed += 1
        if failed <= 5:
            print(f"--- said: {entry['said']!r}\n{entry['page']}\n=== {found}")
if failed:
    sys.exit(f"{failed} of {len(given['pages'])} pages show more than words")
