//! Personal data that must not reach a model that is not near, by whichever way it comes.

use serde_json::json;

use crate::attempt::{Attempt, Deed, End};
use crate::class::Class;

/// One of each kind.
pub const DATA: [&str; 4] = [
    "taro.yamada@acme.co.jp",
    "090-1234-5678",
    "4111 1111 1111 1111",
    "1234 5678 9018",
];

const FILE: &str = "name,mail,telephone,card,number\n\
                    Taro,taro.yamada@acme.co.jp,090-1234-5678,4111 1111 1111 1111,1234 5678 9018\n";

pub fn all() -> Vec<Attempt> {
    let data = |name| {
        Attempt::new(Class::Personal, name, End::Delivered).prepared(|repository, _| {
            repository.commit("main", "People", &[("people.csv", FILE)]);
        })
    };
    let text = DATA.join(" and ");
    let mut item = data("personal-item").works().short();
    item.body.clone_from(&text);
    let mut comment = data("personal-comment").works();
    comment.comments.push(("alice", text.clone()));
    let mut named = data("personal-named-file").works();
    "Please greet those in people.csv.".clone_into(&mut named.body);
    let mut looked = data("personal-looked-up").works();
    looked.looks = vec![crate::fake::model::Answer::calls(
        "repository/read_file",
        json!({ "path": "people.csv" }),
    )];
    let author = format!(
        "git -c user.name=Taro -c user.email={} commit -q --allow-empty -m x; git log",
        DATA[0]
    );
    vec![
        item,
        comment,
        named,
        looked,
        data("personal-file")
            .calls("workspace/read_file", json!({ "path": "people.csv" }))
            .works()
            .short(),
        data("personal-output").runs("cat people.csv").works(),
        data("personal-pieces")
            .runs("cat people.csv | tr ',' '\\n'; cut -d, -f2- people.csv")
            .works(),
        data("personal-author").runs(&author).works(),
        data("personal-error")
            .runs("cat people.csv >&2; sh \"$(tail -1 people.csv)\"")
            .works(),
        data("personal-name")
            .runs("touch \"$(tail -1 people.csv | cut -d, -f2)\"; ls; rm *@*")
            .works(),
        data("personal-words")
            .works()
            .meanwhile(0, Deed::Says("Write to taro.yamada@acme.co.jp or call 090-1234-5678.")),
        data("personal-own-words").says(&text).works().may_end_here(0),
    ]
}
