//! Attacks the program as a stranger would, and counts what got through. `make attack` runs it.
//!
//! The real program runs as a process of its own between the fakes of the tests, with real
//! containers and real git. Each attack is an item with a repository of its own, and a model that
//! does what the attacker wants it to. Afterwards everything that the program wrote or sent is
//! looked at, by rules that share no code with the program, and each attack has to prove that it
//! was carried out. At the end the rules themselves are tried: for each of them something is done
//! that it must notice.
//!
//! `SHORT=1 ROUNDS=3 cargo run --example attack -- commit item:mention` plays the short form of one
//! class, and one attack of another, three times; `self` tries the rules only.
#![allow(
    clippy::allow_attributes,
    clippy::print_stdout,
    clippy::print_stderr,
    unreachable_pub,
    reason = "a program of the workshop: it talks to the terminal and exports nothing"
)]

#[path = "../tests/world/fake/mod.rs"]
mod fake; // forges and model

#[path = "attack/attempt.rs"]
mod attempt; // one attack: what is prepared, what the model does, what must come of it
#[path = "attack/class.rs"]
mod class; // the sorts of attack
#[path = "attack/forge.rs"]
mod forge; // either forge

// The corpus.
#[path = "attack/approvals.rs"]
mod approvals; // approvals that cover more than was seen
#[path = "attack/branches.rs"]
mod branches; // names of branches
#[path = "attack/canary.rs"]
mod canary; // secrets that must turn up nowhere
#[path = "attack/comments.rs"]
mod comments; // what stands under the bot's name
#[path = "attack/commits.rs"]
mod commits; // hostile commits
#[path = "attack/confidences.rs"]
mod confidences; // what only some may read
#[path = "attack/edits.rs"]
mod edits; // items that change after the label
#[path = "attack/deltas.rs"]
mod deltas; // packs that unfold
#[path = "attack/egress.rs"]
mod egress; // ways out of a container
#[path = "attack/files.rs"]
mod files; // files that run or are read elsewhere
#[path = "attack/forks.rs"]
mod forks; // forks of strangers
#[path = "attack/fronts.rs"]
mod fronts; // allowed hosts as fronts for others
#[path = "attack/hoses.rs"]
mod hoses; // streams between container and worker
#[path = "attack/items.rs"]
mod items; // hostile items
#[path = "attack/leaks.rs"]
mod leaks; // secrets on their way out
#[path = "attack/messages.rs"]
mod messages; // messages of commits
#[path = "attack/patterns.rs"]
mod patterns; // patterns for the planner's search
#[path = "attack/planted.rs"]
mod planted; // checks that pass without passing
#[path = "attack/replies.rs"]
mod replies; // a hostile model
#[path = "attack/repositories.rs"]
mod repositories; // hostile repositories
#[path = "attack/setups.rs"]
mod setups; // set-ups that leave something behind

#[path = "attack/rights.rs"]
mod rights; // people without rights, and what only looks like a command

#[path = "attack/site.rs"]
mod site; // the program, configured for the fakes

// What must be so afterwards.
#[path = "attack/breach.rs"]
mod breach; // what got through
#[path = "attack/carried.rs"]
mod carried; // was it carried out?
#[path = "attack/delivery.rs"]
mod delivery; // what was delivered, looked at by git itself
#[path = "attack/host.rs"]
mod host; // the worker's machine
#[path = "attack/judge.rs"]
mod judge; // all of it
#[path = "attack/mirrors.rs"]
mod mirrors; // the mirrors
#[path = "attack/rendered.rs"]
mod rendered; // texts of the bot, as the forges show them
#[path = "attack/report.rs"]
mod report; // the table and the file
#[path = "attack/secrets.rs"]
mod secrets; // the canaries
#[path = "attack/usage.rs"]
mod usage; // memory, logs and time
#[path = "attack/weakness.rs"]
mod weakness; // does the judge notice?
#[path = "attack/words.rs"]
mod words; // texts of the bot, and for the model

use std::process::ExitCode;

use attempt::Attempt;
use class::Class;
use forge::Kind;
use futures_util::{StreamExt, TryStreamExt};
use report::Row;
use site::Site;

/// Classes that are played at once: one is at its last, slowest attacks while the next one begins.
const SIDE_BY_SIDE: usize = 2;

/// Tries nothing but the judge.
const SELF: &str = "self";

fn main() -> ExitCode {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let outcome = tokio::runtime::Runtime::new()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(attack(&wanted)));
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            eprintln!("attack: {count} got through, were not tried or went unnoticed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("attack: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn attack(wanted: &[String]) -> anyhow::Result<usize> {
    for name in wanted {
        anyhow::ensure!(
            name == SELF || corpus().iter().any(|attempt| attempt.is_called(name)),
            "there is no class and no attack '{name}'; classes: {}, {SELF}",
            Class::ALL.map(Class::name).join(", ")
        );
    }
    let is_short = std::env::var("SHORT").is_ok_and(|short| !short.is_empty());
    let rounds = match std::env::var("ROUNDS") {
        Ok(rounds) if !rounds.is_empty() => rounds
            .parse()
            .map_err(|_| anyhow::anyhow!("ROUNDS={rounds} is no number"))?,
        _ => 1,
    };
    let is_wanted = |attempt: &Attempt| {
        (!is_short || attempt.is_short) && (wanted.is_empty() || wanted.iter().any(|name| attempt.is_called(name)))
    };
    let mut plays = Vec::new();
    for class in (0..rounds).flat_map(|_| Class::ALL) {
        let mut attempts = corpus();
        attempts.retain(|attempt| attempt.class == class && is_wanted(attempt));
        if !attempts.is_empty() {
            plays.extend(class.forges().iter().map(|kind| {
                let mut attempts = attempts.clone();
                attempts.retain(|attempt| attempt.only_on.is_none_or(|only| only == *kind));
                (class, *kind, attempts)
            }));
        }
    }
    let begun = std::time::Instant::now();
    plays.retain(|(_, _, attempts)| !attempts.is_empty());
    let playing = futures_util::stream::iter(plays).map(play);
    let rows: Vec<Row> = playing.buffered(SIDE_BY_SIDE).try_collect().await?;
    let judge = weakness::tried().await?;
    report::show(&rows, &judge, begun.elapsed())
}

/// Plays all attacks of a class at once: one program works on all of them, each in a repository of
/// its own.
async fn play((class, kind, attempts): (Class, Kind, Vec<Attempt>)) -> anyhow::Result<Row> {
    let begun = std::time::Instant::now();
    eprintln!("attack: {}, on {kind:?} ...", class.describe());
    let site = Site::new(kind, attempts).await?;
    let has_ended = site.run().await? && site.run_again().await?;
    let breaches = judge::everything(&site, has_ended).await?;
    for breach in &breaches {
        eprintln!("attack: GOT THROUGH {breach}");
    }
    site.remove_images().await?;
    let row = Row::of(class, kind, &site, &breaches, begun.elapsed());
    if row.is_bad() || std::env::var("KEEP").is_ok_and(|keep| !keep.is_empty()) {
        eprintln!("attack: the world is kept in {}", site.keep().display());
    }
    Ok(row)
}

fn corpus() -> Vec<Attempt> {
    [
        repositories::all(),
        commits::all(),
        planted::all(),
        branches::all(),
        items::all(),
        replies::all(),
        leaks::all(),
        egress::all(),
        edits::all(),
        confidences::all(),
        fronts::all(),
        files::all(),
        forks::all(),
        approvals::all(),
        rights::all(),
        comments::all(),
        messages::all(),
        setups::all(),
        patterns::all(),
        hoses::all(),
        deltas::all(),
    ]
    .concat()
}
