//! Claims on items that somebody who may push has written, so that nobody works on these.

use crate::attempt::{Attempt, End};
use crate::class::Class;
use crate::forge::Repository;

/// The ref of the claim on the first item of a repository.
const CLAIM: &str = "refs/coding-agent/claims/item-1";

/// Later than whatever was asked for.
const FAR: &str = "2999-01-01T00:00:00Z";
const PAST: &str = "2020-01-01T00:00:00Z";

/// Returns a claim in the words of an installation.
fn claim(asked_at: &str, until: &str, state: &str) -> String {
    let id = "0199b1a4-7e5c-4d1f-9b0a-000000000001";
    format!(
        "Keep out.\n\ninstallation: {id}\nworker: {id}\nrun: none\nasked-at: {asked_at}\nuntil: {until}\nstate: {state}\n"
    )
}

fn write(repository: &Repository, text: &str) {
    repository.git().set_message(CLAIM, text);
}

pub fn all() -> Vec<Attempt> {
    let forged = |name, prepare: fn(&Repository, &str)| {
        Attempt::new(Class::Claim, name, End::Delivered)
            .works()
            .prepared(prepare)
    };
    vec![
        forged("claim-for-ever", |repository, _| {
            write(repository, &claim(PAST, FAR, "held"));
        })
        .short(),
        forged("claim-served", |repository, _| {
            write(repository, &claim(FAR, PAST, "over"));
        })
        .short(),
        forged("claim-words", |repository, _| write(repository, "Keep out.\n")),
        forged("claim-twice", |repository, _| {
            let both = format!("{}state: held\n", claim(FAR, PAST, "over"));
            write(repository, &both);
        }),
        forged("claim-long", |repository, _| {
            let long = format!("{}{}\n", claim(PAST, FAR, "held"), "x".repeat(5_000_000));
            write(repository, &long);
        }),
        forged("claim-wild-time", |repository, _| {
            write(repository, &claim(PAST, "+262142-12-31T23:59:59Z", "held"));
        }),
        forged("claim-tree", |repository, _| {
            let git = repository.git();
            git.set_reference(CLAIM, &git.tree("main"));
        }),
        forged("claim-history", |repository, _| {
            let git = repository.git();
            if let Some(id) = git.resolve("refs/heads/main") {
                git.set_reference(CLAIM, &id);
            }
        }),
        // No reference fits below another.
        forged("claim-in-the-way", |repository, _| {
            repository.git().set_message("refs/coding-agent/claims", "Keep out.\n");
        }),
        forged("claim-refused", |repository, _| {
            repository.git().reject_other_references("only branches here");
        }),
    ]
}
