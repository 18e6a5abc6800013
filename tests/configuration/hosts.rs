//! Several hosts of one platform.

use secrecy::ExposeSecret;

use crate::Given;

const LISTS: &str = "\
task_sources: [github, gitlab]
github:
  - {token: one, repositories: [a/b]}
  - {name: ghes-2, api_url: 'https://ghes.test/api/v3', token_file: two.txt, repositories: [a/b]}
gitlab:
  - {token: '${LAB}', projects: [g/p]}
";

#[test]
fn a_section_may_be_a_list_of_hosts() {
    let config = Given::file(LISTS).and("two.txt", "two\n").with("LAB", "three").loads();
    let names: Vec<_> = config.github.entries.iter().map(|host| host.name.as_deref()).collect();
    assert_eq!(names, [None, Some("ghes-2")]);
    let secrets = config.secrets();
    let secrets: Vec<_> = secrets.iter().map(ExposeSecret::expose_secret).collect();
    assert_eq!(secrets, ["one", "two", "three"]);
    let files = &config.secret_files;
    assert!(files.iter().any(|file| file.ends_with("two.txt")), "{files:?}");
    assert!(files.iter().any(|file| file.ends_with("config.yaml")), "{files:?}");
}

#[test]
fn a_single_section_may_have_a_name() {
    let text = "task_sources: [gitlab]\ngitlab: {name: lab, token: a-token, projects: [g/p]}\n";
    let config = Given::file(text).loads();
    assert_eq!(config.gitlab.entries[0].name.as_deref(), Some("lab"));
}

#[test]
fn names_that_ids_cannot_begin_with_are_told_with_their_place() {
    let given = Given::file(
        "\
task_sources: [github, gitlab]
github:
  - {token: a, repositories: [a/b]}
  - {token: a, repositories: [a/b]}
  - {name: Big_Hub, token: a, repositories: [a/b]}
  - {name: gitlab, token: a, repositories: [a/b]}
  - {name: own, token: a, repositories: [a/b]}
gitlab:
  - {name: own, token: a, projects: [g/p]}
  - name: own-2
    tokn: a
    projects: [g]
",
    );
    insta::assert_snapshot!(given.faults(), @r"
    config.yaml:4:5: github[1].name: is missing; every entry but the first needs one, for the ids of its tasks
    config.yaml:5:6: github[2].name: 'Big_Hub' cannot stand in the id of a task; write small letters, digits and `-`
    config.yaml:6:6: github[3].name: 'gitlab' is the name of a platform; give the host another
    config.yaml:9:6: gitlab[0].name: 'own' is given to github[4] too
    config.yaml:10:5: gitlab[1].token: is missing; give `token` or `token_file`, or take gitlab out of task_sources
    config.yaml:11:5: gitlab[1].tokn: unknown key; did you mean `token`?
    config.yaml:12:16: gitlab[1].projects[0]: 'g' is not a project; write group/project or group/*
    ");
}

#[test]
fn an_address_without_encryption_is_told_with_the_host_it_is_of() {
    let text = LISTS.replace("https://ghes", "http://ghes");
    let config = Given::file(&text).and("two.txt", "two\n").with("LAB", "three").loads();
    let doubts = config.doubts();
    assert!(
        doubts
            .iter()
            .any(|doubt| doubt.starts_with("github[1].api_url: the secret")),
        "{doubts:?}"
    );
}

#[test]
fn a_list_without_hosts_is_no_source() {
    let given = Given::file("task_sources: [github]\ngithub: []\n");
    insta::assert_snapshot!(given.faults(), @"config.yaml:2:1: github: is an empty list; describe a host, or take it out of task_sources");
}
