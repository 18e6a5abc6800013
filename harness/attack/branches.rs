//! Names of branches that look like options, paths or other references.
//!
//! The final comment shows that the program went by this very name: that it pushed to
//! the branch, or that there is none it could work on.

use serde_json::json;

use crate::attempt::{Attempt, End};
use crate::class::Class;

pub fn all() -> Vec<Attempt> {
    let head = |name, head: &str| {
        let attempt = Attempt::new(Class::Branch, name, End::Any).works().may_end_here(0);
        let mut attempt = attempt.tells(&format!("`{head}`"));
        attempt.head = Some(head.to_owned());
        attempt
    };
    let base = |name, base: &str| {
        let attempt = Attempt::new(Class::Branch, name, End::Delivered).works();
        let mut attempt = attempt.tells(base.lines().next().unwrap_or_default());
        attempt.plan = vec![("base_branch", json!(base))];
        attempt
    };
    vec![
        head("head-option", "--upload-pack=touch").short(),
        head("head-short-option", "-rf"),
        head("head-dash-dash", "--"),
        head("head-shell", "x;touch$IFS@MARK@;"),
        head("head-substitution", "$(id)"),
        head("head-refspec", "+main"),
        head("head-like-full", "refs/heads/main"),
        head("head-main", "main"),
        head("head-our-own", "coding-agent/1-attack"),
        base("base-option", "--output=/tmp/attack-base").short(),
        base("base-path", "../../refs/coding-agent/x"),
        base("base-revision", "main~0"),
        base("base-reflog", "main@{0}"),
        base("base-refspec", "main:refs/heads/evil"),
        base("base-newline", "main\n\nrefs/heads/evil"),
        base("base-range", "main..HEAD"),
    ]
}
