//! Checks of the section on traces.

use super::{check_address, check_headers};
use crate::config::Config;
use crate::config::fault::Faults;
use crate::traces::IS_BUILT_IN;

pub(super) fn check(config: &Config, faults: &mut Faults) {
    let traces = &config.traces;
    check_headers("traces.headers", &traces.headers, faults);
    match &traces.endpoint {
        Some(address) if IS_BUILT_IN => check_address("traces.endpoint", address, faults),
        Some(_) => faults.at(
            "traces.endpoint",
            "this program was built without the feature `otlp` and cannot send traces; build it with, or leave this out",
        ),
        None if !traces.headers.is_empty() => {
            faults.at("traces.headers", "are sent to nobody; name a collector in traces.endpoint");
        }
        None => {}
    }
}

/// Returns the address of the collector if headers go there, one of which may hold a key.
pub(super) fn address_with_secret(config: &Config) -> Option<(String, String)> {
    let traces = &config.traces;
    let address = traces.endpoint.clone().filter(|_| !traces.headers.is_empty())?;
    Some(("traces.endpoint".to_owned(), address))
}
