//! Checks beyond types: each value must be possible and agree with the others.

mod approval;
mod change_requests;
mod chat;
mod http;
mod limits;
mod machine;
mod model;
mod review;
mod source;
mod traces;

use std::collections::BTreeMap;
use std::path::Path;

use ::http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Host;
use url::Url;

use super::Config;
use super::fault::{self, Faults};
use crate::agent::prompt::system_prompt;
use crate::private;
pub(super) use chat::{persona, rules as dictionary};
pub(super) use limits::most;

pub(super) fn check(config: &Config, folder: &Path, faults: &mut Faults) {
    source::check(config, folder, faults);
    model::check(config, faults);
    review::check(config, faults);
    approval::check(config, faults);
    change_requests::check(config, faults);
    http::check(config, faults);
    traces::check(config, faults);
    chat::check(config, faults);
    machine::check(config, folder, faults);
}

/// Reads and checks the operator's template of the system prompt.
pub(super) fn system_prompt(config: &Config, folder: &Path, faults: &mut Faults) -> Option<String> {
    let file = folder.join(config.llm.system_prompt_file.as_ref()?);
    let read = std::fs::metadata(&file)
        .and_then(|metadata| Ok((metadata.len(), std::fs::read_to_string(&file)?)))
        .map_err(|error| format!("the file {} {}", file.display(), fault::unreadable(&error)));
    let checked = read.and_then(|(size, text)| {
        if size > system_prompt::LARGEST {
            return Err(format!(
                "{} is larger than {} KiB",
                file.display(),
                system_prompt::LARGEST / 1024
            ));
        }
        match system_prompt::check(&text) {
            Ok(()) => Ok(text),
            Err(reason) => Err(format!("{}: {reason}", file.display())),
        }
    });
    checked
        .map_err(|reason| faults.at("llm.system_prompt_file", reason))
        .ok()
}

/// Returns what works but should be looked at.
pub(super) fn doubts(config: &Config) -> Vec<String> {
    let addresses = source::addresses_with_secret(config)
        .into_iter()
        .map(|(key, address)| (key, address.to_owned()))
        .chain(model::addresses_with_secret(config))
        .chain(traces::address_with_secret(config));
    addresses
        .filter(|(_, address)| is_open_to_others(address))
        .map(|(key, _)| {
            format!("{key}: the secret goes over the network in plain http, where others can read it; use https")
        })
        .chain(readable_secrets(config))
        .chain(review::doubt(config))
        .chain(config.store.doubt())
        .collect()
}

/// Names the files with secrets that other users of the machine can read. Files below
/// `/run/secrets` are exempt: an engine mounts them for one container, which has no other users.
fn readable_secrets(config: &Config) -> impl Iterator<Item = String> {
    let open = config
        .secret_files
        .iter()
        .filter(|file| !file.starts_with("/run/secrets") && private::is_open_to_others(file));
    open.map(|file| {
        let file = file.display();
        format!("{file}: holds a secret, and other users of this machine can read it; chmod 600 {file}")
    })
}

fn is_open_to_others(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| {
        let is_this_machine = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => true,
        };
        url.scheme() == "http" && !is_this_machine
    })
}

fn check_address(key: &str, address: &str, faults: &mut Faults) {
    let reason = match Url::parse(address) {
        Err(url::ParseError::RelativeUrlWithoutBase) if !address.trim().is_empty() => {
            "is not an address; write http:// or https:// before it".to_owned()
        }
        Err(error) => format!("is not an address ({error}); write it like https://host/path"),
        Ok(url) if !["http", "https"].contains(&url.scheme()) => "must begin with http:// or https://".to_owned(),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            "must not hold a user or password; these have their own keys".to_owned()
        }
        Ok(url) if url.query().is_some() || url.fragment().is_some() => "must end before the `?` or `#`".to_owned(),
        Ok(_) => return,
    };
    faults.at(key, reason);
}

fn check_headers(key: &str, headers: &BTreeMap<String, SecretString>, faults: &mut Faults) {
    for (name, value) in headers {
        let is_header =
            HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value.expose_secret()).is_ok();
        if !is_header {
            let reason = "is no header that can be sent: letters, digits and hyphens, and a value of one line";
            faults.at(&format!("{key}.{name}"), reason);
        }
    }
}

fn check_positive(key: &str, value: u64, faults: &mut Faults) {
    if value == 0 {
        faults.at(key, "must be at least 1");
    }
}

fn check_given(key: &str, value: &str, faults: &mut Faults) {
    if value.trim().is_empty() {
        faults.at(key, "must not be empty");
    }
}
