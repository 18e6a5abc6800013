//! The file tools: what they read, write and list, and where they do not lead.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::Workspace;

#[tokio::test]
async fn a_file_is_written_edited_and_taken_back() {
    let workspace = Workspace::open();
    let file = json!({"path": "src/new/a.txt"});
    workspace
        .succeeds(
            "write_file",
            json!({"path": "src/new/a.txt", "content": "one\ntwo\ntwo\n"}),
        )
        .await;
    let again = json!({"path": "src/new/a.txt", "content": "x"});
    assert!(workspace.fails("write_file", again).await.starts_with("exists 409: "));

    let twice = json!({"path": "src/new/a.txt", "old": "two", "new": "2"});
    assert_eq!(
        workspace.fails("str_replace", twice).await,
        "exists 409: old occurs 2 times in src/new/a.txt, at the lines 2, 3; add lines around it until it is unique"
    );
    let once = json!({"path": "./src/new/../new/a.txt", "old": "one", "new": "1"});
    workspace.succeeds("str_replace", once).await;
    workspace
        .succeeds(
            "insert",
            json!({"path": workspace.path("src/new/a.txt"), "line": 1, "text": "1.5"}),
        )
        .await;
    workspace
        .succeeds(
            "write_file",
            json!({"path": "src/new/a.txt", "content": "end", "mode": "append"}),
        )
        .await;
    assert_eq!(
        workspace.succeeds("read_file", file.clone()).await,
        "1\n1.5\ntwo\ntwo\nend"
    );
    let range = json!({"path": "src/new/a.txt", "view_range": [2, 3]});
    assert_eq!(
        workspace.succeeds("read_file", range).await,
        "1.5\ntwo\n[lines 2 to 3 of 5]"
    );
    let beyond = json!({"path": "src/new/a.txt", "view_range": [6, -1]});
    assert!(workspace.fails("read_file", beyond).await.contains("the lines 1 to 5"));

    for expected in ["1\n1.5\ntwo\ntwo\n", "1\ntwo\ntwo\n", "one\ntwo\ntwo\n"] {
        workspace.succeeds("undo_edit", file.clone()).await;
        assert_eq!(fs::read_to_string(workspace.path("src/new/a.txt")).unwrap(), expected);
    }
    workspace.succeeds("undo_edit", file.clone()).await;
    assert!(!workspace.path("src/new/a.txt").exists());
    assert!(workspace.fails("undo_edit", file).await.starts_with("not_found 404: "));
    workspace.finish().await;
}

#[tokio::test]
async fn an_edit_is_not_taken_back_over_somebody_elses_change() {
    let workspace = Workspace::open();
    workspace
        .succeeds("write_file", json!({"path": "a", "content": "mine"}))
        .await;
    workspace.run("echo theirs > a").await;
    assert!(
        workspace
            .fails("undo_edit", json!({"path": "a"}))
            .await
            .contains("changed by something else")
    );
    assert_eq!(fs::read_to_string(workspace.path("a")).unwrap(), "theirs\n");
    workspace.finish().await;
}

#[tokio::test]
async fn no_path_leads_out_of_the_project() {
    let workspace = Workspace::open();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), workspace.path("out")).unwrap();
    symlink(outside.path().join("secret"), workspace.path("link")).unwrap();
    symlink("/no/such/thing", workspace.path("dangling")).unwrap();
    let absolute = outside.path().join("secret");
    let neighbour = format!("{}2/secret", workspace.folder.path().display());
    for path in [
        "../x",
        "a/../../x",
        "out/secret",
        "link",
        "/etc/passwd",
        &neighbour,
        absolute.to_str().unwrap(),
    ] {
        for (tool, args) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x", "mode": "overwrite"})),
            ("str_replace", json!({"path": path, "old": "secret", "new": "x"})),
        ] {
            let text = workspace.fails(tool, args).await;
            let refused = text.starts_with("path_escape 400: ") || text.starts_with("not_found 404: ");
            assert!(refused, "{tool} {path}: {text}");
        }
    }
    let write = |path: &str| json!({"path": path, "content": "x", "mode": "overwrite"});
    assert!(
        workspace
            .fails("write_file", write("out/new"))
            .await
            .starts_with("path_escape 400: ")
    );
    workspace.fails("write_file", write("dangling")).await;
    assert!(
        workspace
            .fails("list_files", json!({"path": "out"}))
            .await
            .starts_with("path_escape 400: ")
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(absolute).unwrap(), "secret");
    workspace.finish().await;
}

#[tokio::test]
async fn git_is_read_only_in_every_spelling() {
    let workspace = Workspace::open();
    fs::create_dir(workspace.path(".git")).unwrap();
    fs::write(workspace.path(".git/config"), "[core]").unwrap();
    symlink(".git", workspace.path("innocent")).unwrap();
    symlink(".git/config", workspace.path("config")).unwrap();
    for path in [
        ".git/config",
        ".GIT/hooks/x",
        "sub/.git/x",
        ".git./x",
        "innocent/config",
        "innocent/x",
        "config",
        ".git",
    ] {
        let write = json!({"path": path, "content": "x", "mode": "overwrite"});
        let text = workspace.fails("write_file", write).await;
        assert!(text.starts_with("path_escape 400: "), "{path}: {text}");
    }
    assert_eq!(
        workspace.succeeds("read_file", json!({"path": ".git/config"})).await,
        "[core]"
    );
    assert_eq!(fs::read_dir(workspace.path(".git")).unwrap().count(), 1);
    workspace
        .succeeds("write_file", json!({"path": ".gitignore", "content": "x"}))
        .await;
    workspace.finish().await;
}

#[tokio::test]
async fn only_text_of_bounded_size_is_handled() {
    let workspace = Workspace::open();
    fs::write(workspace.path("large"), "x".repeat(512 * 1024 + 1)).unwrap();
    fs::write(workspace.path("binary"), b"\xff\xfe").unwrap();
    assert!(
        workspace
            .fails("read_file", json!({"path": "large"}))
            .await
            .starts_with("too_large 413: ")
    );
    assert!(
        workspace
            .fails("read_file", json!({"path": "binary"}))
            .await
            .starts_with("not_utf8 415: ")
    );
    assert!(
        workspace
            .fails("read_file", json!({"path": "none"}))
            .await
            .starts_with("not_found 404: ")
    );
    let more = json!({"path": "new", "content": "x".repeat(512 * 1024 + 1)});
    assert!(workspace.fails("write_file", more).await.starts_with("too_large 413: "));
    assert!(!workspace.path("new").exists());
    workspace.run("mkfifo pipe").await;
    assert!(
        workspace
            .fails("read_file", json!({"path": "pipe"}))
            .await
            .contains("no regular file")
    );
    assert!(
        workspace
            .fails("read_file", json!({"path": "."}))
            .await
            .contains("is a folder")
    );
    assert!(
        workspace
            .fails("insert", json!({"path": "no/such/file", "line": 0, "text": "x"}))
            .await
            .contains("404")
    );
    assert!(!workspace.path("no").exists());

    fs::write(workspace.path("long"), "0123456789\n".repeat(4000)).unwrap();
    let text = workspace.succeeds("read_file", json!({"path": "long"})).await;
    assert!(
        text.ends_with("\n[lines 1 to 1818 of 4000]"),
        "{}",
        &text[text.len() - 40..]
    );
    workspace.finish().await;
}

#[tokio::test]
async fn an_edit_keeps_mode_links_and_line_ends_and_leaves_no_draft() {
    let workspace = Workspace::open();
    fs::write(workspace.path("run.sh"), "echo\r\nexit\r\n").unwrap();
    fs::set_permissions(workspace.path("run.sh"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("run.sh", workspace.path("alias")).unwrap();
    assert_eq!(
        workspace.succeeds("read_file", json!({"path": "alias"})).await,
        "echo\nexit\n"
    );
    workspace
        .succeeds(
            "str_replace",
            json!({"path": "alias", "old": "echo\nexit", "new": "a\nb"}),
        )
        .await;
    assert_eq!(fs::read_to_string(workspace.path("run.sh")).unwrap(), "a\r\nb\r\n");
    assert_eq!(
        fs::metadata(workspace.path("run.sh")).unwrap().permissions().mode() & 0o777,
        0o751
    );
    assert!(workspace.path("alias").is_symlink());
    workspace.succeeds("undo_edit", json!({"path": "run.sh"})).await;
    assert_eq!(fs::read_to_string(workspace.path("alias")).unwrap(), "echo\r\nexit\r\n");
    assert_eq!(fs::read_dir(workspace.folder.path()).unwrap().count(), 2);
    workspace.finish().await;
}

#[tokio::test]
async fn an_answer_with_a_part_of_a_file_says_for_programs_which_lines_it_has() {
    let workspace = Workspace::open();
    fs::write(workspace.path("long"), "0123456789\n".repeat(4000)).unwrap();
    for (args, lines) in [
        (json!({"path": "long"}), json!({"first": 1, "last": 1818, "of": 4000})),
        (
            json!({"path": "long", "view_range": [3999, -1]}),
            json!({"first": 3999, "last": 4000, "of": 4000}),
        ),
    ] {
        let (_, fields) = workspace.try_call("read_file", args).await.unwrap();
        assert_eq!(fields, json!({"size": 44_000, "lines": lines}));
    }
    fs::write(workspace.path("a"), "a\n").unwrap();
    let (_, fields) = workspace.try_call("read_file", json!({"path": "a"})).await.unwrap();
    assert_eq!(fields, json!({"size": 2}));
    workspace.finish().await;
}

#[tokio::test]
async fn a_byte_order_mark_is_not_shown_and_stays_where_it_is() {
    let workspace = Workspace::open();
    fs::write(workspace.path("a.ps1"), "\u{feff}one\n").unwrap();
    let read = json!({"path": "a.ps1"});
    assert_eq!(workspace.succeeds("read_file", read.clone()).await, "one\n");
    for (tool, args, expected) in [
        (
            "insert",
            json!({"path": "a.ps1", "line": 0, "text": "zero"}),
            "\u{feff}zero\none\n",
        ),
        (
            "write_file",
            json!({"path": "a.ps1", "content": "ä\n", "mode": "overwrite"}),
            "\u{feff}ä\n",
        ),
        ("undo_edit", read, "\u{feff}zero\none\n"),
    ] {
        workspace.succeeds(tool, args).await;
        assert_eq!(fs::read_to_string(workspace.path("a.ps1")).unwrap(), expected, "{tool}");
    }
    workspace.finish().await;
}

#[tokio::test]
async fn a_folder_is_listed_level_by_level() {
    let workspace = Workspace::open();
    workspace
        .run(
            "mkdir -p .git deep/er src empty; touch b a deep/er/1 deep/er/2 src/x; ln -s /etc out; touch $'new\\nline'",
        )
        .await;
    let text = workspace.succeeds("list_files", json!({"path": "."})).await;
    assert_eq!(text, "a\t0\nb\t0\ndeep/\nempty/\nnew\u{fffd}line\t0\nout@\nsrc/");
    let all = json!({"path": "", "recursive": true});
    let text = workspace.succeeds("list_files", all).await;
    assert_eq!(
        text,
        "a\t0\nb\t0\ndeep/\ndeep/er/\ndeep/er/1\t0\ndeep/er/2\t0\nempty/\nnew\u{fffd}line\t0\nout@\nsrc/\nsrc/x\t0"
    );
    let some = json!({"path": ".", "recursive": true, "max_items": 9});
    let text = workspace.succeeds("list_files", some).await;
    assert!(
        text.contains("src/x\t0\n[cut after 9 items; ") && !text.contains("er/1"),
        "{text}"
    );
    assert_eq!(
        workspace.succeeds("list_files", json!({"path": "empty"})).await,
        "[empty folder]"
    );
    workspace
        .run("printf 12345 > src/B.PY; touch src/c.pyc deep/d.py")
        .await;
    for (asked, expected) in [
        (
            json!({"path": ".", "recursive": true, "extensions": [".py"]}),
            "deep/d.py\t0\nsrc/B.PY\t5",
        ),
        (
            json!({"path": "src", "extensions": ["py", "*.pyc"], "max_items": -1}),
            "B.PY\t5\nc.pyc\t0",
        ),
        (json!({"path": ".", "extensions": ["py"]}), "deep/\nempty/\nsrc/"),
        (
            json!({"path": "empty", "recursive": true, "extensions": ["py"], "max_items": 0}),
            "[no such files]",
        ),
    ] {
        assert_eq!(
            workspace.succeeds("list_files", asked.clone()).await,
            expected,
            "{asked}"
        );
    }
    assert!(
        workspace
            .fails("list_files", json!({"path": "a"}))
            .await
            .starts_with("not_found 404: ")
    );
    workspace.finish().await;
}

#[tokio::test]
async fn a_wide_tree_is_looked_through_with_few_open_files() {
    let workspace = Workspace::open();
    workspace
        .run(
            "mkdir -p packages/{1..300}/src; mkdir -m 0 packages/closed; \
             cd packages; touch 1/src/a.py 150/src/b.py 300/src/c.py",
        )
        .await;
    let executor = Pid::from_raw(i32::try_from(workspace.executor()).unwrap());
    let few = Rlimit {
        current: Some(100),
        maximum: Some(100),
    };
    prlimit(executor, Resource::Nofile, few).unwrap();

    let sources = json!({"path": ".", "recursive": true, "extensions": ["py"]});
    assert_eq!(
        workspace.succeeds("list_files", sources).await,
        "packages/1/src/a.py\t0\npackages/150/src/b.py\t0\npackages/300/src/c.py\t0"
    );
    for (wrong, right) in [
        ("1/a.py", "1/src/a.py"),
        ("2/b.py", "150/src/b.py"),
        ("c.py", "300/src/c.py"),
    ] {
        let told = workspace
            .fails("read_file", json!({"path": format!("packages/{wrong}")}))
            .await;
        assert!(told.contains(&format!("there is packages/{right}")), "{told}");
    }
    // Whoever may not read a folder cannot remove it with its parents either.
    workspace.run("rmdir packages/closed").await;
    workspace.finish().await;
}

#[tokio::test]
async fn a_text_that_does_not_occur_is_answered_with_the_closest_lines() {
    let workspace = Workspace::open();
    let lines: Vec<String> = (1..=30).map(|line| format!("    total_{line} = add({line})")).collect();
    let text = lines.join("\n");
    workspace
        .succeeds("write_file", json!({"path": "a.py", "content": text}))
        .await;
    let misses = json!({"path": "a.py", "old": "total_7 = plus(7)", "new": "x"});
    assert_eq!(
        workspace.fails("str_replace", misses).await,
        "not_found 404: old does not occur in a.py; copy it exactly. The closest lines, with their numbers:\n6:     total_6 = add(6)\n\
         7:     total_7 = add(7)\n8:     total_8 = add(8)"
    );
    // With the numbers, as they were shown.
    let numbered = json!({"path": "a.py", "old": "7:     total_7 = add(7)", "new": "7:     total_7 = 7"});
    workspace.succeeds("str_replace", numbered).await;
    let trailing = json!({"path": "a.py", "old": "    total_7 = 7  \n    total_8 = add(8) ", "new": "    pass"});
    workspace.succeeds("str_replace", trailing).await;
    let range = json!({"path": "a.py", "view_range": [0, 8]});
    assert!(
        workspace
            .succeeds("read_file", range)
            .await
            .contains("total_6 = add(6)\n    pass\n    total_9"),
    );
    workspace.finish().await;
}
