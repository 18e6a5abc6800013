//! The address that a forge says its repositories are cloned from.

use url::Url;

use crate::forge::http::failure::Failure;

/// Refuses an address that is not encrypted if the API's is: git would send the token in plain
/// text. A GitLab behind a TLS proxy names such addresses if its `external_url` is not set.
pub(crate) fn require_encrypted(api: &Url, address: &str) -> Result<(), Failure> {
    let is_plain = Url::parse(address).is_ok_and(|address| address.scheme() == "http");
    if api.scheme() != "https" || !is_plain {
        return Ok(());
    }
    Err(Failure::Unreadable {
        reason: format!(
            "the forge says that the repository is at {address}, which is not encrypted though the API is: the token would be readable \
             on the way; have the forge name https addresses (GitLab: external_url in its configuration)"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_said_aloud_where_the_api_is_encrypted() {
        let told = |api: &str, address: &str| {
            require_encrypted(&api.parse().unwrap(), address).map_err(|error| error.to_string())
        };
        assert_eq!(
            told("https://git.example/api/v4", "https://git.example/o/r.git"),
            Ok(())
        );
        assert_eq!(told("http://127.0.0.1/api/v4", "http://127.0.0.1/o/r.git"), Ok(()));
        let refused = told("https://git.example/api/v4", "http://git.example/o/r.git").unwrap_err();
        assert!(
            refused.contains("http://git.example/o/r.git, which is not encrypted"),
            "{refused}"
        );
    }
}
