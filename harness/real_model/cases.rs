//! The cases that are tried. Each has a world of its own, and reports its outcome in a line.

use std::time::Duration;

use anyhow::{Context, ensure};
use coding_agent::plain::counted;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::fake::model::{Answer, Model, Plan, Request, Said};
use crate::judge;
use crate::judge::HAND;
use crate::relay::Trouble;
use crate::server::{Kind, Server, WINDOW};
use crate::site::{Site, TRIGGER};

pub struct Case {
    pub name: &'static str,
    /// The only kind of server that the case is for; `None` stands for all.
    only: Option<Kind>,
    pub play: fn(&Server) -> BoxFuture<'_, anyhow::Result<String>>,
}

impl Case {
    pub fn is_for(&self, server: &Server) -> bool {
        self.only.is_none_or(|kind| kind == server.kind)
    }
}

pub fn all() -> Vec<Case> {
    let case = |name, play| Case { name, only: None, play };
    let of_llama = |name, play| Case {
        name,
        only: Some(Kind::Llama),
        play,
    };
    vec![
        case("task", |server| task(server).boxed()),
        case("work", |server| work(server).boxed()),
        case("native", |server| native(server).boxed()),
        of_llama("window", |server| window(server).boxed()),
        case("doctor", |server| doctor(server).boxed()),
        of_llama("overflow", |server| overflow(server).boxed()),
        case("cut", |server| cut(server).boxed()),
        case("slow", |server| slow(server).boxed()),
        case("review", |server| review(server).boxed()),
    ]
}

/// Works from the label to an end, with a plan, and replies that the server holds to their form.
async fn task(server: &Server) -> anyhow::Result<String> {
    let mut site = Site::new(server).await?;
    // A plan is longer than a step.
    site.configure(|config| {
        config["max_llm_process_num"] = json!(4);
        config["llm"]["openai"]["max_tokens"] = json!(350);
    });
    let told = worked_on(&site).await;
    looked_at(site, told)
}

/// Works without a plan, so that the model gets at the tools in the container.
async fn work(server: &Server) -> anyhow::Result<String> {
    let mut site = Site::new(server).await?;
    site.configure(|config| config["planning"]["enabled"] = json!(false));
    let told = async {
        let told = worked_on(&site).await?;
        let started = site.facts("environment_started").len();
        ensure!(started == 1, "{started} containers were started for one task");
        let calls = site.facts("tool_called").len();
        Ok(format!("{told}, {}", counted(calls, "tool call")))
    };
    let told = told.await;
    looked_at(site, told)
}

async fn worked_on(site: &Site) -> anyhow::Result<String> {
    let issue = site.open_issue("Let the README say hello.");
    let ended = site.command(&["run"]).await?;
    let end = judge::ended_honestly(site, &issue, &ended).await?;
    let (replies, tokens) = judge::counted_as_the_server_does(site)?;
    let cut = judge::held_to_their_form(site)?;
    let cached = match judge::found_in_the_cache(site)? {
        Some(found) => format!("{} from the cache, in {}", tokens.cached, counted(found, "request")),
        None => "the server tells nothing of its cache".to_owned(),
    };
    Ok(format!(
        "{end}; {}, {cut} of them cut; {} tokens in ({cached}), {} out, as the server counts",
        counted(replies, "reply"),
        tokens.input,
        tokens.output
    ))
}

/// Works with native calls, which a model as small as this one does not make.
async fn native(server: &Server) -> anyhow::Result<String> {
    let mut site = Site::new(server).await?;
    site.configure(|config| {
        config["llm"]["function_calling"] = json!(true);
        config["max_llm_process_num"] = json!(2);
        config["planning"]["enabled"] = json!(false);
    });
    let told = async {
        let issue = site.open_issue("Let the README say hello.");
        let ended = site.command(&["run"]).await?;
        let end = judge::ended_honestly(&site, &issue, &ended).await?;
        let (replies, tokens) = judge::counted_as_the_server_does(&site)?;
        let unreadable = site.facts("reply_unreadable").len();
        Ok(format!(
            "{end}; {}, {unreadable} of them unreadable and asked for again; {} tokens in, {} out",
            counted(replies, "reply"),
            tokens.input,
            tokens.output
        ))
    };
    let told = told.await;
    looked_at(site, told)
}

/// Checks that `doctor` tells the server's window, and that it is smaller than the configured one.
async fn window(server: &Server) -> anyhow::Result<String> {
    let site = Site::behind(Trouble::None, server, 2 * WINDOW).await?;
    let told = async {
        let ended = site.command(&["doctor"]).await?;
        let wanted = format!("with a window of {WINDOW} tokens, and {} are configured", 2 * WINDOW);
        ensure!(
            ended.code == Some(1) && ended.said.contains(&wanted),
            "doctor says nothing of the window: {ended:?}"
        );
        Ok(format!("doctor: {wanted}"))
    };
    let told = told.await;
    looked_at(site, told)
}

/// Checks that `doctor --model` gets a reply, and finds the very window that the server was started
/// with: by the server's own word, and by a long prompt that arrived as a whole.
async fn doctor(server: &Server) -> anyhow::Result<String> {
    let mut site = Site::behind(Trouble::None, server, WINDOW).await?;
    // A busy machine reads a prompt as long as the window for minutes.
    site.configure(|config| config["llm"]["timeout_seconds"] = json!(600));
    let told = async {
        let ended = site.command(&["doctor", "--model"]).await?;
        let line = |subject: &str| ended.said.lines().find(|line| line.contains(subject));
        let (reply, window) = (line("  model's reply"), line("  model's window"));
        ensure!(
            reply.is_some_and(|reply| reply.starts_with("ok") && reply.contains(" tokens in, ")),
            "doctor got no reply: {ended:?}"
        );
        let window = window.unwrap_or_default();
        ensure!(window.starts_with("ok"), "doctor is not sure of the window: {ended:?}");
        // Ollama tells the window of a loaded model in the line on the window alone.
        let told = match server.kind {
            Kind::Llama => line("  model  ").unwrap_or_default(),
            Kind::Ollama => window, // it is loaded with what is configured
        };
        ensure!(
            told.contains(&format!("window {WINDOW}, ")) || told.contains(&format!("; {WINDOW} are configured")),
            "doctor does not tell the window of {WINDOW} tokens that the server has: {ended:?}"
        );
        let mut words = window.split_whitespace().skip_while(|word| *word != "prompt");
        let tokens: u64 = words.nth(2).unwrap_or_default().parse().context("no tokens are told")?;
        ensure!(
            (WINDOW / 2..=WINDOW).contains(&tokens),
            "a prompt of {tokens} tokens says little of a window of {WINDOW}: {ended:?}"
        );
        Ok(format!("doctor --model: {}", window.trim()))
    };
    let told = told.await;
    looked_at(site, told)
}

/// Checks that the server refuses a prompt longer than the window, and that the refusal ends the
/// task with both numbers.
async fn overflow(server: &Server) -> anyhow::Result<String> {
    let site = Site::behind(Trouble::None, server, 8 * WINDOW).await?;
    let told = async {
        let issue = site.open_issue(&"Let the README say hello to the next reader, too. ".repeat(2_000));
        let ended = site.command(&["run"]).await?;
        judge::ended_honestly(&site, &issue, &ended).await?;
        let refused = site.relay.exchanges();
        ensure!(
            refused.len() == 1 && refused[0].status == 400,
            "it was not refused once: {refused:?}"
        );
        let counted = &refused[0].answer["error"]["n_prompt_tokens"];
        let comment = issue.comments_of(site.github.bot()).pop().unwrap_or_default();
        let wanted = format!(
            "needs about {counted} tokens, and the server's window has {WINDOW} although {} are configured",
            8 * WINDOW
        );
        ensure!(comment.contains(&wanted), "the comment does not tell it: {comment}");
        Ok(format!("failed, once: the conversation {wanted}"))
    };
    let told = told.await;
    looked_at(site, told)
}

/// Checks that a prompt that loses its beginning on the way raises the alarm, by the real server's
/// real count.
async fn cut(server: &Server) -> anyhow::Result<String> {
    let site = Site::behind(Trouble::Cuts(1_200), server, WINDOW).await?;
    let told = async {
        let issue = site.open_issue(&"Let the README say hello to the next reader, too. ".repeat(100));
        let ended = site.command(&["run"]).await?;
        judge::ended_honestly(&site, &issue, &ended).await?;
        let asked = site.relay.exchanges().len();
        ensure!(asked == 1, "{asked} requests were made with half a prompt");
        let comment = issue.comments_of(site.github.bot()).pop().unwrap_or_default();
        ensure!(
            comment.contains("prompt was truncated"),
            "the comment does not tell it: {comment}"
        );
        let told = comment.lines().find(|line| line.contains("truncated"));
        Ok(format!("failed, at the first reply: {}", told.unwrap_or_default()))
    };
    let told = told.await;
    looked_at(site, told)
}

/// Checks that a reply that takes too long puts the run back, and that with more time it goes on
/// where it was.
async fn slow(server: &Server) -> anyhow::Result<String> {
    // However fast the machine is.
    let trouble = Trouble::Slow(Duration::from_secs(2));
    let mut site = Site::behind(trouble, server, WINDOW).await?;
    site.configure(|config| config["llm"]["timeout_seconds"] = json!(1));
    let told = async {
        let issue = site.open_issue(&"Let the README say hello, in words of its own. ".repeat(60));
        let ended = site.command(&["run"]).await?;
        ensure!(
            issue.labels() == ["coding agent paused"] && ended.said.contains("put back until"),
            "a reply that takes too long does not put the run back: {:?}, {ended:?}",
            issue.labels()
        );
        let progress = issue.comments_of(site.github.bot()).pop().unwrap_or_default();
        ensure!(
            progress.contains("no reply within 1 s"),
            "the comment does not tell why it waits: {progress}"
        );
        site.configure(|config| {
            config["llm"]["timeout_seconds"] = json!(90);
            config["llm"]["openai"]["max_tokens"] = json!(60);
            config["max_llm_process_num"] = json!(1);
        });
        // Nobody has to wait for the time that it was put back to.
        issue.label(TRIGGER);
        let ended = site.command(&["run"]).await?;
        let end = judge::ended_honestly(&site, &issue, &ended).await?;
        Ok(format!("put back after 1 s, and {end} with more time"))
    };
    let told = told.await;
    looked_at(site, told)
}

/// Judges the plans and the result of a scripted model. It passes nothing, so each run ends as the
/// configuration says: it fails at the plan, or its result is a draft.
async fn review(server: &Server) -> anyhow::Result<String> {
    let mut told = Vec::new();
    for (plan, result) in [("fail", "draft"), ("proceed", "draft")] {
        let mut site = Site::new(server).await?;
        let hand = Model::answering(by_hand).await;
        site.configure(|config| {
            config["max_llm_process_num"] = json!(12);
            config["llm"]["openai"]["max_tokens"] = json!(350);
            config["llm"]["models"] = json!({ HAND: {
                "provider": "openai", "base_url": hand.openai_address(), "model": "scripted",
            }});
            config["llm"]["roles"] = json!({ "planner": HAND, "worker": HAND });
            config["review"] = json!({
                "plan": { "enabled": true, "target_score": 10.0, "max_rounds": 2, "on_unready": plan },
                "result": { "enabled": true, "target_score": 10.0, "max_rounds": 1, "on_unready": result },
            });
        });
        let ended = async {
            let issue = site.open_issue("Let the README say hello.");
            let ended = site.command(&["run"]).await?;
            judge::reviewed_as_configured(&site, &issue, &ended, (plan, result)).await
        };
        let ended = ended.await;
        told.push(format!("{plan}: {}", looked_at(site, ended)?));
    }
    Ok(told.join("; "))
}

/// Plans and works, whatever the reviewer says.
fn by_hand(request: &Request) -> Answer {
    if request.system().contains("\"phase\": \"planning\"") {
        // Another one each time: what comes back as it was is not judged again.
        let length = request.first_user_message().len();
        let plan = Plan::of(&["Let the README say hello"]).in_environment("python");
        let plan = plan.verified_by("grep -q hello README.md");
        return Answer::plans(plan.with("comment", json!(format!("The task has {length} bytes."))));
    }
    if request.messages.iter().any(|said| matches!(said, Said::Assistant(..))) {
        return Answer::done("The README says hello.");
    }
    Answer::calls(
        "workspace/execute_command",
        json!({ "command": "echo hello >> README.md" }),
    )
}

/// Keeps the world of a case that went wrong.
fn looked_at(site: Site, told: anyhow::Result<String>) -> anyhow::Result<String> {
    match told {
        Ok(told) if std::env::var("KEEP").is_ok_and(|keep| !keep.is_empty()) => {
            Ok(format!("{told} ({})", site.keep().display()))
        }
        Ok(told) => Ok(told),
        Err(error) => {
            let folder = site.keep();
            Err(error.context(format!("the world is kept in {}", folder.display())))
        }
    }
}
