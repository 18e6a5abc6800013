//! The configuration file: from people who are trusted, and still no reason to fall over.

use std::path::Path;

use coding_agent::config::Config;
use coding_agent::config::fault::ConfigSource;

use super::text;

/// The file: it is loaded or refused in whole sentences.
pub fn configuration(bytes: &[u8]) {
    let variables = |name: &str| (name == "SET").then(|| "value".to_owned());
    match Config::parse(
        &text(bytes),
        &ConfigSource::Environment,
        Path::new("/nowhere"),
        &variables,
    ) {
        Ok(config) => {
            let _ = config.doubts();
            let _ = config.secrets();
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            assert!(faults.iter().all(|fault| !fault.to_string().is_empty()));
        }
    }
}
