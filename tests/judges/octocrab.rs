//! octocrab drives the fake GitHub: its types are strict about what is missing.

use futures_util::TryStreamExt as _;
use octocrab::models::IssueState;
use octocrab::models::pulls::ReviewState;
use octocrab::models::reactions::ReactionContent;
use octocrab::models::timelines::TimelineEvent;
use octocrab::params::State;
use octocrab::params::repos::Reference;
use octocrab::service::middleware::cache::mem::InMemoryCache;
use octocrab::service::middleware::retry::RetryConfig;
use octocrab::{Octocrab, ReqwestClientConfig};

use crate::fake::github::GitHub;
use crate::fake::github::Permission;

fn client(github: &GitHub) -> Octocrab {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let builder = Octocrab::builder()
        .base_uri(github.api_url())
        .unwrap()
        .personal_token(github.token());
    builder
        .add_retry_config(RetryConfig::None)
        .cache(InMemoryCache::default())
        .build_with_reqwest(ReqwestClientConfig::Default)
        .unwrap()
}

#[tokio::test]
async fn octocrab_finds_an_issue_by_its_label() {
    let github = GitHub::start().await;
    github.open_issue("Greet the reader").label("coding agent");
    github.open_issue("Something else");
    let client = client(&github);
    let issues = client.issues("acme", "widgets");

    assert_eq!(client.current().user().await.unwrap().login, github.bot());
    let repository = client.repos("acme", "widgets").get().await.unwrap();
    assert_eq!(
        repository.clone_url.unwrap().as_str(),
        github.default_repository().clone_url()
    );
    assert!(repository.permissions.unwrap().push);
    // Of the old names octocrab knows "admin" alone: it takes those of teams for them.
    github.default_repository().member("adam", Permission::Admin);
    let place = client.repos("acme", "widgets");
    let asked = place.get_contributor_permission("adam").send().await.unwrap();
    assert_eq!(
        (asked.role_name.as_str(), asked.user.author.login.as_str()),
        ("admin", "adam")
    );

    let listed = issues.list().labels(&["coding agent".to_owned()]).send().await.unwrap();
    assert_eq!(listed.items.iter().map(|issue| issue.number).collect::<Vec<_>>(), [1]);
    let found = client
        .search()
        .issues_and_pull_requests("repo:acme/widgets is:open label:\"coding agent\"");
    assert_eq!(found.send().await.unwrap().total_count, Some(1));
}

#[tokio::test]
async fn octocrab_carries_an_issue_to_a_pull_request() {
    let github = GitHub::start().await;
    let issue = github
        .open_issue("Greet the reader")
        .body("Say *hello*.")
        .label("coding agent");
    issue.comment("alice", "Please in English.");
    let client = client(&github);
    let (issues, pulls) = (client.issues("acme", "widgets"), client.pulls("acme", "widgets"));

    issues
        .create_label("coding agent processing", "1d76db", "Somebody works on it")
        .await
        .unwrap();
    let again = issues
        .create_label("coding agent processing", "1d76db", "")
        .await
        .unwrap_err();
    assert_eq!(status(&again), (422, "Validation Failed".to_owned()));
    issues
        .add_labels(1, &["coding agent processing".to_owned()])
        .await
        .unwrap();
    issues.remove_label(1, "coding agent").await.unwrap();
    let gone = issues.remove_label(1, "coding agent").await.unwrap_err();
    assert_eq!(status(&gone), (404, "Label does not exist".to_owned()));

    let comment = issues.create_comment(1, "I am at work.").await.unwrap();
    issues.update_comment(comment.id, "I am done.").await.unwrap();
    let asked = issues.list_comments(1).send().await.unwrap().items[0].id;
    issues
        .create_comment_reaction(asked, ReactionContent::Eyes)
        .await
        .unwrap();

    let nothing = pulls
        .create("Greet", "coding-agent/1-greet", "main")
        .send()
        .await
        .unwrap_err();
    assert_eq!(status(&nothing), (422, "Validation Failed".to_owned()));
    github
        .default_repository()
        .commit("coding-agent/1-greet", "Greet", &[("README.md", "Hello\n")]);
    let pull = pulls
        .create("Greet", "coding-agent/1-greet", "main")
        .body("Closes #1")
        .draft(true)
        .send();
    let pull = pull.await.unwrap();
    assert_eq!(
        (pull.number, pull.draft, pull.mergeable, pull.commits),
        (2, Some(true), Some(true), Some(1))
    );
    let twice = pulls
        .create("Greet", "coding-agent/1-greet", "main")
        .send()
        .await
        .unwrap_err();
    assert_eq!(status(&twice), (422, "Validation Failed".to_owned()));
    let own = pulls
        .list()
        .state(State::Open)
        .head("acme:coding-agent/1-greet")
        .send()
        .await
        .unwrap();
    assert_eq!(own.items.len(), 1);
    assert!(pulls.get_diff(2).await.unwrap().contains("+Hello"));
    pulls.update(2).title("Greet the reader").send().await.unwrap();
    issues.update(1).state(IssueState::Closed).send().await.unwrap();

    let timeline: Vec<TimelineEvent> = issues.list_timeline_events(1).send().await.unwrap().items;
    assert_eq!(timeline.len(), 7);
    let branch = Reference::Branch("coding-agent/1-greet".to_owned());
    client.repos("acme", "widgets").get_ref(&branch).await.unwrap();
    assert!(pulls.list_reviews(2).send().await.unwrap().items.is_empty());
    assert!(pulls.list_comments(Some(2)).send().await.unwrap().items.is_empty());

    assert_eq!(github.unknown_requests(), Vec::<String>::new());
    insta::assert_snapshot!(github.timeline(), @r#"
    acme/widgets#1 Greet the reader (closed)
      alice opened this issue
        | Say *hello*.
      alice added the label "coding agent"
      alice commented
        | Please in English.
      coding-agent-bot added the label "coding agent processing"
      coding-agent-bot removed the label "coding agent"
      coding-agent-bot commented (edited since)
        | I am done.
      coding-agent-bot edited the comment of coding-agent-bot
      coding-agent-bot reacted with :eyes: to the comment of alice
      coding-agent-bot opened pull request acme/widgets#2 "Greet the reader"
      coding-agent-bot closed this

    acme/widgets#2 Greet the reader (open draft)
      coding-agent-bot opened this pull request: coding-agent/1-greet -> main
        | Closes #1
      coding-agent-bot changed the title from "Greet"
    "#);
}

#[tokio::test]
async fn octocrab_reads_what_reviewers_wrote() {
    let github = GitHub::start().await;
    let pull = github.open_pull("Greet", "greet", &[("README.md", "Hi\n")]);
    pull.review("alice", "Nearly.")
        .line_comment("alice", "README.md", 1, "Say hello instead.");
    let client = client(&github);
    let pulls = client.pulls("acme", "widgets");

    let reviews = pulls.list_reviews(1).send().await.unwrap().items;
    assert_eq!(
        reviews
            .iter()
            .map(|review| review.body.as_deref().unwrap_or(""))
            .collect::<Vec<_>>(),
        ["Nearly.", ""]
    );
    let written = pulls.list_comments(Some(1)).send().await.unwrap().items.remove(0);
    assert_eq!(
        (written.path.as_str(), written.line, written.body.as_str()),
        ("README.md", Some(1), "Say hello instead.")
    );
    let files = pulls.list_files(1).await.unwrap().items;
    assert_eq!(
        files.iter().map(|file| file.filename.as_str()).collect::<Vec<_>>(),
        ["README.md"]
    );
}

#[tokio::test]
async fn octocrab_reacts_to_what_people_wrote_and_edits_it() {
    let github = GitHub::start().await;
    let pull = github.open_pull("Greet", "greet", &[("README.md", "Hi\n")]);
    pull.comment("alice", "/agent stop")
        .line_comment("alice", "README.md", 1, "Say hello.")
        .requests_changes("bob", "Not yet.");
    let (said, remark) = (pull.last_comment(), pull.last_line_comment());
    let client = client(&github);
    let (issues, pulls) = (client.issues("acme", "widgets"), client.pulls("acme", "widgets"));

    let first = issues.create_comment_reaction(said.id(), ReactionContent::PlusOne);
    let first = first.await.unwrap().id;
    let again = issues.create_comment_reaction(said.id(), ReactionContent::PlusOne);
    assert_eq!(again.await.unwrap().id, first);
    let comment = || pulls.comment(remark.id().into());
    comment().create_reaction(ReactionContent::Confused).await.unwrap();
    let given = comment().list_reactions().send().await.unwrap().items;
    assert_eq!(given[0].content, ReactionContent::Confused);
    assert_eq!(comment().update("Say hi.").await.unwrap().body, "Say hi.");
    let elsewhere = issues.create_comment_reaction(remark.id(), ReactionContent::Eyes).await;
    assert_eq!(status(&elsewhere.unwrap_err()).0, 404);
    assert_eq!(
        (said.reactions_of(github.bot()), remark.reactions_of(github.bot())),
        (vec!["+1".to_owned()], vec!["confused".to_owned()])
    );

    let review = pulls.list_reviews(1).send().await.unwrap().items.remove(1);
    assert_eq!(review.state, Some(ReviewState::ChangesRequested));
    pull.last_review().edit("Not at all.");
    let edited = pulls.list_reviews(1).send().await.unwrap().items.remove(1);
    assert_eq!(
        (edited.body.as_deref(), edited.submitted_at),
        (Some("Not at all."), review.submitted_at)
    );
    comment().delete().await.unwrap();
    assert_eq!(status(&comment().get().await.unwrap_err()).0, 404);
    assert_eq!(github.unknown_requests(), Vec::<String>::new());
    insta::assert_snapshot!(pull.timeline(), @r"
    acme/widgets#1 Greet (open)
      alice opened this pull request: greet -> main
      alice commented
        | /agent stop
      bob requested changes
        | Not at all.
      coding-agent-bot reacted with :+1: to the comment of alice
      bob edited the review of bob
      coding-agent-bot deleted a comment
    ");
}

#[tokio::test]
async fn octocrab_follows_the_pages_of_three_hundred_comments() {
    let github = GitHub::start().await;
    let issue = github.open_issue("Discuss");
    for number in 1..=300 {
        issue.comment("alice", &format!("remark {number}"));
    }
    let client = client(&github);
    let first = client
        .issues("acme", "widgets")
        .list_comments(1)
        .per_page(100)
        .send()
        .await
        .unwrap();
    let all: Vec<_> = first.into_stream(&client).try_collect().await.unwrap();
    assert_eq!(all.len(), 300);
    assert_eq!(all[299].body.as_deref(), Some("remark 300"));
    assert_eq!(github.count("GET /repos/*/*/issues/*/comments"), 3);
}

#[tokio::test]
async fn an_unchanged_list_is_answered_not_modified_to_octocrab() {
    let github = GitHub::start().await;
    let issue = github.open_issue("Greet").label("coding agent");
    let client = client(&github);
    let list = async || {
        client
            .issues("acme", "widgets")
            .list()
            .send()
            .await
            .unwrap()
            .items
            .len()
    };
    assert_eq!((list().await, list().await), (1, 1));
    issue.comment("alice", "Is anybody there?");
    assert_eq!(list().await, 1);
    let statuses: Vec<_> = github.requests().iter().filter_map(|request| request.status).collect();
    assert_eq!(statuses, [200, 304, 200]);
}

#[tokio::test]
async fn octocrab_understands_refusals() {
    let github = GitHub::start().await;
    let issue = github.open_issue("Greet");
    let client = client(&github);
    let missing = client.issues("acme", "widgets").get(7).await.unwrap_err();
    assert_eq!(status(&missing), (404, "Not Found".to_owned()));
    issue.delete();
    let gone = client.issues("acme", "widgets").get(1).await.unwrap_err();
    assert_eq!(status(&gone), (410, "This issue was deleted".to_owned()));
    github.default_repository().archived();
    let archived = Box::pin(client.issues("acme", "widgets").create("Greet").send())
        .await
        .unwrap_err();
    assert_eq!(status(&archived).0, 403);
    github.revokes_tokens();
    let refused = client.current().user().await.unwrap_err();
    assert_eq!(status(&refused), (401, "Bad credentials".to_owned()));
}

fn status(error: &octocrab::Error) -> (u16, String) {
    match error {
        octocrab::Error::GitHub { source, .. } => (source.status_code.as_u16(), source.message.clone()),
        other => panic!("no answer of GitHub: {other}"),
    }
}
