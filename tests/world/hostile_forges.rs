//! A forge that lies: it sends to other hosts, its lists have no end, its answers are gigabytes, or
//! it shows what nobody asked for. The token stays with it, and the program neither hangs nor falls
//! over.

use std::fmt::Write as _;

use crate::fake::model::Plan;
use crate::fake::site::Site;
use crate::fake::traffic::Fault;
use crate::world::{Ended, World};

const GITHUB_LIST: &str = "GET /repos/*/*/issues";
const GITLAB_LIST: &str = "GET /projects/*/issues";
const GITHUB_COMMENT: &str = "POST /repos/*/*/issues/*/comments";
const GITLAB_COMMENT: &str = "POST /projects/*/issues/*/notes";

/// A text that lives as long as the fakes that answer with it.
fn kept(text: String) -> &'static str {
    text.leak()
}

async fn both() -> (World, World) {
    let worlds = tokio::join!(World::start(), World::on_gitlab());
    worlds.0.github.open_issue("Greet").label("coding agent");
    worlds.1.gitlab.open_issue("Greet").label("coding agent");
    worlds
}

/// How the commands ended, with what they said about it.
fn told(endings: [&Ended; 2]) -> String {
    let mut told = String::new();
    for ended in endings {
        let _ = writeln!(told, "{:?} {}", ended.code.unwrap(), ended.stderr.trim_end());
    }
    told
}

#[tokio::test]
async fn another_host_that_a_forge_sends_to_is_not_asked_and_hears_nothing() {
    let site = Site::start();
    let elsewhere = kept(format!("http://{}", site.address()));
    let (github, gitlab) = both().await;
    github.github.misbehaves(GITHUB_LIST, 0, Fault::Redirects(elsewhere), 1);
    gitlab.gitlab.misbehaves(GITLAB_LIST, 0, Fault::Redirects(elsewhere), 1);

    let (on_github, on_gitlab) = tokio::join!(github.run(), gitlab.run());

    insta::assert_snapshot!(told([&on_github, &on_gitlab]), @"
    1 coding-agent: searching acme/widgets for labelled items: the answer could not be read: it sends to another host, where the token is not sent
    1 coding-agent: searching acme/widgets for labelled items: the answer could not be read: it sends to another host, where the token is not sent
    ");
    // Nor does the text of what would be written go there.
    for world in [&github, &gitlab] {
        world.model.plans(Plan::of(&["look"]));
    }
    github
        .github
        .misbehaves(GITHUB_COMMENT, 0, Fault::Redirects(elsewhere), 1);
    gitlab
        .gitlab
        .misbehaves(GITLAB_COMMENT, 0, Fault::Redirects(elsewhere), 1);
    let (on_github, on_gitlab) = tokio::join!(github.run(), gitlab.run());
    assert_eq!(
        on_github.stdout,
        "github:acme/widgets#1: failed\n",
        "{}",
        github.story()
    );
    assert_eq!(
        on_gitlab.stdout,
        "gitlab:acme/widgets#1: failed\n",
        "{}",
        gitlab.story()
    );
    assert_eq!(site.asked(), [""; 0]);
    github.finish().await;
    gitlab.finish().await;
}

#[tokio::test]
async fn what_moved_on_the_same_host_is_followed() {
    let (github, gitlab) = both().await;
    for world in [&github, &gitlab] {
        let script = world.model.plans(Plan::of(&["look"]));
        script.done("There is nothing to do.").done("There is nothing to do.");
    }
    let (here, there) = (kept(github.github.api_url()), kept(gitlab.gitlab.api_url()));
    for route in [GITHUB_LIST, GITHUB_COMMENT] {
        github.github.misbehaves(route, 0, Fault::Redirects(here), 1);
    }
    for route in [GITLAB_LIST, GITLAB_COMMENT] {
        gitlab.gitlab.misbehaves(route, 0, Fault::Redirects(there), 1);
    }

    let (on_github, on_gitlab) = tokio::join!(github.run(), gitlab.run());

    assert_eq!(on_github.stdout, "github:acme/widgets#1: done\n", "{}", github.story());
    assert_eq!(on_gitlab.stdout, "gitlab:acme/widgets#1: done\n", "{}", gitlab.story());
    github.finish().await;
    gitlab.finish().await;
}

#[tokio::test]
async fn a_next_page_on_another_host_is_asked_of_the_forge_itself() {
    let site = Site::start();
    let elsewhere = kept(format!("http://{}", site.address()));
    let (github, gitlab) = both().await;
    for world in [&github, &gitlab] {
        let script = world.model.plans(Plan::of(&["look"]));
        script.done("There is nothing to do.").done("There is nothing to do.");
    }
    github.github.misbehaves(GITHUB_LIST, 0, Fault::Continues(elsewhere), 1);
    gitlab.gitlab.misbehaves(GITLAB_LIST, 0, Fault::Continues(elsewhere), 1);

    let (on_github, on_gitlab) = tokio::join!(github.run(), gitlab.run());

    assert_eq!(on_github.stdout, "github:acme/widgets#1: done\n", "{}", github.story());
    assert_eq!(on_gitlab.stdout, "gitlab:acme/widgets#1: done\n", "{}", gitlab.story());
    assert_eq!(site.asked(), [""; 0]);
    github.finish().await;
    gitlab.finish().await;
}

#[tokio::test]
async fn lists_without_an_end_and_answers_of_gigabytes_are_given_up() {
    let (github, gitlab) = both().await;
    let circle = kept(github.github.api_url());
    github
        .github
        .misbehaves(GITHUB_LIST, 0, Fault::Continues(circle), usize::MAX);
    // Whatever page is asked for, this one comes.
    let list = format!("{}/projects/acme%2Fwidgets/issues", gitlab.gitlab.api_url());
    let item = read(&list, gitlab.gitlab.token()).await;
    let item = item.strip_prefix('[').unwrap().strip_suffix(']').unwrap();
    let full = kept(format!("[{}]", [item; 100].join(",")));
    gitlab.gitlab.misbehaves(GITLAB_LIST, 0, Fault::Says(full), 201);
    let (on_github, on_gitlab) = tokio::join!(github.run(), gitlab.run());
    insta::assert_snapshot!(told([&on_github, &on_gitlab]), @"
    1 coding-agent: searching acme/widgets for labelled items: the list has more than 200 pages
    1 coding-agent: searching acme/widgets for labelled items: the list has more than 200 pages
    ");
    github.finish().await;

    let (github, other) = both().await;
    github.github.misbehaves(GITHUB_LIST, 0, Fault::Floods, 1);
    gitlab.gitlab.misbehaves(GITLAB_LIST, 0, Fault::Floods, 1);
    let (on_github, on_gitlab) = tokio::join!(github.run(), gitlab.run());
    insta::assert_snapshot!(told([&on_github, &on_gitlab]), @"
    1 coding-agent: searching acme/widgets for labelled items: the answer could not be read: it is too long
    1 coding-agent: searching acme/widgets for labelled items: the answer could not be read: it is too long
    ");
    for world in [github, gitlab, other] {
        world.finish().await;
    }
}

#[tokio::test]
async fn items_of_repositories_that_nobody_named_are_not_worked_on() {
    let (github, gitlab) = tokio::join!(World::start(), World::on_gitlab());
    let (hub, lab) = (&github.github, &gitlab.gitlab);
    let items = [
        hub.repository("victim/private")
            .open_issue("Private")
            .label("coding agent")
            .labels(),
        lab.project("victim/private")
            .open_issue("Private")
            .label("coding agent")
            .labels(),
    ];
    let on_hub = format!("{}/repos/victim/private/issues?labels=coding%20agent", hub.api_url());
    let on_lab = format!(
        "{}/projects/victim%2Fprivate/issues?labels=coding%20agent",
        lab.api_url()
    );
    let (on_hub, on_lab) = tokio::join!(read(&on_hub, hub.token()), read(&on_lab, lab.token()));
    assert!(on_hub.contains("victim/private") && on_lab.contains("victim/private"));
    hub.misbehaves(GITHUB_LIST, 0, Fault::Says(on_hub), 1);
    lab.misbehaves(GITLAB_LIST, 0, Fault::Says(on_lab), 1);

    let (on_github, on_gitlab) = tokio::join!(github.run(), gitlab.run());

    assert_eq!(told([&on_github, &on_gitlab]), "0 \n0 \n");
    assert_eq!((on_github.stdout.as_str(), on_gitlab.stdout.as_str()), ("", ""));
    assert_eq!(items, [["coding agent"]; 2]);
    github.finish().await;
    gitlab.finish().await;
}

/// Asks a forge itself.
async fn read(address: &str, token: &str) -> &'static str {
    let asked = reqwest::Client::new().get(address).bearer_auth(token).send().await;
    kept(asked.unwrap().text().await.unwrap())
}
