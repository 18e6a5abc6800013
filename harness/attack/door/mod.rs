//! The door: what strangers on the network, other sites in somebody's browser, people who may only
//! look, and texts that want to be run try at the dashboard, the API and the webhooks.
//!
//! All attacks are made on one program with its HTTP server. Each sort of attack also does the
//! same thing rightly, first or last: where that does not work either, nothing was tried.

mod entrance; // the program with its door
mod floods; // too much of everything
mod foreign; // other sites: forged requests, borrowed names
mod hooks; // deliveries that are forged or repeated
mod messengers; // messages in Slack and LINE
mod paths; // addresses that lead elsewhere
mod sessions; // planted, changed, ended sessions; rights; guesses
mod texts; // texts that want to be run

use std::time::Instant;

use futures_util::future::BoxFuture;

use crate::report::Row;
use entrance::Entrance;

/// A sort of attack on the door.
struct Sort {
    name: &'static str,
    about: &'static str,
    play: for<'a> fn(&'a Entrance) -> BoxFuture<'a, anyhow::Result<Tally>>,
}

const SORTS: [Sort; 14] = [
    Sort {
        name: "texts",
        about: "texts that want to be run in a browser, in every field",
        play: |entrance| Box::pin(texts::play(entrance)),
    },
    Sort {
        name: "paths",
        about: "addresses that lead to files or to other hosts",
        play: |entrance| Box::pin(paths::play(entrance)),
    },
    Sort {
        name: "rebinding",
        about: "names of others that lead to the dashboard",
        play: |entrance| Box::pin(foreign::rebinding(entrance)),
    },
    Sort {
        name: "csrf",
        about: "requests that other sites have a browser send",
        play: |entrance| Box::pin(foreign::forged(entrance)),
    },
    Sort {
        name: "sessions",
        about: "sessions that were planted, changed or ended",
        play: |entrance| Box::pin(sessions::play(entrance)),
    },
    Sort {
        name: "viewers",
        about: "people at the dashboard who may only look",
        play: |entrance| Box::pin(sessions::viewers(entrance)),
    },
    Sort {
        name: "hooks",
        about: "webhooks that no forge has sent",
        play: |entrance| Box::pin(hooks::forged(entrance)),
    },
    Sort {
        name: "replays",
        about: "webhooks that are sent again",
        play: |entrance| Box::pin(hooks::repeated(entrance)),
    },
    Sort {
        name: "floods",
        about: "floods of connections, bodies, readers and guesses",
        play: |entrance| Box::pin(floods::play(entrance)),
    },
    Sort {
        name: "chat-forged",
        about: "messages in Slack and LINE that neither has sent",
        play: |entrance| Box::pin(messengers::forged(entrance)),
    },
    Sort {
        name: "chat-replays",
        about: "messages in Slack and LINE that are sent again",
        play: |entrance| Box::pin(messengers::repeated(entrance)),
    },
    Sort {
        name: "chat-people",
        about: "people in Slack and LINE who are not who may",
        play: |entrance| Box::pin(messengers::people(entrance)),
    },
    Sort {
        name: "chat-quotes",
        about: "commands in quotations and code of a message",
        play: |entrance| Box::pin(messengers::quoted(entrance)),
    },
    Sort {
        name: "chat-floods",
        about: "floods of messages in Slack and LINE",
        play: |entrance| Box::pin(messengers::flooded(entrance)),
    },
];

/// The result of all attacks of one sort.
#[derive(Debug, Default)]
pub struct Tally {
    pub tried: usize,
    /// The attacks that got through, each with how.
    pub through: Vec<String>,
    /// The attacks that were not tried, because what has to work beside them did not.
    pub untried: Vec<String>,
}

impl Tally {
    /// Counts an attack; `through` says what it has reached, if anything.
    fn tries(&mut self, name: &str, through: Option<String>) {
        self.tried += 1;
        self.through.extend(through.map(|what| format!("{name}: {what}")));
    }

    /// Counts the same thing done rightly, which must work.
    fn controls(&mut self, name: &str, works: bool) {
        if !works {
            self.untried
                .push(format!("{name} does not even work when it is done rightly"));
        }
    }
}

/// Returns the names of the sorts.
pub fn names() -> Vec<&'static str> {
    SORTS.iter().map(|sort| sort.name).collect()
}

/// Plays those of these names, or all.
pub async fn play(wanted: &[String]) -> anyhow::Result<Vec<Row>> {
    let is_wanted = |sort: &&Sort| wanted.is_empty() || wanted.iter().any(|name| name == sort.name);
    let sorts: Vec<&Sort> = SORTS.iter().filter(is_wanted).collect();
    if sorts.is_empty() {
        return Ok(Vec::new());
    }
    eprintln!("attack: the door ...");
    let entrance = Entrance::open().await?;
    let mut rows = Vec::new();
    for sort in sorts {
        let begun = Instant::now();
        eprintln!("attack: {} ...", sort.about);
        let mut tally = (sort.play)(&entrance).await?;
        if !entrance.is_alive() {
            tally
                .through
                .push(format!("the program has ended:\n{}", entrance.said()));
        }
        for what in &tally.through {
            eprintln!("attack: GOT THROUGH {what}");
        }
        for what in &tally.untried {
            eprintln!("attack: NOT TRIED {what}");
        }
        rows.push(Row::of_door(sort.name, sort.about, tally, begun.elapsed()));
    }
    entrance.close().await?;
    Ok(rows)
}
