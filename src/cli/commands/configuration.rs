//! `config check` and `config schema`.

use std::path::Path;
use std::process::ExitCode;

use crate::cli::arguments::ConfigCommand;
use crate::cli::exit;
use crate::cli::session::{complain, configuration, print};
use crate::config::Config;

pub fn run(path: Option<&Path>, command: &ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Check => match configuration(path) {
            Ok(config) => {
                print(verdict(&config));
                exit::SUCCESS.into()
            }
            Err(code) => code,
        },
        ConfigCommand::Schema => match serde_json::to_string_pretty(&Config::schema()) {
            Ok(schema) => {
                print(schema);
                exit::SUCCESS.into()
            }
            Err(error) => {
                complain(error);
                exit::FAILED.into()
            }
        },
    }
}

/// Returns what can be done with a configuration without faults, and its doubtful settings.
fn verdict(config: &Config) -> String {
    let good = match config.missing_source() {
        None => "the configuration is good".to_owned(),
        Some(missing) => format!("the configuration is good, but only for `run --task`: {missing}"),
    };
    let doubts = config.doubts().into_iter().map(|doubt| format!("doubtful: {doubt}"));
    doubts.chain([good]).collect::<Vec<_>>().join("\n")
}
