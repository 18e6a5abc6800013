//! Branches that commits are pushed to, and those that they are not.

use serde_json::json;

use super::{gitlab, merge_request, refused, short, unknown};
use crate::forge::CodeHost;
use crate::forge::test_server::{Reply, Server};

#[tokio::test]
async fn a_branch_is_protected_unless_it_is_gone_or_developers_push_to_it() {
    let shown = [(false, false), (true, false), (true, true)].map(Some);
    let mut found = Vec::new();
    for shown in [None].into_iter().chain(shown) {
        let server = Server::start(move |asked| match (short(asked).as_str(), shown) {
            ("GET /repository/branches/release%2F1.0", Some((is_protected, developers_can_push))) => {
                let branch = json!({"protected": is_protected, "developers_can_push": developers_can_push});
                Reply::json(200, &branch)
            }
            ("GET /repository/branches/release%2F1.0", None) => refused(404, "404 Branch Not Found"),
            _ => unknown(asked),
        })
        .await;
        let asked = gitlab(&server)
            .await
            .is_protected(&merge_request(), "release/1.0")
            .await;
        found.push(asked.unwrap());
    }
    assert_eq!(found, [false, false, true, false]);
}
