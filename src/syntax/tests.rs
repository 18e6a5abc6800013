//! Files of each language, and what is hostile to parsers.

use std::fmt::Write as _;

use super::words;
use super::{Kind, outline};

fn places(path: &str, text: &str) -> Vec<(String, Kind, usize, usize)> {
    let chunks = outline(path, text).chunks.into_iter();
    let named = chunks.map(|chunk| {
        let name = match chunk.parent.as_str() {
            "" => chunk.name,
            parent => format!("{parent}.{}", chunk.name),
        };
        (name, chunk.kind, chunk.first, chunk.last)
    });
    named.collect()
}

fn names(path: &str, text: &str) -> Vec<String> {
    let places = places(path, text).into_iter();
    places
        .map(|(name, _, _, _)| name)
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn functions_methods_and_classes_are_places_with_the_comments_above_them() {
    let text = "import os\n\n# Greets.\n@cached\ndef greet(name):\n    return name\n\nclass Person:\n    age = 1\n\n    def walk(self):\n        def inner():\n            pass\n        os.walk()\n    size = 2\n";
    assert_eq!(
        places("a.py", text),
        [
            (String::new(), Kind::Lines, 1, 2),
            ("greet".to_owned(), Kind::Function, 3, 6),
            ("Person".to_owned(), Kind::Class, 8, 10),
            ("Person.walk".to_owned(), Kind::Method, 11, 14),
        ]
    );
    let outline = outline("a.py", text);
    assert!(
        outline.references.contains(&"walk".to_owned()),
        "{:?}",
        outline.references
    );
    let person = outline.chunks.iter().find(|chunk| chunk.name == "Person").unwrap();
    assert_eq!(person.own, [(8, 10), (15, 15)]);
}

#[test]
fn a_macro_ends_with_its_own_line() {
    assert_eq!(
        places("a.c", "#define MAX(a) a\nint b;\n"),
        [
            ("MAX".to_owned(), Kind::Macro, 1, 1),
            (String::new(), Kind::Lines, 2, 2),
        ]
    );
}

#[test]
fn every_grammar_fits_and_names_what_it_defines() {
    let cases = [
        (
            "a.js",
            "const f = () => 1;\nclass A { m() {} }\nexports.g = function () {};\n",
            vec!["f", "A", "A.m", "g"],
        ),
        (
            "a.ts",
            "interface I { m(): void }\nenum E { A }\nabstract class C { n(): void {} }\n",
            vec!["I", "I.m", "E", "C", "C.n"],
        ),
        ("a.tsx", "export function View() { return <b>x</b>; }\n", vec!["View"]),
        (
            "A.java",
            "class A {\n  A() {}\n  int m() { return 1; }\n}\ninterface I {}\n",
            vec!["A", "A.A", "A.m", "I"],
        ),
        (
            "a.go",
            "package a\ntype T struct{}\nfunc (t *T) Run() {}\nfunc main() {}\n",
            vec!["T", "T.Run", "main"],
        ),
        (
            "a.rs",
            "struct S;\nimpl S {\n    fn go(&self) {}\n}\nmacro_rules! m { () => {} }\n",
            vec!["S", "S", "S.go", "m"],
        ),
        (
            "a.c",
            "struct s { int a; };\nstatic int *run(int a)\n{\n  return 0;\n}\n#define MAX(a) a\n",
            vec!["s", "run", "MAX"],
        ),
        (
            "a.cpp",
            "namespace n {\nclass K {\n  void m() {}\n};\n}\nvoid K::run() {}\n",
            vec!["n", "n.K", "K.m", "run"],
        ),
        (
            "a.rb",
            "module M\n  class K\n    def m\n    end\n  end\nend\n",
            vec!["M", "M.K", "K.m"],
        ),
    ];
    for (path, text, expected) in cases {
        assert_eq!(names(path, text), expected, "{path}");
    }
}

#[test]
fn sections_and_keys_have_their_names() {
    let readme = "intro\n# Use\ntext\n```sh\n# no heading\n```\n## 設定の方法\nmore\n";
    assert_eq!(names("README.md", readme), ["Use", "設定の方法"]);
    assert_eq!(
        names("a.yaml", "llm:\n  model: x\nconsumers: 2\n# no: key\n"),
        ["llm", "consumers"]
    );
    assert_eq!(
        names("a.toml", "[package]\nname = \"x\"\n[dependencies]\n"),
        ["package", "name", "dependencies"]
    );
    assert_eq!(
        names(
            "a.json",
            "{\n  \"scripts\": {\n    \"test\": \"x\"\n  },\n  \"name\": 1\n}\n"
        ),
        ["scripts", "name"]
    );
}

#[test]
fn other_files_fall_into_windows_of_lines_and_long_functions_into_parts() {
    let lines = "some words here\n".repeat(100);
    let windows: Vec<_> = places("a.txt", &lines)
        .into_iter()
        .map(|(_, _, first, last)| (first, last))
        .collect();
    assert_eq!(windows, [(1, 40), (41, 80), (81, 100)]);
    let long = format!("def long():\n{}", "    step()\n".repeat(150));
    let parts: Vec<_> = places("a.py", &long)
        .into_iter()
        .map(|(name, _, first, last)| (name, first, last))
        .collect();
    let part = |first, last| ("long".to_owned(), first, last);
    assert_eq!(parts, [part(1, 60), part(61, 120), part(121, 151)]);
}

#[test]
fn each_line_counts_for_one_place_alone() {
    let text = "class A:\n    def f(self):\n        pass\n\n    x = 1\n\n    def g(self):\n        pass\n\ny = 2\n";
    let mut seen = vec![0; text.lines().count() + 1];
    for chunk in outline("a.py", text).chunks {
        for (first, last) in chunk.own {
            (first..=last).for_each(|line| seen[line] += 1);
        }
    }
    assert!(seen.iter().all(|count| *count <= 1), "{seen:?}");
}

#[test]
fn hostile_files_end() {
    let mut many = String::new();
    for number in 0..20_000 {
        let _ = writeln!(many, "def f{number}(): pass");
    }
    for (path, text) in [
        ("a.py", "(".repeat(400_000)),
        ("a.js", "[{".repeat(200_000)),
        ("a.c", "#if 1\n".repeat(50_000)),
        ("a.cpp", "a<".repeat(100_000)),
        ("a.rs", "/*".repeat(200_000)),
        ("a.json", "[".repeat(500_000)),
        ("a.md", "# ".repeat(200_000)),
        ("a.py", many),
        ("a.go", "\u{0}\u{feff}\r\r\n".repeat(10_000)),
    ] {
        let outline = outline(path, &text);
        let lines = text.lines().count();
        assert!(outline.chunks.len() <= 8_000, "{path}");
        for chunk in &outline.chunks {
            assert!(
                1 <= chunk.first && chunk.first <= chunk.last && chunk.last <= lines,
                "{path}: {chunk:?}"
            );
        }
    }
}

#[test]
fn words_that_stand_everywhere_are_looked_up_in_order() {
    let found = |text: &str| {
        let mut count = 0;
        words::each(text, |_| count += 1);
        count
    };
    for word in ["a", "about", "of", "return", "www", "your", "HTTPS", "Self", "_self_"] {
        assert_eq!(found(word), 0, "{word}");
    }
    assert_eq!(found("aboutness"), 1);
}

#[test]
fn identifiers_count_as_a_whole_and_by_their_parts() {
    let words = |text: &str| {
        let mut found = Vec::new();
        words::each(text, |word| found.push(word.to_owned()));
        found
    };
    assert_eq!(
        words("parseHTTPRequests(max_retries)"),
        ["pars", "request", "parsehttprequests", "max", "retr", "max_retries"]
    );
    assert_eq!(words("認証の失敗"), ["認証", "証の", "の失", "失敗"]);
    assert_eq!(words("the 12 a"), Vec::<String>::new());
    assert_eq!(words(&"x".repeat(65)), Vec::<String>::new());
}
