//! Attacks the program as a stranger would, and counts what got through. `make attack` runs it.
//!
//! The real program runs as a process of its own between the fakes of the tests, with real
//! containers and real git. Each attack is an item with a repository of its own, and a model that
//! does what the attacker wants it to. Afterwards everything that the program wrote or sent is
//! looked at, by rules that share no code with the program, and each attack has to prove that it
//! was carried out. At the end the rules themselves are tried: for each of them something is done
//! that it must notice.
//!
//! `make attack SHORT=1 ROUNDS=3 ONLY="commit item:mention"` plays the short form of one
//! class, and one attack of another, three times; `self` tries the rules only.

mod attempt; // one attack: what is prepared, what the model does, what must come of it
mod class; // the sorts of attack
mod forge; // either forge

// The corpus.
mod approvals; // approvals that cover more than was seen
mod automatic; // results that may not pass by themselves
mod branches; // names of branches
mod canary; // secrets that must turn up nowhere
mod claims; // claims on items
mod comments; // what stands under the bot's name
mod commits; // hostile commits
mod confidences; // what only some may read
mod edits; // items that change after the label
mod deltas; // packs that unfold
mod egress; // ways out of a container
mod files; // files that run or are read elsewhere
mod forks; // forks of strangers
mod fronts; // allowed hosts as fronts for others
mod hoses; // streams between container and worker
mod pods; // a container that wants into its cluster
mod items; // hostile items
mod leaks; // secrets on their way out
mod messages; // messages of commits
mod near; // confidential work, and models that are not near
mod patterns; // patterns for the planner's search
mod personal; // personal data
mod planted; // checks that pass without passing
mod plans; // words that must not approve a plan
mod replies; // a hostile model
mod repositories; // hostile repositories
mod reviews; // reviewers that lie, and are lied to
mod setups; // set-ups that leave something behind
mod starts; // mentions and assignments

mod rights; // people without rights, and what only looks like a command

mod site; // the program, configured for the fakes
mod door; // the HTTP server, attacked over the network

// The conditions that must hold afterwards.
mod breach; // what got through
mod carried; // was it carried out?
mod delivery; // what was delivered, looked at by git itself
mod host; // the worker's machine
mod judge; // all of it
mod mirrors; // the mirrors
mod rendered; // texts of the bot, as the forges show them
mod report; // the table and the file
mod secrets; // the canaries
mod usage; // memory, logs and time
mod weakness; // does the judge notice?
mod words; // texts of the bot, and for the model

use std::process::ExitCode;

use attempt::Attempt;
use class::Class;
use coding_agent_harness::fake; // forges and model
use coding_agent_harness::run;
use forge::Kind;
use futures_util::{StreamExt, TryStreamExt};
use report::Row;
use site::Site;

/// Classes that are played at once: one is at its last, slowest attacks while the next one begins.
const SIDE_BY_SIDE: usize = 2;

/// Tries nothing but the judge.
const SELF: &str = "self";

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    run(
        "attack",
        attack(&wanted),
        "got through, were not tried or went unnoticed",
    )
}

async fn attack(wanted: &[String]) -> anyhow::Result<usize> {
    for name in wanted {
        anyhow::ensure!(
            name == SELF
                || door::names().contains(&name.as_str())
                || corpus().iter().any(|attempt| attempt.is_called(name)),
            "there is no class and no attack '{name}'; classes: {}, {}, {SELF}",
            Class::ALL.map(Class::name).join(", "),
            door::names().join(", ")
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
    for (place, class) in (0..rounds).flat_map(|_| Class::ALL.into_iter().enumerate()) {
        let mut attempts = corpus();
        attempts.retain(|attempt| attempt.class == class && is_wanted(attempt));
        if !attempts.is_empty() {
            let forges = class.forges();
            // The short form plays a class on one forge, and the next one on the other.
            let forges = if is_short {
                &forges[place % forges.len()..][..1]
            } else {
                forges
            };
            plays.extend(forges.iter().map(|kind| {
                let mut attempts = attempts.clone();
                attempts.retain(|attempt| attempt.only_on.is_none_or(|only| only == *kind));
                (class, *kind, attempts)
            }));
        }
    }
    let begun = std::time::Instant::now();
    plays.retain(|(_, _, attempts)| !attempts.is_empty());
    let playing = futures_util::stream::iter(plays).map(play);
    let mut rows: Vec<Row> = playing.buffered(SIDE_BY_SIDE).try_collect().await?;
    for _ in 0..rounds {
        rows.extend(door::play(wanted).await?);
    }
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
        pods::all(),
        deltas::all(),
        reviews::all(),
        plans::all(),
        automatic::all(),
        starts::all(),
        near::all(),
        personal::all(),
        claims::all(),
    ]
    .concat()
}
