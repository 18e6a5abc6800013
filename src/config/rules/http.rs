//! Checks of the section on the HTTP server.

use secrecy::{ExposeSecret, SecretString};

use super::check_address;
use crate::config::Config;
use crate::config::fault::Faults;

/// Fewer characters could be guessed.
const SHORTEST_TOKEN: usize = 16;
const LONGEST_NAME: usize = 32;

pub(super) fn check(config: &Config, faults: &mut Faults) {
    let http = &config.http;
    if let Some(listen) = &http.listen {
        match http.address() {
            None => faults.at(
                "http.listen",
                format!("'{listen}' is not an IP address with a port; write it like 127.0.0.1:8420 or [::1]:8420"),
            ),
            Some(address) if !address.ip().is_loopback() && http.users.is_empty() => faults.at(
                "http.listen",
                format!(
                    "{} can be reached from other machines; name who may come in under http.users, or listen on 127.0.0.1",
                    address.ip()
                ),
            ),
            Some(_) => {}
        }
    }
    if let Some(address) = &http.public_url {
        check_address("http.public_url", address, faults);
        let has_path = url::Url::parse(address).is_ok_and(|url| !matches!(url.path(), "" | "/"));
        if has_path {
            faults.at("http.public_url", "must end after the host: the pages are at its top");
        }
    }
    check_users(config, faults);
    let hooks = &http.webhooks;
    for (key, secret) in [
        ("http.webhooks.github.secret", &hooks.github.secret),
        ("http.webhooks.gitlab.token", &hooks.gitlab.token),
        ("http.webhooks.gitlab.signing_secret", &hooks.gitlab.signing_secret),
    ] {
        if secret.as_ref().is_some_and(is_short) {
            faults.at(
                key,
                format!("must have at least {SHORTEST_TOKEN} characters; anybody could guess it"),
            );
        }
    }
}

fn check_users(config: &Config, faults: &mut Faults) {
    let users = &config.http.users;
    for (name, user) in users {
        let key = format!("http.users.{name}");
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&sign);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_sign) {
            let reason = format!("a name is made of letters, digits, `-`, `_` and `.`, {LONGEST_NAME} at most");
            faults.at("http.users", format!("'{name}': {reason}"));
            continue;
        }
        match &user.token {
            None => faults.at(&key, "has no token; give `token_file`, or `token`"),
            Some(token) if is_short(token) => {
                let mend = "make one with `openssl rand -hex 32`";
                faults.at(
                    &key,
                    format!("its token must have at least {SHORTEST_TOKEN} characters; {mend}"),
                );
            }
            Some(token) => {
                let is_same = |other: &SecretString| other.expose_secret() == token.expose_secret();
                let mut others = users.iter().filter(|(other, _)| *other < name);
                if let Some((other, _)) = others.find(|(_, other)| other.token.as_ref().is_some_and(is_same)) {
                    faults.at(
                        &key,
                        format!("has the token of {other}; each user needs one of their own"),
                    );
                }
            }
        }
    }
}

fn is_short(secret: &SecretString) -> bool {
    secret.expose_secret().chars().count() < SHORTEST_TOKEN
}
