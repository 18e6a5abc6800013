//! `config check` and `config schema`.

use std::path::Path;
use std::process::ExitCode;

use super::arguments::ConfigCommand;
use super::exit;
use super::session::{complain, forge_configuration, print};
use crate::config::Config;

pub fn run(path: Option<&Path>, command: &ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Check => match forge_configuration(path) {
            Ok(_) => {
                print("the configuration is good");
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
