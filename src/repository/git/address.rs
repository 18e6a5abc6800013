//! The address of a repository and the login for it.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use url::Url;

use crate::certificates::Trust;
use crate::repository::RepositoryError;
use crate::repository::git::command::Git;

/// User name and password for a forge.
#[derive(Debug, Clone)]
pub struct Login {
    pub user: String,
    pub password: SecretString,
    /// True if it was just created: a refusal may mean that it has not propagated yet.
    pub is_new: bool,
    /// The certificates that connections to the forge trust.
    pub trust: Trust,
}

/// A remote and the login for it; a local path has none.
#[derive(Debug, Clone)]
pub struct Remote {
    pub url: String,
    pub login: Option<Login>,
}

/// A validated address: without credentials, and of a scheme that runs no other program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::repository) struct Address {
    url: String,
    /// `https://host/`, the only origin that gets the login; `None` for a local path.
    origin: Option<String>,
    /// The mirror's path below `mirrors/`.
    place: PathBuf,
}

impl Address {
    pub(in crate::repository) fn read(url: &str) -> Result<Self, RepositoryError> {
        let refuse = |reason: &str| RepositoryError::Unexpected {
            what: "the repository's address".to_owned(),
            reason: reason.to_owned(),
        };
        let parsed = if url.starts_with('/') {
            Url::from_file_path(url).map_err(|()| refuse("this is not an absolute path"))?
        } else {
            Url::parse(url).map_err(|error| refuse(&format!("this is not a URL: {error}")))?
        };
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(refuse(
                "it contains a user name or password: put the token into the configuration instead",
            ));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(refuse(
                "it contains a '?' or '#': give the address one would clone from",
            ));
        }
        let port = parsed.port().map_or_else(String::new, |port| format!("+{port}"));
        let (host, origin) = match (parsed.scheme(), parsed.host_str()) {
            ("http" | "https", Some(host)) => (
                format!("{}{port}", file_name(host)),
                Some(format!("{}/", parsed.origin().ascii_serialization())),
            ),
            ("file", None) => ("local-path".to_owned(), None),
            (scheme, _) => {
                return Err(refuse(&format!(
                    "'{scheme}' addresses are not supported: give an https or http address"
                )));
            }
        };
        let mut place = PathBuf::from(host);
        let path = parsed.path().trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        if path.is_empty() {
            return Err(refuse("it names a host but no repository"));
        }
        place.extend(path.split('/').map(file_name));
        place.as_mut_os_string().push(".git");
        Ok(Self {
            url: parsed.to_string(),
            origin,
            place,
        })
    }

    pub(in crate::repository) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the repository's full name on its host, such as `owner/repo`.
    pub(in crate::repository) fn name(&self) -> &str {
        let origin = self.origin.as_deref().unwrap_or_default();
        let path = self.url.strip_prefix(origin).unwrap_or(&self.url).trim_matches('/');
        path.strip_suffix(".git").unwrap_or(path)
    }

    /// Returns the address that `url` means in a submodule of this repository, if it is on the same
    /// host: relative, or with git's forms for ssh, of which only host and path are taken.
    pub(in crate::repository) fn beside(&self, url: &str) -> Option<Self> {
        let own = Url::parse(&self.url).ok()?;
        let found = if url.starts_with("./") || url.starts_with("../") {
            let folder = Url::parse(&format!("{}/", self.url.trim_end_matches('/'))).ok()?;
            folder.join(url).ok()?
        } else if let Some((host, path)) = of_ssh(url) {
            (own.host_str() == Some(host.as_str())).then_some(())?;
            own.join(&format!("/{path}")).ok()?
        } else {
            Url::parse(url).ok()?
        };
        let found = Self::read(found.as_str()).ok()?;
        (found.origin.is_some() && found.origin == self.origin).then_some(found)
    }

    pub(in crate::repository) fn place(&self) -> &Path {
        &self.place
    }

    /// Gives `git` access to this address, with the certificates that connections to the forge's
    /// API trust.
    pub(in crate::repository) fn reach<'a>(
        &self,
        git: Git<'a>,
        login: Option<&Login>,
    ) -> Result<Git<'a>, RepositoryError> {
        Ok(match (&self.origin, login) {
            (Some(origin), Some(login)) => trusting(git, &login.trust)?.login(origin, &login.user, &login.password),
            (Some(_), None) => git,
            (None, _) => git.env("GIT_ALLOW_PROTOCOL", "file"),
        })
    }
}

/// Parses `git@host:path` and `ssh://git@host/path`.
fn of_ssh(url: &str) -> Option<(String, String)> {
    if let Ok(parsed) = Url::parse(url) {
        (parsed.scheme() == "ssh").then_some(())?;
        let path = parsed.path().trim_start_matches('/').to_owned();
        return Some((parsed.host_str()?.to_owned(), path));
    }
    let (login, path) = url.split_once(':')?;
    let (_, host) = login.split_once('@')?;
    (!host.contains('/')).then(|| (host.to_owned(), path.trim_start_matches('/').to_owned()))
}

fn trusting<'a>(git: Git<'a>, trust: &Trust) -> Result<Git<'a>, RepositoryError> {
    match trust.bundle() {
        Ok(Some(file)) => Ok(git.env("GIT_SSL_CAINFO", file)),
        Ok(None) => Ok(git),
        Err(error) => Err(RepositoryError::Unexpected {
            what: git.what().to_owned(),
            reason: format!("the file of trusted certificates cannot be written in the state directory: {error}"),
        }),
    }
}

/// Encodes a path component as a file name that is neither special nor hidden; distinct components
/// stay distinct.
pub(in crate::repository) fn file_name(part: &str) -> String {
    let mut name = String::new();
    for byte in part.bytes() {
        let plain = byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || (byte == b'.' && !name.is_empty());
        if plain {
            name.push(char::from(byte));
        } else {
            name.extend(format!("%{byte:02X}").chars());
        }
    }
    // The folder of a group `x.git` must not be the mirror of the repository `x`.
    match name.strip_suffix(".git") {
        Some(stem) => format!("{stem}%2Egit"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Result<String, String> {
        Address::read(url)
            .map(|address| address.place.display().to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_repository_has_a_place_of_its_own() {
        for (url, expected) in [
            ("https://forge.example/owner/repo.git", "forge.example/owner/repo.git"),
            ("https://forge.example/owner/repo", "forge.example/owner/repo.git"),
            (
                "http://127.0.0.1:8080/group/sub/project.git",
                "127.0.0.1+8080/group/sub/project.git",
            ),
            ("https://forge.example/x.git/repo.git", "forge.example/x%2Egit/repo.git"),
            ("https://forge.example/a/%2e%2e/%2e%2e/b.git", "forge.example/b.git"),
            (
                "https://forge.example/a/..%2f..%2fb.git",
                "forge.example/a/%2E.%252f..%252fb.git",
            ),
            ("https://forge.example/.hidden/b.git", "forge.example/%2Ehidden/b.git"),
            ("/srv/git/project.git", "local-path/srv/git/project.git"),
        ] {
            assert_eq!(place(url), Ok(expected.to_owned()), "{url}");
        }
    }

    #[test]
    fn a_repository_is_named_as_on_its_host() {
        for (url, expected) in [
            ("https://forge.example/owner/repo.git", "owner/repo"),
            ("http://127.0.0.1:8080/group/sub/project/", "group/sub/project"),
        ] {
            assert_eq!(Address::read(url).unwrap().name(), expected, "{url}");
        }
    }

    #[test]
    fn a_submodule_is_on_the_same_host_or_nowhere() {
        let own = Address::read("https://forge.example/group/project.git").unwrap();
        for (url, expected) in [
            ("../lib.git", Some("https://forge.example/group/lib.git")),
            ("../../other/lib", Some("https://forge.example/other/lib")),
            ("../../../../../lib.git", Some("https://forge.example/lib.git")),
            ("./sub", Some("https://forge.example/group/project.git/sub")),
            ("https://forge.example/a/b.git", Some("https://forge.example/a/b.git")),
            ("git@forge.example:a/b.git", Some("https://forge.example/a/b.git")),
            (
                "ssh://git@forge.example:2222/a/b.git",
                Some("https://forge.example/a/b.git"),
            ),
            ("http://forge.example/a/b.git", None),
            ("https://forge.example:8443/a/b.git", None),
            ("https://far.example/a/b.git", None),
            ("https://me:word@forge.example/a/b.git", None),
            ("git@far.example:a/b.git", None),
            ("/srv/git/b.git", None),
            ("file:///srv/git/b.git", None),
            ("ext::sh -c id", None),
            ("--upload-pack=id", None),
        ] {
            assert_eq!(own.beside(url).as_ref().map(Address::url), expected, "{url}");
        }
        let local = Address::read("/srv/git/project.git").unwrap();
        assert_eq!(local.beside("../b.git"), None);
    }

    #[test]
    fn addresses_that_run_programs_or_carry_secrets_are_refused() {
        for (url, word) in [
            ("ext::sh -c id", "not supported"),
            ("ssh://forge.example/a.git", "not supported"),
            ("--upload-pack=id", "not a URL"),
            ("https://user:secret@forge.example/a.git", "token"),
            ("https://forge.example", "no repository"),
        ] {
            let error = place(url).unwrap_err();
            assert!(error.contains(word) && !error.contains("secret"), "{error}");
        }
    }
}
