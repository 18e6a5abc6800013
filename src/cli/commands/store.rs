//! `store migrate`: copies the store in the file to a database that several machines share.

use std::path::Path;
use std::process::ExitCode;

use secrecy::SecretString;

use crate::cli::arguments::{MoveStore, StoreCommand};
use crate::cli::exit;
use crate::cli::session::{complain, configuration_or_defaults, print};
use crate::config::Config;
use crate::store::moving::move_all;
use crate::store::{Address, Server, Store};

/// Does what is asked of the store.
pub async fn run(config: Option<&Path>, command: &StoreCommand) -> ExitCode {
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let StoreCommand::Migrate(asked) = command;
    let server = match server(&config, asked) {
        Ok(server) => server,
        Err(reason) => {
            complain(reason);
            return exit::USAGE.into();
        }
    };
    match migrate(&config, server).await {
        Ok(()) => exit::SUCCESS.into(),
        Err(error) => {
            complain(format_args!("{error:#}"));
            exit::FAILED.into()
        }
    }
}

/// Returns the database that is named here, or else in the configuration.
fn server(config: &Config, asked: &MoveStore) -> Result<Server, String> {
    let password = match &asked.password_file {
        None => config.store.password.clone(),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| format!("the file {} cannot be read: {error}", file.display()))?;
            Some(SecretString::from(text.trim().to_owned()))
        }
    };
    let Some(url) = asked.to.as_ref().or(config.store.url.as_ref()) else {
        return Err(
            "name the database: --to postgres://user@host:5432/database, or `store.url` in the configuration".into(),
        );
    };
    match Server::fault(url) {
        Some(reason) => Err(format!("the address of the database {reason}")),
        None => Ok(Server::new(url, password)),
    }
}

async fn migrate(config: &Config, server: Server) -> anyhow::Result<()> {
    let file = config.state_dir.join("coding-agent.db");
    anyhow::ensure!(
        file.exists(),
        "there is no store to copy: {} does not exist",
        file.display()
    );
    let source = Store::open(&config.state_dir).await?;
    let target = Store::open(Address::Server(server)).await?;
    let name = crate::service::instance(&config.state_dir);
    let moved = move_all(&source, &name, &target, |table, rows| {
        print(format_args!("{table}: {rows} copied"));
    });
    let moved = moved.await?;
    let rows: u64 = moved.tables.iter().map(|(_, rows)| rows).sum();
    print(format_args!(
        "{rows} rows in {} tables are the same in both. Let `store.url` name the database on every machine before workers \
         start; the file {} is left as it was, and is not read any more then",
        moved.tables.len(),
        file.display()
    ));
    Ok(())
}
