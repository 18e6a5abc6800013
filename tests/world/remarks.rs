//! Comments below an item, as the program's own clients report them: which text it is, when it was
//! edited, who may write, and the bot's reactions.

use coding_agent::forge::item::account::Account;
use coding_agent::forge::{Comment, Diagnostics, Forge, Permissions, Reaction, TaskSource, github, gitlab};
use coding_agent::task::id::TaskId;

use crate::fake::github::Permission;
use crate::fake::gitlab::Access;
use crate::world::World;

async fn on_github(world: &World) -> github::GitHub {
    let config = github::Config {
        api_url: world.github.api_url(),
        token: Some(world.github.token().into()),
        ..github::Config::default()
    };
    github::connect(&config).await.unwrap()
}

fn on_gitlab(world: &World) -> gitlab::GitLab {
    let config = gitlab::Config {
        api_url: world.gitlab.api_url(),
        token: Some(world.gitlab.token().into()),
        ..gitlab::Config::default()
    };
    gitlab::connect(&config).unwrap()
}

/// Tells comments for a snapshot: the numbers of the fakes count everything, so that only the kind
/// is shown.
fn told(comments: &[Comment]) -> String {
    let lines = comments.iter().map(|comment| {
        let place = comment.place.as_ref();
        let place = place.map(|place| format!(" on {}:{}", place.path, place.line.unwrap_or_default()));
        let kind = format!("{:?}", comment.key.kind);
        format!(
            "{kind} of {}{}: {}",
            comment.author,
            place.unwrap_or_default(),
            comment.body
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn keys(comments: &[Comment]) -> Vec<String> {
    comments.iter().map(|comment| comment.key.to_string()).collect()
}

#[tokio::test]
async fn comments_on_a_pull_request_keep_their_keys_when_they_are_edited() {
    let world = World::start().await;
    let pull = world.github.open_pull("Greet", "greet", &[("greet.py", "print()\n")]);
    pull.comment("alice", "Please say hello.")
        .comment(world.github.bot(), "I am at work.")
        .line_comment("bob", "greet.py", 1, "This is not hello.")
        .requests_changes("bob", "Nearly there.")
        .approves("carol", "");
    let task: TaskId = "github:acme/widgets#1".parse().unwrap();
    let forge = on_github(&world).await;

    let before = forge.comments(&task).await.unwrap();
    pull.last_comment().edit("I am still at work.");
    pull.last_line_comment().edit("This is not hi.");
    let after = forge.comments(&task).await.unwrap();

    insta::assert_snapshot!(told(&after), @r"
    Comment of alice: Please say hello.
    Inline of bob on greet.py:1: This is not hi.
    Review of bob: Nearly there.
    ");
    assert_eq!(keys(&after), keys(&before));
    let (requests, reactions) = (
        forge.traffic().requests,
        [Reaction::Seen, Reaction::Seen, Reaction::Done],
    );
    for comment in &after {
        for reaction in reactions {
            forge.react(&task, comment.key, reaction).await.unwrap();
        }
    }
    assert_eq!(forge.traffic().requests - requests, 6, "a review takes no reactions");
    assert_eq!(
        pull.last_line_comment().reactions_of(world.github.bot()),
        ["eyes", "+1"]
    );
    pull.last_line_comment().delete();
    assert_eq!(keys(&forge.comments(&task).await.unwrap()).len(), 2);
    forge.react(&task, after[1].key, Reaction::Refused).await.unwrap();
    insta::assert_snapshot!(pull.timeline(), @r"
    acme/widgets#1 Greet (open)
      alice opened this pull request: greet -> main
      alice commented
        | Please say hello.
      coding-agent-bot commented (edited since)
        | I am still at work.
      bob requested changes
        | Nearly there.
      carol approved this
      coding-agent-bot edited the comment of coding-agent-bot
      coding-agent-bot reacted with :eyes: to the comment of alice
      coding-agent-bot reacted with :+1: to the comment of alice
      bob deleted a comment
    ");
    world.finish().await;
}

#[tokio::test]
async fn notes_on_a_merge_request_keep_their_keys_when_they_are_edited() {
    let world = World::start().await;
    let merge = world
        .gitlab
        .open_merge_request("Greet", "greet", &[("greet.py", "print()\n")]);
    merge
        .comment("alice", "Please say hello.")
        .comment(world.gitlab.bot(), "I am at work.")
        .assign(&[world.gitlab.bot()])
        .line_comment("bob", "greet.py", 1, "This is not hello.");
    let task: TaskId = "gitlab:acme/widgets!1".parse().unwrap();
    let forge = on_gitlab(&world);

    let before = forge.comments(&task).await.unwrap();
    merge.last_line_comment().edit("This is not hi.");
    let after = forge.comments(&task).await.unwrap();

    insta::assert_snapshot!(told(&after), @r"
    Comment of alice: Please say hello.
    Inline of bob on greet.py:1: This is not hi.
    ");
    assert_eq!(keys(&after), keys(&before));
    assert!(after[1].updated_at > before[1].updated_at);
    for comment in &after {
        for reaction in [Reaction::Seen, Reaction::Seen, Reaction::Done] {
            forge.react(&task, comment.key, reaction).await.unwrap();
        }
    }
    let reacted = forge.comments(&task).await.unwrap();
    assert!(
        reacted[0].updated_at > after[0].updated_at && reacted[0].body == after[0].body,
        "GitLab does not tell a reaction from an edit"
    );
    merge.last_line_comment().delete();
    forge.react(&task, after[1].key, Reaction::Refused).await.unwrap();
    insta::assert_snapshot!(merge.timeline(), @r"
    acme/widgets!1 Greet (open)
      alice opened this merge request: greet -> main
      alice commented
        | Please say hello.
      coding-agent-bot commented
        | I am at work.
      alice assigned coding-agent-bot
      coding-agent-bot reacted with :eyes: to the comment of alice
      coding-agent-bot reacted with :thumbsup: to the comment of alice
      bob deleted a comment
    ");
    world.finish().await;
}

#[tokio::test]
async fn who_may_write_is_asked_of_the_forge() {
    let world = World::start().await;
    let repository = world.github.default_repository();
    for (login, permission) in [
        ("adam", Permission::Admin),
        ("dora", Permission::Maintain),
        ("trudy", Permission::Triage),
        ("mallory", Permission::None),
    ] {
        repository.member(login, permission);
    }
    let project = world.gitlab.default_project();
    project
        .member("adam", Access::Maintainer)
        .inherited_member("dora", Access::Developer)
        .member("trudy", Access::Reporter)
        .member("mallory", Access::None);
    let (github, gitlab) = (on_github(&world).await, on_gitlab(&world));
    let forges: [(&dyn Forge, &str); 2] = [(&github, "github:acme/widgets#1"), (&gitlab, "gitlab:acme/widgets#1")];
    for (forge, task) in forges {
        let task = task.parse().unwrap();
        let mut may = Vec::new();
        for user in ["adam", "Dora", "trudy", "mallory", "nobody", "ghost", ""] {
            if forge
                .is_authorised(&task, Account { login: user, id: None })
                .await
                .unwrap()
            {
                may.push(user);
            }
        }
        assert_eq!(may, ["adam", "Dora"], "{task}");
    }
    assert_eq!(github.bot_name().await.unwrap(), world.github.bot());
    assert_eq!(gitlab.bot_name().await.unwrap(), world.gitlab.bot());
    world.finish().await;
}

#[tokio::test]
async fn an_item_tells_who_it_is_assigned_to() {
    let world = World::start().await;
    let issue = world.github.open_issue("Greet").assign(&["alice", world.github.bot()]);
    let merge = world
        .gitlab
        .open_merge_request("Greet", "greet", &[("greet.py", "print()\n")]);
    merge.assign(&["alice", world.gitlab.bot()]);
    let (github, gitlab) = (on_github(&world).await, on_gitlab(&world));
    let forges: [(&dyn Forge, &str); 2] = [(&github, "github:acme/widgets#1"), (&gitlab, "gitlab:acme/widgets!1")];
    let assigned = async || {
        let mut all = Vec::new();
        for (forge, task) in forges {
            all.push(forge.item(&task.parse().unwrap()).await.unwrap().assignees);
        }
        all
    };

    assert_eq!(
        assigned().await,
        [["alice", "coding-agent-bot"], ["alice", "coding-agent-bot"]]
    );
    issue.unassign(world.github.bot());
    merge.unassign(world.gitlab.bot());
    assert_eq!(assigned().await, [["alice"], ["alice"]]);
    world.finish().await;
}

#[tokio::test]
async fn looking_again_costs_nothing_of_the_allowance_until_somebody_writes() {
    let world = World::start().await;
    let pull = world.github.open_pull("Greet", "greet", &[("greet.py", "print()\n")]);
    pull.comment("alice", "Please say hello.");
    let task: TaskId = "github:acme/widgets#1".parse().unwrap();
    let forge = on_github(&world).await;
    forge.comments(&task).await.unwrap();

    let look = async || {
        let earlier = world.github.requests().len();
        let ((), comments) = tokio::join!(pull.until_comments_are_read(), forge.comments(&task));
        let asked = world.github.requests().split_off(earlier);
        let statuses: Vec<_> = asked.into_iter().filter_map(|request| request.status).collect();
        (comments.unwrap().len(), statuses)
    };

    assert_eq!(look().await, (1, vec![304, 304, 304]));
    pull.line_comment("bob", "greet.py", 1, "This is not hello.");
    assert_eq!(look().await, (2, vec![304, 200, 200]));
    world.finish().await;
}
