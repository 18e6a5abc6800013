//! How often a forge is asked for one run of ten turns, from the label to the pull request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::fake::model::{Answer, Model, Plan};
use crate::figure::Figure;
use crate::floor::COMMAND;
use crate::site::Site;
use crate::turns::file;

const TURNS: usize = 10;

pub async fn measure() -> anyhow::Result<Vec<Figure>> {
    let replies = AtomicUsize::new(0);
    let model = Model::answering(move |_| match replies.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::plans(
            Plan::of(&["write a note"])
                .in_environment("python")
                .verified_by("test -s NOTES.md"),
        ),
        1 => Answer::calls("workspace/write_file", file("A line.\n")),
        TURNS => Answer::done("The note is written."),
        turn => Answer::calls(
            "workspace/execute_command",
            json!({ "command": format!("{COMMAND} {turn}") }),
        ),
    })
    .await;
    let site = Site::new(&model).await?;
    site.github.open_issue("Write a note").label("coding agent");
    site.deliver().await?;
    let mut routes: BTreeMap<String, usize> = BTreeMap::new();
    for request in site.github.requests() {
        let path = request.path.split('?').next().unwrap_or_default();
        *routes.entry(format!("{} {path}", request.method)).or_default() += 1;
    }
    for (route, count) in &routes {
        eprintln!("bench:   {count} x {route}");
    }
    Ok(vec![
        Figure::of(
            "a run of ten turns, forge requests",
            "",
            &[count(site.github.requests().len())],
        )?
        .at_most(25.0),
        Figure::of(
            "a run of ten turns, git requests",
            "",
            &[count(site.github.git_requests().len())],
        )?,
    ])
}

pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
