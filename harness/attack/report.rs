//! The table for people and `target/attack/report.json` for scripts.

use std::time::Duration;

use coding_agent_harness::build;
use serde_json::{Value, json};

use crate::breach::Breach;
use crate::carried;
use crate::class::Class;
use crate::door::Tally;
use crate::forge::Kind;
use crate::site::Site;
use crate::weakness::Tried;

pub struct Row {
    name: &'static str,
    about: &'static str,
    /// The forge, or nothing where it is not about one.
    forge: String,
    attempts: Vec<Value>,
    /// How many were played.
    count: usize,
    delivered: usize,
    through: usize,
    untried: usize,
    took: Duration,
    breaches: Vec<String>,
}

impl Row {
    pub fn of(class: Class, kind: Kind, site: &Site, breaches: &[Breach], took: Duration) -> Self {
        let mut through: Vec<Option<&str>> = breaches.iter().map(|breach| breach.attempt).collect();
        through.sort_unstable();
        through.dedup();
        let mut row = Self {
            name: class.name(),
            about: class.describe(),
            forge: format!("{kind:?}"),
            attempts: Vec::new(),
            count: site.targets.len(),
            delivered: 0,
            through: through.len(),
            untried: 0,
            took,
            breaches: breaches.iter().map(ToString::to_string).collect(),
        };
        for target in &site.targets {
            let missing = carried::missing(site, target);
            if let Some(missing) = &missing {
                eprintln!("attack: NOT TRIED {}: {missing}", target.attempt.name);
            }
            let is_delivered = site.is_delivered(target);
            row.delivered += usize::from(is_delivered);
            row.untried += usize::from(missing.is_some());
            row.attempts.push(json!({
                "name": target.attempt.name,
                "not_tried": missing,
                "delivered": is_delivered,
                "labels": target.item.labels(),
                "told": target.item.comments_of(site.forge.bot()).pop(),
            }));
        }
        row
    }

    /// The row of attacks on the HTTP server, which bring no items.
    pub fn of_door(name: &'static str, about: &'static str, tally: Tally, took: Duration) -> Self {
        Self {
            name,
            about,
            forge: String::new(),
            attempts: Vec::new(),
            count: tally.tried + tally.untried.len(),
            delivered: 0,
            through: tally.through.len(),
            untried: tally.untried.len(),
            took,
            breaches: tally.through,
        }
    }

    pub fn is_bad(&self) -> bool {
        self.through + self.untried > 0
    }

    fn tried(&self) -> usize {
        self.count - self.untried
    }

    fn json(&self) -> Value {
        json!({
            "class": self.name,
            "forge": self.forge,
            "tried": self.tried(),
            "not_tried": self.untried,
            "delivered": self.delivered,
            "got_through": self.through,
            "seconds": self.took.as_secs(),
            "breaches": self.breaches,
            "attempts": self.attempts,
        })
    }
}

/// Prints the table, writes the file, and returns how much is wrong: what got through, what was not
/// tried, and rules of the judge that are blind.
pub fn show(rows: &[Row], judge: &Tried, took: Duration) -> anyhow::Result<usize> {
    println!("| attack | forge | tried | not tried | harmless work delivered | got through | s |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for row in rows {
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.about,
            row.forge,
            row.tried(),
            row.untried,
            row.delivered,
            row.through,
            row.took.as_secs()
        );
    }
    let sum = |count: fn(&Row) -> usize| rows.iter().map(count).sum::<usize>();
    let (untried, through) = (sum(|row| row.untried), sum(|row| row.through));
    // Classes are played side by side, so this is less than the sum.
    let seconds = took.as_secs();
    let (tried, delivered) = (sum(Row::tried), sum(|row| row.delivered));
    println!("| all | | {tried} | {untried} | {delivered} | {through} | {seconds} |");
    let Tried { rules, blind } = judge;
    println!(
        "\nrules of the judge: {rules} tried, {} noticed nothing {blind:?}",
        blind.len()
    );
    let classes: Vec<Value> = rows.iter().map(Row::json).collect();
    let version = env!("CARGO_PKG_VERSION");
    let report = json!({ "version": version, "seconds": seconds, "classes": classes, "rules_tried": rules, "rules_blind": blind });
    let path = build::results("attack")?.join("report.json");
    build::write_report(&path, &report)?;
    println!("report: {}", path.display());
    Ok(through + untried + blind.len())
}
