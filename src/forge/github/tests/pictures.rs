//! Pictures of items: where they are fetched from, and with what.

use serde_json::json;

use super::{github, task, unknown};
use crate::forge::TaskSource;
use crate::forge::test_server::{Reply, Server};

const NAME: &str = "0123abcd-0000-4000-8000-0123456789ab";

#[tokio::test]
async fn a_picture_that_everybody_can_see_is_fetched_without_the_token() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /user-attachments/assets/0123abcd-0000-4000-8000-0123456789ab" => {
            Reply::empty(302).with("location", "/storage/picture")
        }
        "GET /storage/picture" => Reply::json(200, &json!("a picture")),
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    let address = format!("{}/user-attachments/assets/{NAME}", server.address);
    let bytes = github.picture(&task(), &address).await.unwrap().unwrap();
    assert_eq!(bytes.as_ref(), br#""a picture""#);
    for asked in server.asked() {
        assert!(!asked.headers.contains_key("authorization"), "{}", asked.uri);
    }
    for elsewhere in [
        "https://images.example/x.png".to_owned(),
        format!("{}/o/r/blob/main/x.png", server.address),
    ] {
        assert_eq!(github.picture(&task(), &elsewhere).await.unwrap(), None, "{elsewhere}");
    }
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_picture_of_a_private_repository_is_found_on_the_page_that_the_api_renders() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "POST /api/graphql" => {
            assert!(asked.headers.contains_key("authorization"));
            let page = format!(
                "<p><img src=\"/user-images/1-{NAME}.png?jwt=signed\"><img src=\"http://{}/user-images/1-{NAME}.png?jwt=signed\"></p>",
                asked.headers["host"].to_str().unwrap()
            );
            let comments = json!({ "nodes": [{ "bodyHTML": page }] });
            let item = json!({ "bodyHTML": "<p>hm</p>", "comments": comments });
            Reply::json(200, &json!({ "data": { "repository": { "issueOrPullRequest": item } } }))
        }
        line if line.starts_with("GET /user-attachments/") => Reply::empty(404),
        line if line.starts_with("GET /user-images/") => {
            assert!(!asked.headers.contains_key("authorization"));
            Reply::json(200, &json!("a picture"))
        }
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    let address = format!("{}/user-attachments/assets/{NAME}", server.address);
    let bytes = github.picture(&task(), &address).await.unwrap().unwrap();
    assert_eq!(bytes.as_ref(), br#""a picture""#);
}

#[tokio::test]
async fn without_graphql_a_hidden_picture_is_told_as_it_was_refused() {
    let server = Server::start(|asked| match asked.line().as_str() {
        line if line.starts_with("GET /user-attachments/") => Reply::empty(401),
        "POST /api/graphql" => Reply::empty(404),
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    let address = format!("{}/user-attachments/assets/{NAME}", server.address);
    let error = github.picture(&task(), &address).await.unwrap_err().to_string();
    assert!(error.contains("401"), "{error}");
}

#[tokio::test]
async fn a_picture_that_is_sent_elsewhere_is_not_followed() {
    let server = Server::start(|asked| match asked.line().as_str() {
        line if line.starts_with("GET /user-attachments/") => {
            Reply::empty(302).with("location", "http://169.254.169.254/latest/meta-data")
        }
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    let address = format!("{}/user-attachments/assets/{NAME}", server.address);
    let error = github.picture(&task(), &address).await.unwrap_err().to_string();
    assert!(error.contains("it lies elsewhere"), "{error}");
}
