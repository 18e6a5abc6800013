//! Opening the database: the way to the server, the tables, the session.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

use super::explained::{failed, is_loss};
use super::link::Link;
use super::session::Session;
use super::{Postgres, pooler, tables};
use crate::store::StoreError;
use crate::store::config::Server;
use crate::store::sql::Statement;

/// For how long other workers are believed after the server, or the way to it, was gone.
pub(in crate::store) const GRACE: Duration = Duration::from_secs(10);
/// For how long somebody who only looks waits for the server.
const AT_A_LOOK: Duration = Duration::from_secs(3);
/// The oldest server that can tell what became of a transaction by its number as it is used here.
const OLDEST: i64 = 130_000;

/// Opens the database, makes or migrates its tables, and makes this process one of its workers.
pub(in crate::store) async fn open(server: &Server, grace: Duration) -> Result<Postgres, StoreError> {
    open_over(link(server)?, grace).await
}

/// Opens the database over a link that the caller prepared, makes or migrates its tables, and makes
/// this process one of its workers.
pub(super) async fn open_over(link: Link, grace: Duration) -> Result<Postgres, StoreError> {
    refuse_pooler(&link).await?;
    version(&link).await?;
    let link = link.with_installation().await?;
    let mut attempts = link.attempts();
    loop {
        match tables::migrate(&link).await {
            Err(StoreError::Away { .. }) if attempts.wait().await => {}
            done => break done?,
        }
    }
    let session = Session::enter(link.clone(), grace).await;
    let session = session.map_err(|error| link.failed(error))?;
    Ok(Postgres { link, session })
}

/// Looks whether the database can be worked with, and changes nothing; returns a sentence about it.
pub(in crate::store) async fn examine(server: &Server) -> Result<String, StoreError> {
    let link = link(server)?.with_patience(AT_A_LOOK);
    refuse_pooler(&link).await?;
    let version = version(&link).await?;
    let begun = std::time::Instant::now();
    link.look(&Statement::new("SELECT 1::BIGINT")).await?;
    Ok(format!(
        "{} answers in {:.1} ms; PostgreSQL {}.{}",
        link.name(),
        begun.elapsed().as_secs_f64() * 1_000.0,
        version / 10_000,
        version % 10_000
    ))
}

/// Returns the way to a server, over which nothing was sent yet.
pub(super) fn link(server: &Server) -> Result<Link, StoreError> {
    let options = PgConnectOptions::from_str(&server.url).map_err(|error| failed("store.url", error))?;
    let mut options = options.application_name("coding-agent").disable_statement_logging();
    if let Some(password) = &server.password {
        options = options.password(password.expose_secret());
    }
    let place = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    let name: Arc<str> = format!("{database} at {place}").into();
    Ok(Link::new(options, name))
}

async fn version(link: &Link) -> Result<i64, StoreError> {
    let rows = link
        .fetch(&Statement::new("SELECT current_setting('server_version_num')::BIGINT"))
        .await?;
    let version = rows.first().map(|row| row.number(0)).transpose()?.unwrap_or_default();
    if version < OLDEST {
        return Err(link.unusable(&format!(
            "the server is PostgreSQL {}; version 13 or newer is needed",
            version / 10_000
        )));
    }
    Ok(version)
}

async fn refuse_pooler(link: &Link) -> Result<(), StoreError> {
    let mut attempts = link.attempts();
    let is_between = loop {
        match pooler::is_between(link).await {
            Err(error) if is_loss(&error) && attempts.wait().await => {}
            found => break found.map_err(|error| link.failed(error))?,
        }
    };
    if is_between {
        return Err(link.unusable(
            "a connection pooler between hands the server's sessions from one client to another \
             (PgBouncer's pool_mode = transaction), so nobody could tell which workers live; connect to the server \
             itself, or set pool_mode = session",
        ));
    }
    Ok(())
}
