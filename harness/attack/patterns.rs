//! Patterns for the planner's search, which the worker itself has to match.

use serde_json::json;

use crate::attempt::{Attempt, End};
use crate::class::Class;
use crate::fake::model::Answer;

/// The repository holds a line that a careless engine goes over for a long time.
pub fn all() -> Vec<Attempt> {
    let search = |name, pattern: &str| {
        let mut attempt = Attempt::new(Class::Pattern, name, End::Delivered)
            .prepared(|repository, _| {
                let line = format!("{}\n", "xa".repeat(1_500));
                repository.commit("main", "Add", &[("long.txt", &line)]);
            })
            .works();
        let call = |pattern: &str| Answer::calls("repository/search", json!({ "pattern": pattern }));
        attempt.looks = vec![call(pattern), call(&format!("{pattern}|x"))];
        attempt
    };
    let many: Vec<String> = (0..150).map(|number| format!("(x{number}.*)")).collect();
    vec![
        search("repetitions", "(((a{1,255}){1,255}){1,255})").short(),
        search("repetition", "((a{1,32767}){1,32767})").short(),
        search("back-references", "^(.*)(.*)(.*)(.*)\\1\\2\\3\\4b$").short(),
        search("classes", "(\\w{1,250}){1,250}"),
        search("stars", "((((((x*)*)*)*)*)*)*y"),
        search("alternatives", &many.join("|")),
        search("nested", &format!("{}x{}", "(".repeat(400), ")".repeat(400))),
        search("nothing-repeated", "(){0,4294967295}"),
        search("long-pattern", &"[a-z]?".repeat(20_000)),
        search("option", "--open-files-in-pager=touch @MARK@"),
        search("file-option", "-f/etc/passwd"),
        search("zero", "a\u{0}b"),
    ]
}
