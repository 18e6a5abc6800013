//! `doctor` tells of rights that the program does not need, and of tokens that end soon or never; a
//! run tells of the one that it lacks.

use chrono::{Days, Utc};
use serde_json::json;

use crate::credentials::becomes_an_app;
use crate::doctor::said;
use crate::fake::github::Permission;
use crate::fake::gitlab::Access;
use crate::world::World;
use crate::world::normalized::last_on_gitlab;
use crate::world::scripts::{greets, plan};

/// Returns what `doctor` says of the forge.
pub async fn told_by_doctor(world: &World, forge: &str) -> String {
    let ended = world.command(&["doctor"]).await;
    let text = said(world, &ended);
    let lines: Vec<&str> = text.lines().collect();
    let mut told = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.contains(&format!("  {forge} ")) {
            let mends = lines[index + 1..].iter().take_while(|line| line.starts_with("  "));
            told.push(*line);
            told.extend(mends);
        }
    }
    let in_five_days = (Utc::now().date_naive() + Days::new(5)).to_string();
    told.iter()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
        .replace(&in_five_days, "DAY")
}

#[tokio::test]
async fn a_classic_token_is_told_what_it_should_not_have() {
    let world = World::start().await;
    world.github.scopes("repo, workflow, read:org");
    world.github.tokens_end(None);
    let repository = world.github.default_repository();
    repository.member(world.github.bot(), Permission::Admin);

    insta::assert_snapshot!(told_by_doctor(&world, "GitHub").await, @"
    look GitHub token works, as coding-agent-bot; it may do more than the program needs: workflow, read:org; it never expires
    -> use a fine-grained token for these repositories alone, with Contents, Issues and Pull requests (read and write) and Commit statuses and Actions (read-only); or a classic one with the scope 'repo' alone; make a token with an end, at most a year ahead: one that is lost is good for ever otherwise
    look GitHub repository acme/widgets can be read and pushed to; the token's account is an administrator of it
    -> use the token of an account of its own with the role Write: what the token's account writes is taken for the program's, and a person's comments would not be read
    look GitHub labels in acme/widgets 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitHub git of acme/widgets can be fetched, and takes claims
    ");
    world.github.scopes("");
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub").await, @"
    BAD GitHub token works, as coding-agent-bot, but without the scope 'repo'
    -> give the token the scope 'repo' ('public_repo' for public repositories alone)
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_fine_grained_token_tells_its_end_and_nothing_else() {
    let world = World::start().await;
    world.github.fine_grained();
    world.github.tokens_end(Some(Utc::now().date_naive() + Days::new(5)));

    insta::assert_snapshot!(told_by_doctor(&world, "GitHub").await, @"
    look GitHub token works, as coding-agent-bot; what it may do only its settings page tells; it ends on DAY
    -> make a new token in time
    ok GitHub repository acme/widgets can be read and pushed to
    look GitHub labels in acme/widgets 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitHub git of acme/widgets can be fetched, and takes claims
    ");
    world.finish().await;
}

#[tokio::test]
async fn an_app_is_told_what_it_should_not_have_and_what_it_lacks() {
    let mut world = World::start().await;
    becomes_an_app(&mut world);
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub").await, @"
    ok GitHub App works, as coding-agent[bot]
    ok GitHub repository acme/widgets can be read and pushed to
    look GitHub labels in acme/widgets 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitHub git of acme/widgets can be fetched, and takes claims
    ");

    world.github.permit("administration", Some("read"));
    world.github.permit("checks", Some("write"));
    world.github.permit("workflows", Some("write"));
    world.github.permit("actions", None);
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub").await, @"
    look GitHub App works, as coding-agent[bot]; it may do more than the program needs: administration (read), checks (write), workflows (write); it may not read actions, so checks that fail are not seen
    -> take these permissions off the App, or lower them to read-only; give the App these repository permissions (read-only) and accept them where it is installed, or set follow_up.max_ci_rounds to 0
    ok GitHub repository acme/widgets can be read and pushed to
    look GitHub labels in acme/widgets 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitHub git of acme/widgets can be fetched, and takes claims
    ");

    world.github.permit("administration", None);
    world.github.permit("checks", Some("read"));
    world.github.permit("workflows", None);
    world.github.permit("actions", Some("read"));
    for name in ["contents", "statuses"] {
        world.github.leaves_unaccepted(name);
    }
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub App on").await, @"
    look GitHub App on acme/widgets the installation lacks contents (read and write), statuses (read-only)
    -> give the App these repository permissions, and accept them on the page of the installation
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_gitlab_token_is_told_scopes_role_and_end() {
    let mut world = World::on_gitlab().await;
    world.configure(|config| config["gitlab"]["projects"] = json!(["acme/widgets", "acme/tools"]));
    let gitlab = &world.gitlab;
    gitlab.scopes(&["api", "read_user", "sudo", "admin_mode"]);
    gitlab.tokens_end(Some(Utc::now().date_naive() + Days::new(5)));
    gitlab.administrator(gitlab.bot());
    gitlab.default_project().member(gitlab.bot(), Access::Maintainer);
    gitlab.project("acme/tools").member(gitlab.bot(), Access::Owner);

    insta::assert_snapshot!(told_by_doctor(&world, "GitLab").await, @"
    look GitLab token works, as coding-agent-bot; its user is an administrator of the whole GitLab; it may do more than the program needs: sudo, admin_mode; it ends on DAY
    -> use a project or group access token, or the token of an ordinary user with the role Developer; make a token with the scope 'api' alone; make a new token in time
    look GitLab project acme/widgets can be read and pushed to; the token's user has the role Maintainer
    -> use an access token of the project or group, or of a user of its own, with the role Developer: what the token's user writes is taken for the program's, and a person's comments would not be read
    look GitLab labels in acme/widgets 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    look GitLab project acme/tools can be read and pushed to; the token's user has the role Owner
    -> use an access token of the project or group, or of a user of its own, with the role Developer: what the token's user writes is taken for the program's, and a person's comments would not be read
    look GitLab labels in acme/tools 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitLab git of acme/widgets can be fetched, and takes claims
    ok GitLab git of acme/tools can be fetched, and takes claims
    ");

    world.gitlab.scopes(&["api"]);
    world.gitlab.tokens_end(None);
    world.gitlab.inactive_tokens();
    insta::assert_snapshot!(told_by_doctor(&world, "GitLab").await, @"
    BAD GitLab token works, as coding-agent-bot, but it is not active any more
    -> the token is wrong, expired or revoked; make a new one with the scope 'api' and set gitlab.token
    ");
    world.finish().await;
}

#[tokio::test]
async fn the_repositories_of_an_owner_are_looked_at_one_by_one() {
    let mut world = World::start().await;
    world.configure(|config| config["github"]["repositories"] = json!(["acme/*"]));
    let github = &world.github;
    let bot = github.bot();
    for name in ["acme/closed", "acme/docs"] {
        github.repository(name).member(bot, Permission::Read);
    }
    github.repository("acme/old").archived().member(bot, Permission::Read);
    github.repository("acme/tools").member(bot, Permission::Admin);
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub repositories").await, @"
    look GitHub repositories acme/* can be searched; 0 items carry the trigger label now; repositories looked at: 5; the token's account may not push to acme/closed, acme/docs; the token's account is an administrator of acme/tools
    -> give the account the role Write, and a fine-grained token the permission 'Contents' (Read and write), or name the other repositories one by one in github.repositories; use the token of an account of its own with the role Write: what the token's account writes is taken for the program's, and a person's comments would not be read
    ");

    github.repository("acme/tools").member(bot, Permission::Read);
    github.default_repository().member(bot, Permission::Read);
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub repositories").await, @"
    BAD GitHub repositories acme/* can be searched, but the token's account may push to none of its repositories (looked at: 5)
    -> give the account the role Write, and a fine-grained token the permission 'Contents' (Read and write)
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_gitlab_group_is_told_the_projects_in_which_the_role_is_none_or_more_than_needed() {
    let mut world = World::on_gitlab().await;
    world.configure(|config| config["gitlab"]["projects"] = json!(["acme/*"]));
    let gitlab = &world.gitlab;
    insta::assert_snapshot!(told_by_doctor(&world, "GitLab group").await, @"ok GitLab group acme acme can be searched; 0 items carry the trigger label now; projects looked at: 1");

    for name in ["acme/closed", "acme/docs", "acme/old", "acme/deep/site"] {
        gitlab.project(name).member(gitlab.bot(), Access::Reporter);
    }
    gitlab.project("acme/tools").member(gitlab.bot(), Access::Owner);
    insta::assert_snapshot!(told_by_doctor(&world, "GitLab group").await, @"
    look GitLab group acme acme can be searched; 0 items carry the trigger label now; projects looked at: 6; the token's user may not push to acme/closed, acme/deep/site, acme/docs and 1 more; the token's user has a role above Developer in acme/tools
    -> give the user the role Developer in the group, or name the other projects one by one in gitlab.projects; use an access token of the project or group, or of a user of its own, with the role Developer: what the token's user writes is taken for the program's, and a person's comments would not be read
    ");

    gitlab.project("acme/tools").member(gitlab.bot(), Access::Reporter);
    gitlab.default_project().member(gitlab.bot(), Access::Reporter);
    insta::assert_snapshot!(told_by_doctor(&world, "GitLab group").await, @"
    BAD GitLab group acme can be searched, but the token's user may push to none of its 6 projects
    -> give the user (or the group access token) the role Developer in the group
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_token_that_may_not_push_is_told_before_the_model_is_asked() {
    let world = World::on_gitlab().await;
    let project = world.gitlab.default_project();
    project.member(world.gitlab.bot(), Access::Reporter);
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets#1: failed\n", &world);
    assert_eq!(issue.labels(), ["coding agent failed"]);
    assert_eq!(world.model.requests().len(), 0, "{}", world.model.dump());
    insta::assert_snapshot!(last_on_gitlab(&world, &issue), @"
    ### ❌ This could not be done

    The program's account may not push to acme/widgets, so the result could not be delivered; give the token's user (or the access token) the role Developer in acme/widgets.

    To start a new run, set the label `coding agent` again.

    <!-- coding-agent:RUN:final -->
    ");

    project.member(world.gitlab.bot(), Access::Developer);
    greets(world.model.plans(plan()));
    issue.label("coding agent");
    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    world.finish().await;
}
