//! `dashboard`, and the HTTP server of `serve`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::agent::record::stop::Stop;
use crate::cli::exit;
use crate::cli::session::{Session, complain, configuration_or_defaults, host, print};
use crate::service::Service;
use crate::service::running::Work;
use crate::web::{NotServed, Server, USUAL_ADDRESS};

/// Shows the dashboard until stopped, and works on nothing.
pub async fn show(config: Option<&Path>, listen: Option<SocketAddr>) -> ExitCode {
    let mut config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let address = listen.or_else(|| config.http.address()).unwrap_or(USUAL_ADDRESS);
    config.http.listen = Some(address.to_string());
    let session = match Session::open(config).await {
        Ok(session) => session,
        Err(code) => return code,
    };
    let (service, stop) = (Arc::clone(&session.service), session.stop.clone());
    session
        .run(async move {
            match Server::bind(service, host(), address).await {
                Ok(server) => {
                    print(server.invitation());
                    server.serve(stop.asked).await;
                    exit::SUCCESS.into()
                }
                Err(error) => {
                    complain(&error);
                    match error {
                        NotServed::Unfit(_) => exit::CONFIGURATION.into(),
                        NotServed::Taken { .. } | NotServed::NoToken { .. } => exit::FAILED.into(),
                    }
                }
            }
        })
        .await
}

/// Answers requests beside the work of `serve`, where the configuration has an address for it. If
/// it cannot be listened on that is said, and the work goes on without.
pub(super) async fn beside(service: &Arc<Service>, work: Work, stop: &Stop) {
    let is_service = work.produces && work.consumes;
    let Some(address) = service.config().http.address().filter(|_| is_service) else {
        return;
    };
    match Server::bind(Arc::clone(service), host(), address).await {
        Ok(server) => {
            print(server.invitation());
            server.serve(stop.asked.clone()).await;
        }
        Err(error) => {
            tracing::error!("{error}");
            complain(error);
        }
    }
}
