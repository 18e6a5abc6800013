//! The section `store`: where the store lies.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

/// Where the store lies. Without a server it is a file below `state_dir`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A PostgreSQL database that several machines share, as `postgres://user@host:5432/database`.
    pub url: Option<String>,
    /// Password of the database's user.
    #[schemars(with = "Option<String>")]
    pub password: Option<SecretString>,
    /// Largest unfinished work that is kept in the store, in bytes. What is larger stays on its
    /// machine, and where machines share the store it is pushed to the run's own branch.
    pub max_work_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: None,
            password: None,
            max_work_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Where a store lies.
#[derive(Debug, Clone)]
pub enum Address {
    /// In a file below this state folder.
    Folder(PathBuf),
    Server(Server),
}

/// A database on a server.
#[derive(Debug, Clone)]
pub struct Server {
    pub(super) url: String,
    pub(super) password: Option<SecretString>,
}

impl Config {
    /// Returns where the store of an installation lies.
    pub fn address(&self, state_dir: &Path) -> Address {
        match &self.url {
            Some(url) => Address::Server(Server::new(url, self.password.clone())),
            None => Address::Folder(state_dir.to_owned()),
        }
    }

    /// Returns what is wrong with the section: a key, and a sentence.
    pub fn fault(&self) -> Option<(&'static str, String)> {
        let Some(url) = &self.url else {
            return self.password.is_some().then(|| {
                (
                    "password",
                    "is of no use without `url`; the store in a file has none".to_owned(),
                )
            });
        };
        Server::fault(url).map(|reason| ("url", reason))
    }

    /// Returns what works but should be looked at: what it is and, after a semicolon, what to do.
    pub fn doubt(&self) -> Option<String> {
        let url = Url::parse(self.url.as_deref()?).ok()?;
        let is_verified = url
            .query_pairs()
            .any(|(key, value)| key == "sslmode" && value == "verify-full");
        (!is_verified && !is_near(&url)).then(|| {
            "store.url: whoever is between this machine and the database can read and change what is stored; add \
             ?sslmode=verify-full&sslrootcert=/path/of/the/authority.pem to it"
                .to_owned()
        })
    }
}

impl Server {
    pub fn new(url: &str, password: Option<SecretString>) -> Self {
        Self {
            url: url.to_owned(),
            password,
        }
    }

    /// Returns what is wrong with the address of a database.
    pub fn fault(url: &str) -> Option<String> {
        const FORM: &str = "write it like postgres://user@host:5432/database";
        match Url::parse(url) {
            Err(error) => Some(format!("is not an address ({error}); {FORM}")),
            Ok(url) if !["postgres", "postgresql"].contains(&url.scheme()) => {
                Some(format!("must begin with postgres://; {FORM}"))
            }
            Ok(url) if url.password().is_some() || url.query_pairs().any(|(key, _)| key == "password") => {
                Some("must not hold a password, since it is shown; put that into `password_file`".to_owned())
            }
            Ok(_) => None,
        }
    }
}

/// Tells whether the database is reached without a network: through a socket, or on this machine.
fn is_near(url: &Url) -> bool {
    let asked = url.query_pairs().find(|(key, _)| key == "host" || key == "hostaddr");
    let host = asked.map_or_else(
        || url.host_str().unwrap_or_default().to_owned(),
        |(_, host)| host.into_owned(),
    );
    let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    host.is_empty() || host.starts_with('/') || host.starts_with("%2F") || host == "localhost" || is_loopback
}

impl From<&Path> for Address {
    fn from(state_dir: &Path) -> Self {
        Self::Folder(state_dir.to_owned())
    }
}

impl From<&PathBuf> for Address {
    fn from(state_dir: &PathBuf) -> Self {
        Self::Folder(state_dir.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> Config {
        Config {
            url: Some(url.to_owned()),
            ..Config::default()
        }
    }

    #[test]
    fn an_address_with_a_password_is_refused_without_showing_it() {
        for url in [
            "postgres://agent:hush@db/agent",
            "postgres://agent@db/agent?password=hush",
        ] {
            let (key, reason) = at(url).fault().unwrap();
            assert_eq!(key, "url");
            assert!(reason.contains("password_file") && !reason.contains("hush"), "{reason}");
        }
        assert!(at("mysql://db/agent").fault().unwrap().1.contains("postgres://"));
        assert_eq!(at("postgres://agent@db/agent").fault(), None);
        let alone = Config {
            password: Some("hush".into()),
            ..Config::default()
        };
        assert_eq!(alone.fault().unwrap().0, "password");
    }

    #[test]
    fn a_database_behind_a_network_is_doubted_until_it_is_verified() {
        for near in [
            "postgres:///agent?host=/run/postgresql",
            "postgres://agent@localhost/agent",
            "postgres://agent@127.0.0.1/agent",
            "postgres://agent@db.example/agent?sslmode=verify-full",
        ] {
            assert_eq!(at(near).doubt(), None, "{near}");
        }
        for far in [
            "postgres://agent@db.example/agent",
            "postgres://10.0.0.3/agent?sslmode=require",
        ] {
            assert!(at(far).doubt().unwrap().contains("; add "), "{far}");
        }
    }
}
