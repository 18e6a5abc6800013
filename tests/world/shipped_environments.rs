//! A task in each shipped environment that the other stories do not use: its compiler is there, it
//! works for the user of the container, and checks run in it.

use std::process::Command;

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::scripts::writes;

fn is_there(image: &str) -> bool {
    let found = Command::new("docker").args(["image", "inspect", image]).output();
    found.unwrap().status.success()
}

/// Has a program written and checked in an environment.
async fn is_worked_in(image: &str, name: &str, (path, program): (&str, &str), check: &str) {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["environments"] = json!({ name: image });
        config["command_executor"]["default_environment"] = json!(name);
    });
    let plan = Plan::of(&["write the program"]).in_environment(name).verified_by(check);
    writes(world.model.plans(plan), path, program).done("The program is written.");
    world.github.open_issue("Write a program").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.stdout, "github:acme/widgets#1: done\n", "{}", world.story());
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file(path).as_deref(), Some(program));
    assert!(!pull.is_draft(), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn java_is_compiled_and_run() {
    let program = "public class Greeting {\n    public static void main(String[] words) {\n        System.out.println(\"Hello\");\n    }\n}\n";
    let check = "mvn --version && javac -d /tmp Greeting.java && java -cp /tmp Greeting | grep -qx Hello";
    is_worked_in(
        "coding-agent-executor-java:latest",
        "java",
        ("Greeting.java", program),
        check,
    )
    .await;
}

#[tokio::test]
async fn go_is_compiled_and_run() {
    let program = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"Hello\")\n}\n";
    is_worked_in(
        "coding-agent-executor-go:latest",
        "go",
        ("greeting.go", program),
        "go run greeting.go | grep -qx Hello",
    )
    .await;
}

/// conda comes from nowhere but its own image: where that cannot be had, the set-up has made the same
/// environment of plain Debian, and all of it but conda is tried (docs/compatibility.md).
#[tokio::test]
#[expect(
    clippy::print_stdout,
    reason = "whoever asks for the output learns what was not tried"
)]
async fn the_environment_for_conda_belongs_to_its_user_and_has_conda_where_its_base_could_be_had() {
    let greeting = ("greeting.sh", "echo Hello\n");
    let is_its_users = "test \"$(id -un)\" = agent && test -O /opt/conda && touch /opt/conda/of-the-user && git --version && jq --version && \
        rg --version && sh greeting.sh | grep -qx Hello";
    if is_there("coding-agent-executor-miniforge:latest") {
        let check = format!("{is_its_users} && conda create --quiet --offline --prefix /tmp/empty && mamba --version");
        is_worked_in("coding-agent-executor-miniforge:latest", "miniforge", greeting, &check).await;
        return;
    }
    // Seen where a test fails, and by whoever asks for the output.
    println!("conda itself is NOT tested: its base image could not be had");
    is_worked_in(
        "coding-agent-check-miniforge:local",
        "miniforge",
        greeting,
        is_its_users,
    )
    .await;
}
