//! Certificates that are not of public authorities: forge, git and model behind TLS with a
//! company's own, and with one that signs itself.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::doctor::said;
use crate::fake::tls::Tls;
use crate::world::scripts::{greets, plan};
use crate::world::{Program, World};

/// Has an issue of GitLab worked on, and looks whether a merge request came of it.
async fn delivers_on_gitlab(mut world: World) {
    world.configure(|config| config["task_sources"] = json!(["gitlab"]));
    let doctor = world.command(&["doctor"]).await;
    assert_eq!(doctor.code, Some(0), "{}", doctor.stdout);
    assert!(
        doctor.stdout.contains("GitLab git of acme/widgets"),
        "{}",
        doctor.stdout
    );
    greets(world.model.plans(plan()));
    world
        .gitlab
        .open_issue("Greet the reader")
        .body("Say hello.")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.stdout, "gitlab:acme/widgets#1: done\n", "{}", world.story());
    assert_eq!(world.gitlab.merge_requests().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_private_authority_is_trusted_for_api_git_and_model_once_it_is_named() {
    let tls = Tls::by_an_authority();
    let mut world = World::behind(&tls).await;
    world.keeps("acme.pem", tls.trusted());
    world.configure(|config| config["ca_file"] = json!("acme.pem"));
    delivers_on_gitlab(world).await;
}

#[tokio::test]
async fn the_usual_variable_means_the_same_for_api_git_and_model() {
    let tls = Tls::by_an_authority();
    let mut world = World::behind(&tls).await;
    let file = world.keeps("acme.pem", tls.trusted());
    world.sets("SSL_CERT_FILE", &file);
    delivers_on_gitlab(world).await;
}

#[tokio::test]
async fn a_certificate_that_signs_itself_is_trusted_for_its_own_connections() {
    let tls = Tls::self_signed();
    let mut world = World::behind(&tls).await;
    world.keeps("acme.pem", tls.trusted());
    world.configure(|config| {
        config["github"]["ca_file"] = json!("acme.pem");
        config["llm"]["openai"]["ca_file"] = json!("acme.pem");
    });
    let doctor = world.command(&["doctor"]).await;
    assert_eq!(doctor.code, Some(0), "{}", doctor.stdout);
    greets(world.model.plans(plan()));
    world
        .github
        .open_issue("Greet the reader")
        .body("Say hello.")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.stdout, "github:acme/widgets#1: done\n", "{}", world.story());
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}

/// A certificate that signs itself, and one of an authority, each in a folder: for a whole run.
#[tokio::test]
async fn a_folder_of_certificates_does_as_well() {
    for tls in [Tls::self_signed(), Tls::by_an_authority()] {
        let mut world = World::behind(&tls).await;
        let file = world.keeps("certificates/acme.pem", tls.trusted());
        world.sets("SSL_CERT_DIR", file.strip_suffix("/acme.pem").unwrap());
        delivers_on_gitlab(world).await;
    }
}

#[tokio::test]
async fn what_is_trusted_for_one_connection_is_not_trusted_for_others() {
    let tls = Tls::by_an_authority();
    let mut world = World::behind(&tls).await;
    world.keeps("acme.pem", tls.trusted());
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["ca_file"] = json!("acme.pem");
    });

    let ended = world.command(&["doctor"]).await;

    insta::assert_snapshot!(said(&world, &ended), @"
    ok    state directory                 FOLDER/state
    ok    GitHub token                    works, as coding-agent-bot
    ok    GitHub repository acme/widgets  can be read and pushed to
    look  GitHub labels in acme/widgets   'coding agent' is for you to create; the others will be made when they are needed
                                          -> create that label there: work begins where people put it on
    ok    GitHub git of acme/widgets      can be fetched, and takes claims
    BAD   GitLab token                    the server's certificate comes from an authority that is not trusted here
                                          -> name that authority's certificate in ca_file
    ok    executor                        EXECUTOR
    ok    Docker                          ENGINE
    ok    environment python              coding-agent-executor-python:latest
    BAD   model                           the model at https://ADDRESS/v1 cannot be reached: the server's certificate comes from an authority that is not trusted here
                                          -> name that authority's certificate in ca_file

    2 to fix, 1 to look at.
    ");
    world.finish().await;
}

/// Returns what `doctor` says about GitHub where the program trusts what `named` needs.
async fn told_of(tls: &Tls, named: &Tls) -> String {
    let mut world = World::behind(tls).await;
    world.keeps("acme.pem", named.trusted());
    world.configure(|config| config["ca_file"] = json!("acme.pem"));
    let ended = world.command(&["doctor"]).await;
    let told = said(&world, &ended);
    world.finish().await;
    let lines = told.lines().skip_while(|line| !line.contains("GitHub token"));
    lines.take(2).flat_map(|line| [line, "\n"]).collect()
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_told_with_what_to_do() {
    let (other, expired) = (Tls::for_another_name(), Tls::expired());
    // Two with the same name and different keys.
    let (own, others) = (Tls::self_signed(), Tls::self_signed());
    let told = tokio::join!(
        told_of(&other, &other),
        told_of(&expired, &expired),
        told_of(&own, &others)
    );
    insta::assert_snapshot!([told.0, told.1, told.2].concat(), @"
    BAD   GitHub token        the server's certificate is for gitlab.example.com, and not for the configured address
                              -> use an address that stands in it, or give the server a certificate for this one
    BAD   GitHub token        the server's certificate ended on 2002-01-01
                              -> renew it, or set this machine's clock
    BAD   GitHub token        the server's certificate signs itself and is not trusted here
                              -> name this very certificate in ca_file
    ");
}

#[tokio::test]
async fn a_file_that_holds_no_certificate_is_refused() {
    let mut world = World::start().await;
    world.keeps(
        "key.pem",
        "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n",
    );
    world.configure(|config| {
        config["ca_file"] = json!("key.pem");
        config["github"]["ca_file"] = json!("nowhere.pem");
    });

    let ended = world.command(&["doctor"]).await;

    assert_eq!(ended.code, Some(78));
    insta::assert_snapshot!(world.settled(&ended.stderr), @"
    coding-agent: FOLDER/config.yaml:2:3: ca_file: the file FOLDER/key.pem holds no certificate; write it in PEM, from `-----BEGIN CERTIFICATE-----` on
    coding-agent: FOLDER/config.yaml:14:5: github.ca_file: the file FOLDER/nowhere.pem cannot be read: No such file or directory (os error 2)
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_forge_that_cannot_be_reached_is_told_in_a_sentence() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        // Nothing listens there.
        config["github"]["api_url"] = json!("http://127.0.0.1:1/api/v3");
        config["gitlab"]["api_url"] = json!("http://127.0.0.1:1/api/v4");
    });

    let ended = world.command(&["doctor"]).await;

    insta::assert_snapshot!(said(&world, &ended), @"
    ok    state directory     FOLDER/state
    BAD   GitHub token        127.0.0.1 cannot be reached: Connection refused (os error 111)
                              -> check github.api_url and the network
    BAD   GitLab token        127.0.0.1 cannot be reached: Connection refused (os error 111)
                              -> check gitlab.api_url and the network
    ok    executor            EXECUTOR
    ok    Docker              ENGINE
    ok    environment python  coding-agent-executor-python:latest
    ok    model               openai at MODEL/v1 has scripted, window 128000 as configured (the server does not tell)

    2 to fix.
    ");
    world.finish().await;
}

/// Writes the shipped example of a configuration with these changes, each of a text that stands in
/// it once.
fn fills_in(world: &World, changes: &[(&str, &str)]) {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/config.yaml.example");
    let mut config = std::fs::read_to_string(example).unwrap();
    for (from, to) in changes {
        assert_eq!(config.matches(from).count(), 1, "{from}");
        config = config.replace(from, to);
    }
    world.keeps("config.yaml", &config);
    let private = Permissions::from_mode(0o600);
    std::fs::set_permissions(world.folder().join("config.yaml"), private).unwrap();
}

/// Follows the README's section on GitLab, step by step, with nothing set up before.
#[tokio::test]
async fn the_set_up_of_the_readme_brings_a_new_user_to_a_merge_request() {
    let tls = Tls::by_an_authority();
    let world = World::behind(&tls).await;
    let certificate = world.keeps("acme.pem", tls.trusted());
    let token = world.keeps("gitlab-token", world.gitlab.token());
    let (url, model) = (world.gitlab.api_url(), world.model.address());
    let does = async |arguments: &[&str]| {
        let mut command = world.program();
        command.args(arguments);
        Program::start(command).ended().await
    };
    let example = [
        ("task_sources: [github]", "task_sources: [gitlab]"),
        ("api_url: https://gitlab.com/api/v4", &format!("api_url: {url}")),
        (
            "#  token_file: /run/secrets/gitlab_token",
            &format!("  token_file: {token}"),
        ),
        ("  projects: []", "  projects: [acme/widgets]"),
        (
            "endpoint: http://127.0.0.1:11434\n    # Name of the model, as in `ollama list`.\n    model: qwen3-coder:30b",
            &format!("endpoint: {model}\n    model: scripted"),
        ),
        ("    go: coding-agent-executor-go:latest\n", ""),
        ("    java: coding-agent-executor-java:latest\n", ""),
        ("    miniforge: coding-agent-executor-miniforge:latest\n", ""),
        ("    node: coding-agent-executor-node:latest\n", ""),
    ];
    fills_in(&world, &example);

    // The machine does not know the authority, and doctor says what to do.
    let refused = does(&["doctor"]).await;

    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stdout.contains("ca_file"), "{}", refused.stdout);
    let marked = format!("  projects: [acme/widgets]\n  ca_file: {certificate}");
    let trusts = [&example[..3], &[("  projects: []", &marked)], &example[4..]].concat();
    fills_in(&world, &trusts);

    let examined = does(&["doctor"]).await;

    assert_eq!(examined.code, Some(0), "{examined:?}");
    greets(world.model.plans(plan()));
    world.gitlab.open_issue("Greet the reader").label("coding agent");

    let ended = does(&["run"]).await;

    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    assert_eq!(world.gitlab.merge_requests().len(), 1);
    world.finish().await;
}
