//! In which form a model can change a file: by an exact text that it replaces, or by writing the
//! whole file.
//!
//! A model that is too small for exact edits misses again and again, and its runs end without a
//! change. That shows with one small file.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::conversation::{Reply, ToolSpec, decode, form, tool_name};
use crate::finding::Finding;
use crate::llm::chat::PaidReply;
use crate::llm::config::Edits;
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::secret::Redactor;
use crate::syntax::fragment;

const FILE: &str = "shop/prices.py";
const BEFORE: &str = "\
TAX = 0.19


def net(gross):
    return gross / (1 + TAX)


def gross(net):
    return net * TAX


def total(prices):
    return sum(gross(price) for price in prices)
";
const WRONG: &str = "    return net * TAX\n";
/// Texts of which one is in the mended line.
const RIGHT: [&str; 4] = ["(1 + TAX)", "(1+TAX)", "(TAX + 1)", "net + net * TAX"];

const TASK: &str = "`gross(100)` has to be 119.0: the tax is added to the net price. Mend the function gross, and change nothing else.";
const EXACT: &str = "You change files of a project. Reply with one JSON object and nothing else: \
     {\"comment\": \"why\", \"tool\": \"str_replace\", \"args\": {\"path\": \"\", \"old\": \"\", \"new\": \"\"}}. \
     str_replace replaces old, which must occur exactly once in the file, word for word.";
const WHOLE: &str = "You change files of a project. Say in one sentence what is wrong. Then write the file whole: a line with its path, \
     then its content between two lines ```.";

/// The result of the model's edit.
#[derive(Debug, PartialEq, Eq)]
enum Edit {
    Mended,
    /// In words that go on after "it".
    Missed(String),
}

/// Has the model mend one line, in the form of `edits`, and says whether another one suits it. The
/// replies that it takes are added to `paid`.
pub(super) async fn examine(
    subject: &str,
    model: &Model,
    edits: Edits,
    paid: &mut Vec<PaidReply>,
) -> Result<Finding, LlmError> {
    let tried = attempt(model, edits, paid).await?;
    Ok(match (edits, tried) {
        (Edits::Whole, Edit::Mended) => {
            Finding::good(subject, "one line of a file was mended by writing the whole file")
        }
        (Edits::Auto | Edits::Exact, Edit::Mended) => {
            Finding::good(subject, "one line of a file was mended by an exact edit")
        }
        (Edits::Whole, Edit::Missed(what)) => Finding::doubtful(
            subject,
            format!("asked to mend one line of a small file by writing it whole, it {what}"),
            "take a larger model: this one will mend little",
        ),
        (Edits::Auto | Edits::Exact, Edit::Missed(what)) => {
            let remedy = match attempt(model, Edits::Whole, paid).await? {
                Edit::Mended => {
                    "set llm.edits to whole and llm.function_calling to false: written whole, it mended the same file"
                }
                Edit::Missed(_) => "take a larger model: it failed by writing the whole file, too",
            };
            Finding::doubtful(
                subject,
                format!("asked to mend one line of a small file by an exact edit, it {what}"),
                remedy,
            )
        }
    })
}

async fn attempt(model: &Model, edits: Edits, paid: &mut Vec<PaidReply>) -> Result<Edit, LlmError> {
    let nothing_to_hide = Redactor::default();
    let mut chat = model.chat(Arc::from([]), false, CancellationToken::new());
    if edits != Edits::Whole {
        let tool = ToolSpec {
            name: "workspace/str_replace".to_owned(),
            description: String::new(),
            schema: json!({}),
        };
        chat.hold_to(Some(form::call(&[tool])));
    }
    let system = if edits == Edits::Whole { WHOLE } else { EXACT };
    chat.send_system_prompt(&nothing_to_hide.clean(system));
    chat.send_user_message(&nothing_to_hide.clean(&format!("{TASK}\n\n{FILE}\n```\n{BEFORE}```\n")));
    Ok(judge(&chat.get_counted_response(paid).await?, edits))
}

fn judge(reply: &Reply, edits: Edits) -> Edit {
    let missed = |what: &str| Edit::Missed(what.to_owned());
    let turn = match edits {
        Edits::Whole => decode::files::turn(reply, &[(FILE.to_owned(), BEFORE.to_owned())]),
        Edits::Auto | Edits::Exact => decode::turn(reply),
    };
    let calls = match turn {
        Ok(turn) => turn.calls,
        Err(unreadable) => return Edit::Missed(format!("gave a reply that cannot be read ({})", unreadable.what)),
    };
    let [call] = calls.as_slice() else {
        return missed("did not change just that file");
    };
    let arg = |name: &str| {
        call.args
            .get(name)
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
    };
    let after = match (edits, tool_name::short(&call.tool)) {
        (Edits::Whole, "write_file") => {
            let merged = fragment::merge(FILE, BEFORE, arg("content"));
            merged.map_or_else(|| arg("content").to_owned(), |merged| merged.text)
        }
        (Edits::Auto | Edits::Exact, "str_replace") => match BEFORE.matches(arg("old")).count() {
            1 => BEFORE.replacen(arg("old"), arg("new"), 1),
            0 => return missed("named a text that does not occur in the file"),
            _ => return missed("named a text that occurs more than once"),
        },
        _ => return missed("called another tool"),
    };
    let rest_is_kept = BEFORE
        .lines()
        .filter(|line| *line != WRONG.trim_end())
        .all(|line| after.contains(line));
    let is_mended = !after.contains(WRONG)
        && RIGHT
            .iter()
            .any(|right| after[after.find("def gross").unwrap_or(0)..].contains(right));
    match (rest_is_kept, is_mended) {
        (true, true) => Edit::Mended,
        (false, _) => missed("lost lines that were to stay"),
        (true, false) => missed("left the fault in it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str, edits: Edits) -> Edit {
        let reply = Reply {
            text: text.to_owned(),
            ..Reply::default()
        };
        judge(&reply, edits)
    }

    fn exact(old: &str, new: &str) -> Edit {
        let reply =
            json!({ "comment": "Mend.", "tool": "str_replace", "args": { "path": FILE, "old": old, "new": new } });
        judged(&reply.to_string(), Edits::Auto)
    }

    fn missed(what: &str) -> Edit {
        Edit::Missed(what.to_owned())
    }

    #[test]
    fn an_exact_edit_has_to_find_its_text_and_mend_the_fault() {
        assert_eq!(exact("return net * TAX", "return net * (1 + TAX)"), Edit::Mended);
        assert_eq!(
            exact("return net*TAX", "x"),
            missed("named a text that does not occur in the file")
        );
        assert_eq!(
            exact("return", "return"),
            missed("named a text that occurs more than once")
        );
        assert_eq!(exact("net * TAX", "net * TAX"), missed("left the fault in it"));
        assert_eq!(
            exact(BEFORE, "def gross(net):\n    return net * (1 + TAX)\n"),
            missed("lost lines that were to stay")
        );
        assert!(matches!(judged("I would change it.", Edits::Exact), Edit::Missed(_)));
    }

    #[test]
    fn a_whole_file_has_to_keep_what_was_to_stay() {
        let mended = BEFORE.replace("net * TAX", "net * (1 + TAX)");
        let whole = |content: &str| {
            judged(
                &format!("The tax is not added.\n\n{FILE}\n```python\n{content}```"),
                Edits::Whole,
            )
        };
        assert_eq!(whole(&mended), Edit::Mended);
        assert_eq!(whole(BEFORE), missed("left the fault in it"));
        assert_eq!(whole("def gross(net):\n    return net * (1 + TAX)\n"), Edit::Mended);
        assert_eq!(
            whole("TAX = 2\n\n\ndef gross(net):\n    return net * (1 + TAX)\n"),
            missed("lost lines that were to stay")
        );
    }
}
