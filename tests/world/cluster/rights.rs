//! The program's account: exactly what it needs, compared with what the server says.

use super::{is_done, runs};
use crate::world::World;
use crate::world::clusters::kubectl;

const ROLE: &str = "coding-agent";

/// Gives the program's role another list of rules, as a JSON patch.
async fn patch(patch: &str) {
    kubectl(&["patch", "role", ROLE, "--type", "json", "--patch", patch]).await;
}

#[tokio::test]
async fn doctor_compares_the_rights_with_what_the_program_does() {
    let world = World::start().await;

    let exact = world.command(&["doctor"]).await;
    patch(r#"[{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}}]"#).await;
    let more = world.command(&["doctor"]).await;
    patch(r#"[{"op": "remove", "path": "/rules/5"}]"#).await;

    assert!(
        exact.stdout.contains("rights") && exact.stdout.contains("exactly what the program does"),
        "{exact:?}"
    );
    assert!(
        exact
            .stdout
            .contains("a pod reached neither others nor the API server, nodes, names"),
        "{exact:?}"
    );
    assert!(exact.stdout.contains("one was started and removed"), "{exact:?}");
    assert_eq!(exact.code, Some(0), "{exact:?}");
    assert!(more.stdout.contains("the account may also get on secrets"), "{more:?}");
    world.finish().await;
}

#[tokio::test]
async fn without_a_right_the_run_waits_and_the_right_is_named() {
    let world = World::start().await;
    world.model.allows_restarts();
    let (script, issue) = runs(&world, &["echo in"]);
    script.done("Was in.");
    patch(r#"[{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "patch", "delete"]}]"#).await;

    let ended = world.run().await;
    let doctor = world.command(&["doctor"]).await;
    patch(r#"[{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "create", "patch", "delete"]}]"#)
        .await;

    assert_eq!(issue.labels(), ["coding agent paused"], "{ended:?}\n{}", world.story());
    let comment = issue.comments().pop().unwrap().body;
    assert!(
        comment.contains("give the program's account `create` on `pods`"),
        "{comment}"
    );
    assert!(
        doctor.stdout.contains("the account may not create on pods"),
        "{doctor:?}"
    );
    issue.label("coding agent");
    is_done(&world, &issue).await;
    world.finish().await;
}

#[tokio::test]
async fn a_token_that_nobody_knows_is_told() {
    let mut world = World::start().await;
    let known = std::fs::read_to_string(std::env::var("KUBECONFIG").unwrap()).unwrap();
    let begin = known.find("token: \"").unwrap() + 8;
    let end = begin + known[begin..].find('"').unwrap();
    let unknown = format!("{}{}{}", &known[..begin], "eyJhbGciOiJub25lIn0.e30.", &known[end..]);
    let file = world.keeps("unknown.kubeconfig", &unknown);
    super::reaches_by(&mut world, file.as_ref());

    let doctor = world.command(&["doctor"]).await;

    assert!(doctor.stdout.contains("it does not know who asks"), "{doctor:?}");
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    world.finish().await;
}
