//! Where tasks come from, and what looking for them costs.

use serde_json::json;

use crate::fake::model::Plan;
use crate::fake::traffic::Request;
use crate::world::World;
use crate::world::normalized::told;

fn lines(requests: &[Request]) -> String {
    let lines: Vec<_> = requests.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[tokio::test]
async fn a_ten_turn_run_costs_at_most_25_requests() {
    let mut world = World::start().await;
    // What people say meanwhile is asked for by the clock: a slow machine asks more often.
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 600 }));
    let mut script = world
        .model
        .plans(Plan::of(&["count"]).in_environment("python").verified_by("test -f 8"));
    for number in 1..=8 {
        script = script.calls(
            "workspace/execute_command",
            json!({"command": format!("touch {number}")}),
        );
    }
    script.done("Counted to eight.");
    let issue = world.github.open_issue("Count").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.model.requests().len(), 10);
    assert_eq!(issue.labels(), ["coding agent done"]);
    // The progress comment is edited at the end, and before by the clock: a slow machine edits more
    // often.
    let mut requests: Vec<String> = lines(&world.github.requests()).lines().map(str::to_owned).collect();
    let last_edit = requests.iter().rposition(|line| line.starts_with("PATCH")).unwrap();
    let is_early = |place: usize, line: &str| place < last_edit && line.starts_with("PATCH");
    let mut place = 0..;
    requests.retain(|line| !is_early(place.next().unwrap(), line));
    assert!(requests.len() <= 25, "{requests:?}");
    insta::assert_snapshot!(requests.join("\n"), @"
    GET /repos/acme/widgets/issues?labels=coding%20agent&state=open&sort=created&direction=asc&per_page=100 200
    GET /repos/acme/widgets 200
    GET /repos/acme/widgets/issues/1/events?per_page=100 200
    GET /repos/acme/widgets/collaborators/alice/permission 200
    GET /repos/acme/widgets/issues/1 200
    GET /repos/acme/widgets/labels?per_page=100 200
    POST /repos/acme/widgets/labels 201
    POST /repos/acme/widgets/issues/1/labels 200
    DELETE /repos/acme/widgets/issues/1/labels/coding%20agent 200
    GET /repos/acme/widgets/issues/1 200
    GET /repos/acme/widgets/issues/1/comments?per_page=100 200
    GET /repos/acme/widgets/issues/1/events?per_page=100 200
    POST /api/graphql 200
    POST /repos/acme/widgets/issues/1/comments 201
    GET /repos/acme/widgets/issues/1/comments?per_page=100 200
    GET /user 200
    GET /repos/acme/widgets/issues/1 200
    GET /repos/acme/widgets/pulls?state=open&head=acme:coding-agent%2F1-count&per_page=100 200
    POST /repos/acme/widgets/pulls 201
    PATCH /repos/acme/widgets/issues/comments/1009 200
    POST /repos/acme/widgets/issues/1/comments 201
    POST /repos/acme/widgets/labels 201
    POST /repos/acme/widgets/issues/1/labels 200
    DELETE /repos/acme/widgets/issues/1/labels/coding%20agent%20processing 200
    ");
    world.finish().await;
}

#[tokio::test]
async fn all_pages_of_an_owner_are_admitted_and_nothing_else() {
    let mut world = World::start().await;
    world.configure(|config| config["github"]["repositories"] = json!(["acme/*", "tools/hammer"]));
    let widgets = world.github.default_repository();
    let mut wanted: Vec<_> = (1..=118)
        .map(|number| widgets.open_issue(&format!("Issue {number}")).label("coding agent"))
        .collect();
    wanted.push(
        world
            .github
            .repository("acme/gadgets")
            .open_issue("Elsewhere")
            .label("coding agent"),
    );
    wanted.push(
        world
            .github
            .repository("tools/hammer")
            .open_issue("By name")
            .label("coding agent"),
    );
    let attic = world.github.repository("acme/attic").archived();
    let left_alone = [
        widgets.open_issue("Closed").label("coding agent").close(),
        attic.open_issue("Archived").label("coding agent"),
        world
            .github
            .repository("other/widgets")
            .open_issue("Foreign")
            .label("coding agent"),
    ];

    let produce = world.spawn(&["produce"]);
    for issue in &wanted {
        issue.until(|issue| issue.labels() == ["coding agent processing"]).await;
    }
    produce.signal("TERM");
    let ended = produce.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}");
    for issue in left_alone {
        assert_eq!(issue.labels(), ["coding agent"], "{}", issue.timeline());
    }
    let status = world.command(&["status", "--json"]).await;
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["runs"][0]["state"], "queued");
    world.finish().await;
}

#[tokio::test]
async fn a_limit_on_one_repository_keeps_no_item_of_another_from_being_admitted() {
    let mut world = World::start().await;
    world.configure(|config| config["github"]["repositories"] = json!(["acme/widgets", "acme/gadgets"]));
    let gadgets = world.github.repository("acme/gadgets");
    world.all_runs("pause").await;
    let known = world.github.open_issue("Count").label("coding agent");
    let ended = world.run().await;
    assert_eq!(known.labels(), ["coding agent processing"], "{ended:?}");

    // It has the same number, and would be the same item if that repository had been renamed to
    // this one. As for an App whose installation at the other owner has used up its requests.
    world.github.limits("GET /repos/acme/widgets");
    let issue = gadgets.open_issue("Count").label("coding agent");
    let ended = world.run().await;

    assert!(world.github.count("GET /repos/acme/widgets") > 1, "{}", world.story());
    assert_eq!(
        issue.labels(),
        ["coding agent processing"],
        "{ended:?}\n{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn an_idle_look_costs_an_unchanged_answer_for_each_list() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["repositories"] = json!(["acme/widgets", "acme/gadgets"]);
    });
    world.github.repository("acme/gadgets");

    let produce = world.spawn(&["produce"]);
    world
        .gitlab
        .until(|gitlab| gitlab.count("GET /projects/*/merge_requests") >= 3)
        .await;
    produce.signal("TERM");
    let ended = produce.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (github, gitlab) = (world.github.requests(), world.gitlab.requests());
    insta::assert_snapshot!(lines(&github[..4]), @"
    GET /repos/acme/widgets/issues?labels=coding%20agent&state=open&sort=created&direction=asc&per_page=100 200
    GET /repos/acme/gadgets/issues?labels=coding%20agent&state=open&sort=created&direction=asc&per_page=100 200
    GET /repos/acme/widgets/issues?labels=coding%20agent&state=open&sort=created&direction=asc&per_page=100 304
    GET /repos/acme/gadgets/issues?labels=coding%20agent&state=open&sort=created&direction=asc&per_page=100 304
    ");
    insta::assert_snapshot!(lines(&gitlab[..4]), @"
    GET /projects/acme%2Fwidgets/issues?state=opened&labels=coding+agent&scope=all&sort=asc&per_page=100&page=1 200
    GET /projects/acme%2Fwidgets/merge_requests?state=opened&labels=coding+agent&scope=all&sort=asc&per_page=100&page=1 200
    GET /projects/acme%2Fwidgets/issues?state=opened&labels=coding+agent&scope=all&sort=asc&per_page=100&page=1 304
    GET /projects/acme%2Fwidgets/merge_requests?state=opened&labels=coding+agent&scope=all&sort=asc&per_page=100&page=1 304
    ");
    for request in github[4..].iter().chain(&gitlab[4..]) {
        assert_eq!(
            (request.method.as_str(), request.status),
            ("GET", Some(304)),
            "{request}"
        );
    }
    world.finish().await;
}

#[tokio::test]
async fn the_next_idle_run_knows_what_the_last_one_was_told() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["repositories"] = json!(["acme/widgets", "acme/*"]);
    });
    let statuses = |world: &World| -> Vec<_> {
        let requests = [world.github.requests(), world.gitlab.requests()].concat();
        requests.iter().map(|request| request.status.unwrap()).collect()
    };
    assert_eq!(world.run().await.code, Some(0));
    assert_eq!(statuses(&world), [200; 4], "{:?}", world.github.requests());

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (github, gitlab) = (world.github.requests(), world.gitlab.requests());
    let second = [&github[2..], &gitlab[2..]].concat();
    assert!(second.iter().all(|request| request.status == Some(304)), "{second:?}");
    assert_eq!(second.len(), 4);

    // What was confirmed is not believed for longer than it is true.
    let script = world.model.plans(Plan::of(&["look"]));
    script.done("There is nothing to do.").done("There is nothing to do.");
    let issue = world.gitlab.open_issue("New").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn both_forges_are_served_at_once_and_missing_labels_are_made() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["planning"] = json!({"enabled": false});
    });
    world
        .model
        .for_task("On GitHub")
        .calls("workspace/execute_command", json!({ "command": "ls" }))
        .done("There is nothing to do.");
    world
        .model
        .for_task("On GitLab")
        .calls("workspace/execute_command", json!({ "command": "ls" }))
        .done("There is nothing to do.");
    let here = world.github.open_issue("On GitHub").label("coding agent");
    let there = world.gitlab.open_issue("On GitLab").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(here.labels(), ["coding agent done"]);
    assert_eq!(there.labels(), ["coding agent done"]);
    insta::assert_snapshot!(told(&world, here.comments_of(world.github.bot()).last().unwrap()), @"
    ### ☑️ Nothing was changed

    The model says:

    There is nothing to do.

    Nothing was checked: nothing was changed.

    <sub>2 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    let colours = |name: &str| {
        let looks = [
            world.github.default_repository().label_look(name),
            world.gitlab.default_project().label_look(name),
        ];
        looks.map(|look| look.unwrap().0)
    };
    assert_eq!(colours("coding agent processing"), ["fbca04", "#fbca04"]);
    assert_eq!(colours("coding agent done"), ["0e8a16", "#0e8a16"]);
    assert!(world.github.pulls().is_empty() && world.gitlab.merge_requests().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_source_that_cannot_be_read_is_named_and_the_others_are_served() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["repositories"] = json!(["acme/nowhere", "acme/widgets"]);
        config["gitlab"]["projects"] = json!(["nobody/*", "acme/widgets"]);
        config["planning"] = json!({"enabled": false});
    });
    world
        .model
        .for_task("On GitHub")
        .calls("workspace/execute_command", json!({ "command": "ls" }))
        .done("There is nothing to do.");
    world
        .model
        .for_task("On GitLab")
        .calls("workspace/execute_command", json!({ "command": "ls" }))
        .done("There is nothing to do.");
    let here = world.github.open_issue("On GitHub").label("coding agent");
    let there = world.gitlab.open_issue("On GitLab").label("coding agent");

    let ended = world.run().await;

    // Cron mails it, and whoever typed the name wrong learns of it.
    insta::assert_snapshot!(ended.stderr, @r#"
    coding-agent: searching acme/nowhere for labelled items: GitHub answered 404; it says "Not Found": see that acme/nowhere exists and give the token access to it: a fine-grained token or an App needs the repository permission 'Issues' (Read-only), a classic token the scope 'repo'
    coding-agent: searching nobody/* for labelled items: GitLab answered 404; it says "404 Group Not Found": see that nobody/* exists, that the token has the scope 'api', and that its user has at least the role Reporter there (Developer for all that the program does)
    "#);
    assert_eq!(ended.code, Some(1));
    assert_eq!(here.labels(), ["coding agent done"]);
    assert_eq!(there.labels(), ["coding agent done"]);
    world.finish().await;
}
