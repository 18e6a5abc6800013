//! Program time for a turn: from the moment the model's reply has left to the moment the next
//! request is there, a command that does nothing included.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::fake::model::{Answer, Model, Plan, Request};
use crate::figure::{Figure, Whose};
use crate::floor::{Asking, COMMAND, Floor, Turn};
use crate::scale::Scale;
use crate::site::Site;

/// Turns before the first that counts: connections are opened and files are read for the first
/// time.
pub const WARMING: usize = 10;

/// The number of replies so far, and the turns of the floor between them.
#[derive(Default)]
struct Seen {
    replies: usize,
    floor: Vec<Turn>,
}

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let wanted = scale.of(200, 20);
    let floor = Floor::start().await?;
    let (asking, asked, turns) = Asking::channel();
    let serving = tokio::spawn(floor.serve(asked, turns));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let model = Model::answering({
        let seen = Arc::clone(&seen);
        move |request| {
            answer(
                &mut seen.lock().unwrap_or_else(PoisonError::into_inner),
                request,
                wanted,
                &asking,
            )
        }
    })
    .await;
    let site = Site::new(&model).await?;
    site.github.open_issue("Stand still").label("coding agent");
    site.deliver().await?;

    // The first reply is the plan, the second changes a file; from there on each is a turn of the
    // command.
    let exchanges = model.exchanges();
    let first = 2 + WARMING;
    let took: Vec<f64> = exchanges
        .windows(2)
        .skip(first)
        .take(wanted)
        .map(|pair| milliseconds(pair[1].arrived.duration_since(pair[0].answered)))
        .collect();
    drop(model);
    serving.await??;
    let floor = std::mem::take(&mut seen.lock().unwrap_or_else(PoisonError::into_inner).floor);
    let part = |part: fn(&Turn) -> Duration| -> Vec<f64> {
        let turns = floor.iter().skip(WARMING).take(wanted);
        turns.map(|turn| milliseconds(part(turn))).collect()
    };
    let (exchange, call) = (part(|turn| turn.exchange), part(|turn| turn.call));
    let floor = part(|turn| turn.exchange + turn.call);
    anyhow::ensure!(
        took.len() == wanted && floor.len() == wanted,
        "{} turns of the program and {} of the floor were measured instead of {wanted}",
        took.len(),
        floor.len()
    );
    Ok(vec![
        Figure::of("a turn of the program", "ms", &took)?
            .over(&floor)
            .at_most(5.0)
            .at_most_times(1.5),
        Figure::of("the floor of a turn", "ms", &floor)?.by(Whose::Floor),
        Figure::of("the floor, HTTP exchange", "ms", &exchange)?.by(Whose::Floor),
        Figure::of("the floor, command in the container", "ms", &call)?.by(Whose::Floor),
    ])
}

/// Plans, changes a file, runs the command again and again with a turn of the floor before each
/// reply, and ends.
fn answer(seen: &mut Seen, request: &Request, wanted: usize, asking: &Asking) -> Answer {
    seen.replies += 1;
    match seen.replies {
        1 => Answer::plans(Plan::of(&["stand still"]).in_environment("python")),
        2 => Answer::calls("workspace/write_file", file("A line.\n")),
        reply if reply <= 2 + WARMING + wanted => {
            // Missing turns are noticed when they are counted.
            seen.floor.extend(asking.turn(request.body.clone()));
            Answer::calls(
                "workspace/execute_command",
                json!({ "command": format!("{COMMAND} {reply}") }),
            )
        }
        _ => Answer::done("Stood still."),
    }
}

/// Returns the arguments that write a file, so that there is something to deliver.
pub fn file(content: &str) -> Value {
    json!({ "path": "NOTES.md", "content": content, "mode": "overwrite" })
}

pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
