//! Pictures that people dropped into an issue or a comment.
//!
//! GitHub keeps them beside its API, and the address in the text opens with no token. Where
//! everybody can read the repository it opens without one. Elsewhere the page that the API renders
//! has another address of the same picture, which is good for some minutes. So the token never
//! leaves the API.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use url::Url;

use crate::forge::github::Api;
use crate::forge::github::http::TokenScope;
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::picture::links;

/// Asks for the page of an item as people see it.
const RENDERED: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { issueOrPullRequest(number: $number) { \
    ... on Issue { bodyHTML comments(last: 100) { nodes { bodyHTML } } } \
    ... on PullRequest { bodyHTML comments(last: 100) { nodes { bodyHTML } } \
    reviews(last: 100) { nodes { bodyHTML } } } } } }";
/// Names of servers on which github.com keeps pictures.
const CONTENT: &str = ".githubusercontent.com";
const STORAGE: (&str, &str) = ("github-production-user-asset-", ".s3.amazonaws.com");

impl Api {
    /// Fetches a picture of an item; `None` if it is none that people dropped into it.
    pub(super) async fn picture(&self, at: ItemAddress<'_>, address: &str) -> Result<Option<Bytes>, Failure> {
        let home = self.client.home();
        let Some(url) = own(home, address) else {
            return Ok(None);
        };
        let may_lie = |url: &Url| is_storage(home, url);
        let failure = match self.client.fetch_open(url.clone(), may_lie).await {
            Ok(answer) => return Ok(Some(answer.body)),
            Err(failure) => failure,
        };
        let name = url.path_segments().and_then(Iterator::last).unwrap_or_default();
        let is_hidden = matches!(
            failure.status(),
            Some(StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        );
        // A name that is no check sum's length could be another picture's.
        if !is_hidden || name.len() < 32 {
            return Err(failure);
        }
        let page = self.rendered(at).await?;
        let signed = links(&page).into_iter().filter_map(|link| Url::parse(&link).ok());
        let signed = signed
            .filter(|other| other.path().contains(name) && *other != url)
            .find(|other| is_storage(home, other));
        match signed {
            Some(signed) => Ok(Some(self.client.fetch_open(signed, may_lie).await?.body)),
            None => Err(failure),
        }
    }

    /// Returns the item and its comments as HTML; nothing if the server has no API for that.
    async fn rendered(&self, at: ItemAddress<'_>) -> Result<String, Failure> {
        let (owner, name) = at.repository.split_once('/').unwrap_or_default();
        let question = json!({
            "query": RENDERED,
            "variables": { "owner": owner, "name": name, "number": at.number },
        });
        let scope = TokenScope::Repository(at.repository);
        let answer = self
            .client
            .ask_graph::<Value>(scope, &question)
            .await?
            .unwrap_or_default();
        let item = &answer["data"]["repository"]["issueOrPullRequest"];
        let nodes = ["comments", "reviews"]
            .into_iter()
            .filter_map(|part| item[part]["nodes"].as_array());
        let pages = [item].into_iter().chain(nodes.flatten()).map(|node| &node["bodyHTML"]);
        Ok(pages.filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n"))
    }
}

/// Returns the address of a picture that somebody dropped into a page of this GitHub.
fn own(home: &Url, address: &str) -> Option<Url> {
    let url = Url::parse(address).ok()?;
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    if has_credentials {
        return None;
    }
    if is_web(home, &url) {
        let parts: Vec<&str> = url.path_segments()?.collect();
        let is_asset = matches!(
            parts.as_slice(),
            ["user-attachments", "assets", _] | [_, _, "assets", _, _]
        );
        return is_asset.then_some(url);
    }
    is_storage(home, &url).then_some(url)
}

/// Tells whether an address is on the pages that belong to an API.
fn is_web(home: &Url, url: &Url) -> bool {
    let host = home.host_str().unwrap_or_default();
    let web = host.strip_prefix("api.").unwrap_or(host);
    url.scheme() == home.scheme()
        && url.host_str() == Some(web)
        && url.port_or_known_default() == home.port_or_known_default()
}

/// Tells whether this GitHub keeps pictures at an address.
fn is_storage(home: &Url, url: &Url) -> bool {
    if is_web(home, url) {
        return true;
    }
    let (Some(host), Some(home)) = (url.domain(), home.domain()) else {
        return false;
    };
    if url.scheme() != "https" || url.port().is_some() {
        return false;
    }
    if home == "api.github.com" {
        return host.ends_with(CONTENT) || (host.starts_with(STORAGE.0) && host.ends_with(STORAGE.1));
    }
    let web = home.strip_prefix("api.").unwrap_or(home);
    host.strip_suffix(web).is_some_and(|before| before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_dropped_into_a_page_of_this_github_is_its_own() {
        let own = |home: &str, address: &str| own(&home.parse().unwrap(), address).is_some();
        let github = "https://api.github.com";
        for address in [
            "https://github.com/user-attachments/assets/00000000-0000-0000-0000-000000000000",
            "https://github.com/o/r/assets/1/00000000-0000-0000-0000-000000000000",
            "https://user-images.githubusercontent.com/1/2.png",
        ] {
            assert!(own(github, address), "{address}");
        }
        for address in [
            "http://github.com/user-attachments/assets/0",
            "https://github.com/o/r/blob/main/x.png",
            "https://github.com/logout",
            "https://github.com.evil.example/user-attachments/assets/0",
            "https://github.com@evil.example/user-attachments/assets/0",
            "https://evil@github.com/user-attachments/assets/0",
            "https://evilgithubusercontent.com/x.png",
            "https://user-images.githubusercontent.com:8443/1/2.png",
            "https://camo.example/x.png",
            "https://169.254.169.254/latest",
            "/uploads/x.png",
            "file:///etc/passwd",
        ] {
            assert!(!own(github, address), "{address}");
        }
        let server = "https://git.example.com/api/v3";
        assert!(own(server, "https://git.example.com/user-attachments/assets/0"));
        assert!(own(server, "https://media.git.example.com/user/1/files/0"));
        assert!(!own(server, "https://github.com/user-attachments/assets/0"));
        assert!(!own(server, "https://example.com/user-attachments/assets/0"));
    }

    #[test]
    fn storage_is_where_github_sends_to() {
        let home = "https://api.github.com".parse().unwrap();
        let storage = |address: &str| is_storage(&home, &address.parse().unwrap());
        assert!(storage(
            "https://github-production-user-asset-6210df.s3.amazonaws.com/1/2.png?X-Amz-Signature=0"
        ));
        assert!(storage(
            "https://private-user-images.githubusercontent.com/1/2.png?jwt=0"
        ));
        assert!(!storage("https://other.s3.amazonaws.com/1.png"));
        assert!(!storage("http://private-user-images.githubusercontent.com/1/2.png"));
    }
}
