//! The program against its peer, mini-swe-agent: the same scripted model, the same image with the
//! same limits, the same commands. Ten turns of the one, then ten of the other, so that a busy
//! machine slows both; each stands still while the other is measured.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::peer::Peer;
use serde_json::json;

use crate::baton::Baton;
use crate::fake::model::{Answer, Exchange, Model, Plan, Request};
use crate::figure::{Figure, Whose};
use crate::floor::COMMAND;
use crate::idle::megabytes;
use crate::peer::{self, END};
use crate::scale::Scale;
use crate::sent::{SESSION, Sent};
use crate::site::Site;
use crate::turns::{WARMING, file, milliseconds};

const TASK: &str = "Stand still";

/// Said with every call, so that both conversations hold the same words of the model.
const COMMENT: &str = "Standing still.";

/// How many turns one makes before the other goes on. One by one, each would find the processor's
/// caches full of the other's.
const BLOCK: usize = 10;

/// How many replies a run gets that only starts and ends.
const REPLIES: usize = 3;

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let Some(peer) = Peer::installed()? else {
        eprintln!("bench:   mini-swe-agent is not installed (`scripts/setup peer`): its figures are left out");
        return Ok(Vec::new());
    };
    let mut figures = session(&peer, scale).await?;
    figures.push(starts(&peer, scale.of(5, 1)).await?);
    Ok(figures)
}

/// Measures one long session of each.
async fn session(peer: &Peer, scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let enough = Instant::now() + scale.of(Duration::from_secs(90), Duration::ZERO);
    let (baton, runner) = Baton::pair();
    let theirs = Model::answering(move |_| peers_answer(runner.next())).await;
    let (working, address) = (peer.clone(), theirs.openai_address());
    let their_run = tokio::spawn(async move { peer::run(&working, &address, TASK).await });
    let ours = Model::answering(pacing(baton, scale.of(200, SESSION), enough)).await;
    // As the peer does it, and as the program does by itself with a model that takes native calls.
    let site = Site::new(&ours).await?.with_native_calls()?;
    site.github.open_issue(TASK).label("coding agent");
    // Whatever becomes of ours, the peer is not left standing: without turns it gives up.
    let (our_run, their_run) = (site.deliver().await, their_run.await);
    let (our_run, their_run) = (our_run?, their_run.context("mini-swe-agent was lost")??);

    // Our first reply is the plan. What ends each conversation is no turn that both make.
    let (took, their_took) = (turns(&ours.exchanges(), 1), turns(&theirs.exchanges(), 0));
    let pairs = took.len().min(their_took.len());
    anyhow::ensure!(
        pairs + WARMING >= SESSION,
        "{} turns of the program and {} of mini-swe-agent are too few",
        took.len(),
        their_took.len()
    );
    let (took, their_took) = (&took[..pairs], &their_took[..pairs]);
    let peak = |bytes| [megabytes(bytes)];
    let mut figures = vec![
        Figure::of("a turn beside mini-swe-agent's", "ms", took)?
            .beside(their_took)
            .at_least_gaining(20.0),
        Figure::of("a turn of mini-swe-agent", "ms", their_took)?.by(Whose::Peer),
        Figure::of("a long session, peak memory", "MB", &peak(our_run.peak_bytes))?.beside(&peak(their_run.peak_bytes)),
    ];
    let their_session = Sent::of(&theirs.requests(), 0)?;
    figures.extend(Sent::of(&ours.requests(), 1)?.beside(&their_session)?);
    figures.push(written().await?.in_json_beside(&their_session)?);
    figures.push(their_session.not_repeated()?);
    Ok(figures)
}

/// Counts the same session with a model that takes no native calls: calls and results are text in
/// it.
async fn written() -> anyhow::Result<Sent> {
    let replies = AtomicUsize::new(0);
    let model = Model::answering(move |request| match replies.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::plans(Plan::of(&["stand still"]).in_environment("python")),
        reply if reply < SESSION => as_asked(our_answer(reply - 1), request),
        _ => Answer::done("Stood still."),
    })
    .await;
    let site = Site::new(&model).await?;
    site.github.open_issue(TASK).label("coding agent");
    site.deliver().await?;
    Sent::of(&model.requests(), 1)
}

/// Makes the model of our session, in which the peer makes the next turns before ours are begun,
/// with the same work in them.
fn pacing(baton: Baton, turns: usize, enough: Instant) -> impl Fn(&Request) -> Answer + Send + Sync + 'static {
    let replies = AtomicUsize::new(0);
    // Dropped at the end, which tells the peer.
    let baton = Mutex::new(Some(baton));
    move |_| {
        let Some(turn) = replies.fetch_add(1, Ordering::Relaxed).checked_sub(1) else {
            return Answer::plans(Plan::of(&["stand still"]).in_environment("python"));
        };
        let mut baton = baton.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = turn >= turns || (turn > SESSION && Instant::now() > enough);
        let goes_on = baton.as_ref().is_some_and(|baton| {
            let is_there = turn > 0 || baton.is_back();
            let makes_block = || !turn.is_multiple_of(BLOCK) || (turn..turn + BLOCK).all(|next| baton.turn(next));
            !is_over && is_there && makes_block()
        });
        if !goes_on {
            *baton = None;
            return Answer::done("Stood still.");
        }
        our_answer(turn)
    }
}

fn our_answer(turn: usize) -> Answer {
    said(match turn {
        0 => Answer::calls("workspace/write_file", file("A line.\n")),
        turn => Answer::calls(
            "workspace/execute_command",
            json!({ "command": format!("{COMMAND} {turn}") }),
        ),
    })
}

/// Returns a reply with one call as text, in the form that the prompt shows, with the name that it
/// lists the tool by. A prompt that asks for something else gets what the other tests say.
fn as_asked(answer: Answer, request: &Request) -> Answer {
    let prompt = request.system();
    let [(tool, args)] = answer.calls.as_slice() else {
        return answer;
    };
    let short = match tool.as_str() {
        "workspace/execute_command" => "bash",
        tool => tool.rsplit('/').next().unwrap_or(tool),
    };
    let is_asked_for = prompt.contains(r#"{"comment": "why", "tool": "name", "args": {}}"#)
        && prompt.contains(&format!("\n- {short} {{"));
    if !is_asked_for {
        return answer;
    }
    let text = json!({ "comment": answer.comment, "tool": short, "args": args }).to_string();
    Answer {
        text: Some(text),
        ..answer
    }
}

fn peers_answer(turn: Option<usize>) -> Answer {
    let command = match turn {
        Some(0) => "echo 'A line.' > NOTES.md".to_owned(),
        Some(turn) => format!("{COMMAND} {turn}"),
        None => END.to_owned(),
    };
    said(Answer::calls("bash", json!({ "command": command })))
}

fn said(answer: Answer) -> Answer {
    Answer {
        comment: COMMENT.to_owned(),
        ..answer
    }
}

/// Returns how long the turns behind the first `before` replies took, but for those that warm up.
fn turns(exchanges: &[Exchange], before: usize) -> Vec<f64> {
    exchanges
        .windows(2)
        .skip(before + WARMING)
        .map(|pair| milliseconds(pair[1].arrived.duration_since(pair[0].answered)))
        .collect()
}

/// Measures the time from the start of the process to its first request to the model, of one after
/// the other.
async fn starts(peer: &Peer, runs: usize) -> anyhow::Result<Figure> {
    let replies = Arc::new(AtomicUsize::new(0));
    let ours = Model::answering(move |_| match replies.fetch_add(1, Ordering::Relaxed) % REPLIES {
        0 => Answer::plans(Plan::of(&["write a note"]).in_environment("python")),
        1 => Answer::calls("workspace/write_file", file("A line.\n")),
        _ => Answer::done("The note is written."),
    })
    .await;
    let theirs = Model::answering(|_| peers_answer(None)).await;
    let site = Site::new(&ours).await?;
    let (mut took, mut their_took) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        site.github.open_issue(&format!("{TASK}, {run}")).label("coding agent");
        let our_run = site.deliver().await?;
        let their_run = peer::run(peer, &theirs.openai_address(), TASK).await?;
        // The first one makes the store and the mirror.
        if run > 0 {
            took.push(waited(&ours, run * REPLIES, our_run.started)?);
            their_took.push(waited(&theirs, run, their_run.started)?);
        }
    }
    Ok(Figure::of("start to the first request to the model", "ms", &took)?.beside(&their_took))
}

/// Returns the time from `started` to the request with this number.
fn waited(model: &Model, request: usize, started: Instant) -> anyhow::Result<f64> {
    let exchanges = model.exchanges();
    let first = exchanges.get(request).context("a request is missing")?;
    Ok(milliseconds(first.arrived.duration_since(started)))
}
