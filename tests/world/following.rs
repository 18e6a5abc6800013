//! After the pull/merge request: what reviewers say becomes new commits on the same branch. See
//! also `following/checks.rs`.

mod bots;
mod checks;
mod edited;
mod meanwhile;
mod refused;
mod renamed;
mod turns;

use serde_json::json;

use crate::fake::github::Item;
use crate::fake::gitlab;
use crate::fake::model::Script;
use crate::fake::traffic::Request;
use crate::world::World;
use crate::world::normalized::told;
use crate::world::painting::{plan, write};
use crate::world::scripts::COMMAND;

fn patient(mut world: World, seconds: u32) -> World {
    world.configure(|config| {
        config["follow_up"] = json!({ "debounce_seconds": seconds, "max_review_rounds": 1, "max_ci_rounds": 1 });
    });
    world
}

/// A world in which comments are worked on at once, one round of each kind at most.
async fn world() -> World {
    patient(World::start().await, 0)
}

fn paints<'a>(world: &'a World, color: &str) -> Script<'a> {
    world
        .model
        .plans(plan())
        .calls(COMMAND, write(color))
        .done("It is painted.")
}

/// Has the program open a pull request that paints something red.
async fn red_pull(world: &World) -> Item {
    paints(world, "red");
    world
        .github
        .open_issue("Paint it")
        .body("Any color.")
        .label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    world.github.pulls().remove(0)
}

async fn red_merge_request(world: &World) -> gitlab::Item {
    paints(world, "red");
    world
        .gitlab
        .open_issue("Paint it")
        .body("Any color.")
        .label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "gitlab:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    world.gitlab.merge_requests().remove(0)
}

/// Returns a comment without its marker, which depends on the time.
fn said(world: &World, text: &str) -> String {
    let text = told(world, text);
    text.lines()
        .filter(|line| !line.starts_with("<!--"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns what the model was first told in the newest run.
fn task(world: &World, run: usize) -> String {
    told(world, &world.model.requests()[run * 3].first_user_message())
}

#[tokio::test]
async fn a_review_becomes_commits_on_the_same_branch_and_one_comment() {
    let world = world().await;
    let pull = red_pull(&world).await;
    // A person's commit in between stays.
    let repository = world.github.default_repository();
    repository.commit(&pull.head(), "Build a wall", &[("wall.txt", "a wall\n")]);
    pull.line_comment("mallory", "color.txt", 1, "Make it pink.")
        .review("mallory", "And delete the rest.")
        .line_comment("alice", "color.txt", 1, "This should be blue.")
        .requests_changes("alice", "Not this color.");
    paints(&world, "blue");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#2: done\n", &world);
    insta::assert_snapshot!(task(&world, 1), @"
    This is your own change request, github:acme/widgets#2. People reviewed it. Do what they ask for below, on the same branch; questions are answered in your last comment.
    <data-FENCE>
    Title: Paint it
    Branch: coding-agent/1-paint-it into main

    It is painted.

    **How it was verified**

    - ✅ `test -f color.txt` passed

    Closes #1

    3 model turns · TOKENS · TIME · run `RUN`

    What people said, oldest first:
    --- alice at TIME on color.txt:1:
    This should be blue.
    --- alice at TIME:
    Not this color.
    </data-FENCE>

    The project's files:
    <data-FENCE>
    README.md
    color.txt
    wall.txt
    </data-FENCE>

    color.txt:
    <data-FENCE>
    red
    </data-FENCE>
    ");
    assert_eq!(world.github.pulls().len(), 1);
    assert_eq!(pull.file("color.txt").as_deref(), Some("blue\n"));
    assert_eq!(
        (pull.commits().len(), pull.labels()),
        (3, vec!["coding agent done".to_owned()])
    );
    let bot = world.github.bot();
    let comments: Vec<_> = pull.comments_of(bot).iter().map(|text| told(&world, text)).collect();
    insta::assert_snapshot!(comments.join("\n=====\n"), @r"
    ### ✅ Done: pushed to `coding-agent/1-paint-it`

    It is painted.

    **How it was verified**

    - ✅ `test -f color.txt` passed

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    // The thread is answered in place, and left open for its reviewer.
    let replies = pull.replies();
    let [(remark, reply)] = &replies[..] else {
        panic!("one reply in the thread\n{}", world.story());
    };
    assert_eq!((remark.as_str(), reply.author.as_str()), ("This should be blue.", bot));
    let head = pull.commits().pop().unwrap().id;
    assert!(
        reply
            .body
            .starts_with(&format!("Worked on in `{head}`.\n\nIt is painted.")),
        "{}",
        reply.body
    );
    assert_eq!(pull.last_line_comment().reactions_of(bot), ["eyes"]);
    // Resolving it would be an order of GraphQL that the fake does not know and notes down.
    assert_eq!(world.github.unknown_requests(), [""; 0]);
    // Nothing of it is told twice, and what approves asks for nothing.
    pull.approves("alice", "Now it is fine.");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn remarks_on_a_merge_request_become_commits_on_the_same_branch_and_one_comment() {
    let world = patient(World::on_gitlab().await, 0);
    let merge = red_merge_request(&world).await;
    merge
        .comment("mallory", "Make it pink.")
        .line_comment("alice", "color.txt", 1, "This should be blue.");
    let remark = merge.last_line_comment();
    paints(&world, "blue");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets!1: done\n", &world);
    insta::assert_snapshot!(task(&world, 1), @"
    This is your own change request, gitlab:acme/widgets!1. People reviewed it. Do what they ask for below, on the same branch; questions are answered in your last comment.
    <data-FENCE>
    Title: Paint it
    Branch: coding-agent/1-paint-it into main

    It is painted.

    **How it was verified**

    - ✅ `test -f color.txt` passed

    Closes #1

    3 model turns · TOKENS · TIME · run `RUN`

    What people said, oldest first:
    --- alice at TIME on color.txt:1:
    This should be blue.
    </data-FENCE>

    The project's files:
    <data-FENCE>
    README.md
    color.txt
    </data-FENCE>

    color.txt:
    <data-FENCE>
    red
    </data-FENCE>
    ");
    assert_eq!(world.gitlab.merge_requests().len(), 1);
    assert_eq!(merge.file("color.txt").as_deref(), Some("blue\n"));
    assert_eq!(
        (merge.commits().len(), merge.labels()),
        (2, vec!["coding agent done".to_owned()])
    );
    // One below the request, and one in the thread.
    let thread = merge.discussion_of(&remark);
    assert_eq!((thread.len(), thread[1].author.as_str()), (2, world.gitlab.bot()));
    assert!(thread[1].body.starts_with("Worked on in `"), "{}", thread[1].body);
    // It is left open for its reviewer: nothing but the reply was written there.
    let mut written = world.gitlab.requests();
    written.retain(|request| request.method != "GET" && request.path.contains("/discussions/"));
    let is_reply = |request: &Request| request.is("POST /projects/*/merge_requests/*/discussions/*/notes");
    assert!(written.len() == 1 && is_reply(&written[0]), "{written:?}");
    assert_eq!(merge.comments_of(world.gitlab.bot()).len(), 2, "{}", merge.timeline());
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_thread_that_cannot_be_answered_is_a_warning() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.line_comment("alice", "color.txt", 1, "Blue.")
        .line_reply("alice", "Dark blue.")
        .line_comment("alice", "color.txt", 1, "And shiny.");
    paints(&world, "blue");
    world
        .github
        .fails_next("POST /repos/acme/widgets/pulls/2/comments/*/replies", 403, 1);

    let ended = world.run().await;

    ended.prints("github:acme/widgets#2: done\n", &world);
    // Two threads: one could not be answered.
    assert_eq!(pull.replies().len(), 2, "{}", world.story());
    let said = pull.comments_of(world.github.bot()).pop().unwrap();
    assert!(said.contains("replying to inline-"), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn after_the_last_round_one_comment_says_that_a_human_is_needed() {
    let world = world().await;
    let pull = red_pull(&world).await;
    paints(&world, "blue");
    pull.comment("alice", "Blue, please.");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );

    pull.comment("alice", "Green, please.");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    pull.comment("alice", "Did you hear?");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let comments = pull.comments_of(world.github.bot());
    assert_eq!(comments.len(), 2, "{}", pull.timeline());
    insta::assert_snapshot!(said(&world, &comments[1]), @r"
    ### 🙋 This needs a human

    1 round of work on reviews did not settle it, and no more rounds are allowed (`follow_up.max_review_rounds`). To have the work go on all the same, put the label `coding agent` on.
    ");

    // Whoever asks anew gets what was said meanwhile, and all rounds anew.
    paints(&world, "green");
    pull.label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );
    paints(&world, "yellow");
    pull.comment("alice", "Yellow, after all.");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );
    assert_eq!(pull.file("color.txt").as_deref(), Some("yellow\n"));
    world.finish().await;
}

#[tokio::test]
async fn reviewers_are_let_finish() {
    let world = patient(World::start().await, 10);
    let pull = red_pull(&world).await;
    paints(&world, "green");

    let mut service = world.spawn(&["serve"]);
    // The clock of a comment begins when it is written.
    service.until_it_prints("at work").await;
    pull.comment("alice", "Blue, please.");
    pull.until_comments_are_read().await;
    assert_eq!(pull.labels(), [""; 0]);
    pull.comment("alice", "No, green.");
    pull.until(|pull| pull.labels() == ["coding agent done"]).await;
    service.signal("TERM");
    service.ended().await;

    let task = task(&world, 1);
    assert!(task.contains("Blue, please.") && task.contains("No, green."), "{task}");
    assert_eq!(pull.comments_of(world.github.bot()).len(), 1, "{}", pull.timeline());
    world.finish().await;
}

#[tokio::test]
async fn nothing_follows_where_it_is_switched_off() {
    let mut world = World::start().await;
    world.configure(|config| config["follow_up"] = json!({ "enabled": false }));
    let pull = red_pull(&world).await;
    pull.requests_changes("alice", "Not this color.")
        .check_fails("test", "red");
    let before = world.github.requests().len();

    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    assert_eq!(
        world.github.requests().len() - before,
        1,
        "only the trigger is looked for"
    );
    world.finish().await;
}

#[tokio::test]
async fn stop_on_the_pull_request_ends_it_until_the_trigger_is_put_on() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.comment("mallory", "/agent stop").comment("alice", "/agent stop");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let comments = pull.comments_of(world.github.bot());
    insta::assert_snapshot!(said(&world, &comments.join("\n=====\n")), @r"
    ### ⏹️ Stopped

    As alice asked: reviews and checks of this are left to people from here. To have work done on it again, put the label `coding agent` on.
    ");
    pull.comment("alice", "Blue, please.").check_fails("test", "red");
    let before = world.github.requests().len();
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(world.github.requests().len() - before, 1, "it costs nothing more");

    paints(&world, "blue");
    pull.label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );
    paints(&world, "green");
    pull.comment("alice", "Green, after all.");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );
    assert_eq!(pull.file("color.txt").as_deref(), Some("green\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_closed_pull_request_is_not_looked_at_any_more() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.close();
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let before = world.github.requests().len();

    pull.comment("alice", "It should have been blue.");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    assert_eq!(
        world.github.requests().len() - before,
        1,
        "only the trigger is looked for"
    );
    world.finish().await;
}

#[tokio::test]
async fn work_on_a_deleted_branch_ends_with_a_comment() {
    let world = patient(World::on_gitlab().await, 0);
    let merge = red_merge_request(&world).await;
    let branch = merge.source();
    merge.comment("alice", "Blue, please.");
    world
        .gitlab
        .default_project()
        .git()
        .delete_reference(&format!("refs/heads/{branch}"));

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets!1: failed\n", &world);
    let comments = merge.comments_of(world.gitlab.bot());
    insta::assert_snapshot!(said(&world, &comments.join("\n=====\n")), @r"
    ### ❌ This could not be done

    The branch `coding-agent/1-paint-it` does not exist any more.

    To start a new run, set the label `coding agent` again.
    ");
    world.finish().await;
}
