//! Paths that are taken into the index of a folder, and left out of it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::SESSIONS;
use crate::world::{Ended, World};

/// Runs `index` on a folder and returns its JSON.
async fn told(world: &World, root: &Path, arguments: &[&str]) -> Value {
    let ended = asked(world, root, arguments).await;
    assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

async fn asked(world: &World, root: &Path, arguments: &[&str]) -> Ended {
    let mut all = vec!["index"];
    all.extend(arguments);
    all.extend(["--root", root.to_str().unwrap()]);
    world.command(&all).await
}

/// Returns the paths that a question finds.
async fn found(world: &World, root: &Path, question: &str) -> Vec<String> {
    let ended = world
        .command(&["search", question, "--json", "--root", root.to_str().unwrap()])
        .await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    let chunks = answer["chunks"].as_array().unwrap().iter();
    chunks.map(|chunk| chunk["path"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn paths_are_taken_in_and_left_out_with_the_fields_of_a_change() {
    let world = World::start().await;
    let root = world.folder().join("project");
    fs::create_dir_all(root.join("net")).unwrap();
    fs::create_dir_all(root.join("vendor/deep")).unwrap();
    fs::write(root.join("net/sessions.py"), SESSIONS).unwrap();
    fs::write(root.join("vendor/deep/copy.py"), format!("{SESSIONS}\n# A copy.\n")).unwrap();

    let taken = told(&world, &root, &["ingest", "net", "./nothing.py", "--json"]).await;
    let expected = json!({"files": [{"path": "net/sessions.py", "places": 4}], "gone": ["nothing.py"], "parsed": 2});
    assert_eq!(taken, expected);

    // What is left out is in no answer, also after the index itself was lost.
    assert!(
        found(&world, &root, "close the adapter")
            .await
            .contains(&"vendor/deep/copy.py".to_owned())
    );
    let pruned = told(&world, &root, &["prune", "vendor/", "--json"]).await;
    assert_eq!(pruned, json!({"paths": ["vendor"], "files": 1}));
    assert_eq!(found(&world, &root, "copy").await, Vec::<String>::new());
    let status = told(&world, &root, &["status", "--json"]).await;
    fs::remove_file(status["file"].as_str().unwrap()).unwrap();
    assert!(
        found(&world, &root, "close the adapter")
            .await
            .iter()
            .all(|path| path == "net/sessions.py")
    );

    // A file that moved is not parsed again, and its old path is gone.
    fs::rename(root.join("net/sessions.py"), root.join("net/connections.py")).unwrap();
    let diff = root.join("../diff.json");
    fs::write(
        &diff,
        json!({"renamed": [{"from": "net/sessions.py", "to": "net/connections.py"}], "added": ["vendor"]}).to_string(),
    )
    .unwrap();
    let taken = told(&world, &root, &["ingest", "--diff", diff.to_str().unwrap(), "--json"]).await;
    assert_eq!(taken["gone"], json!(["net/sessions.py"]));
    assert_eq!(taken["parsed"], 0);
    assert_eq!(taken["files"][0], json!({"path": "net/connections.py", "places": 4}));
    assert_eq!(taken["files"][1]["path"], "vendor/deep/copy.py");
    assert_eq!(found(&world, &root, "copy").await, ["vendor/deep/copy.py"]);

    let ended = asked(&world, &root, &["ingest", root.join("net").to_str().unwrap()]).await;
    assert!(
        ended
            .stdout
            .contains("1 file with 4 places is in the index; 0 were parsed"),
        "{ended:?}"
    );
    for (arguments, words) in [
        (&["prune", "../elsewhere"][..], "is no path below the root"),
        (&["ingest", "/etc/passwd"], "is no path below the root"),
        (&["ingest", "--diff", "/no/such/file"], "--diff /no/such/file"),
    ] {
        let ended = asked(&world, &root, arguments).await;
        assert_eq!(ended.code, Some(1), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{arguments:?}: {ended:?}");
    }
    fs::write(&diff, "{\"moved\": []}").unwrap();
    let ended = asked(&world, &root, &["ingest", "--diff", diff.to_str().unwrap()]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("unknown field `moved`") && ended.stderr.contains("\"renamed\""),
        "{ended:?}"
    );
    world.finish().await;
}

#[tokio::test]
async fn several_programs_make_and_search_the_index_of_a_folder_at_once() {
    let world = World::start().await;
    let root = world.folder().join("project");
    fs::create_dir_all(&root).unwrap();
    for number in 0..120 {
        let text = format!("def part_{number}(x):\n    return x + {number}\n").repeat(10);
        fs::write(root.join(format!("part_{number}.py")), text).unwrap();
    }
    fs::write(root.join("sessions.py"), SESSIONS).unwrap();
    let search = || found(&world, &root, "close the adapter");
    let (one, other, third) = tokio::join!(search(), search(), search());
    for found in [one, other, third] {
        assert_eq!(found.first().map(String::as_str), Some("sessions.py"), "{found:?}");
    }
    world.finish().await;
}
