//! The connection to a cluster's API server.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::Pod;
use kube::client::retry::RetryPolicy;
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config as Access};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

use super::failure;
use super::verdict::Known;
use crate::environment::config::Config;
use crate::environment::config::engine_choice::Kubernetes;
use crate::environment::error::EnvironmentError;
use crate::environment::executor::Fingerprints;
use crate::environment::processes::Failure;

/// Time limit of one call.
const CALL_LIMIT: Duration = Duration::from_secs(30);

/// Time limit for connecting and asking the server's version.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// A connection to a cluster, as one installation uses it. Cheap to clone.
#[derive(Clone)]
pub(in crate::environment) struct Cluster {
    client: Client,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) choice: Kubernetes,
    pub(super) instance: String,
    /// The address of the API server.
    pub(super) server: http::Uri,
    /// Server's version and namespace, for people.
    pub(super) description: String,
    pub(super) policy: Mutex<Known>,
    pub(super) fingerprints: Fingerprints,
    /// Whether the removal of a pod failed, so that it may still exist.
    pub(super) has_leftovers: AtomicBool,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Cluster({})", self.place())
    }
}

impl Cluster {
    /// Connects to the API server. `kubeconfig` is the file that the process's environment names.
    pub(in crate::environment) async fn connect(
        config: &Config,
        choice: &Kubernetes,
        kubeconfig: Option<PathBuf>,
        instance: &str,
    ) -> Result<Self, EnvironmentError> {
        let unavailable = |place: &str, reason: String| EnvironmentError::ClusterUnavailable {
            place: place.to_owned(),
            reason,
        };
        let namespace = &choice.namespace;
        let access = access(choice, kubeconfig).await.map_err(|reason| {
            let mend =
                "name a kubeconfig in environment.kubernetes.kubeconfig, or run in the cluster with a service account";
            unavailable(&format!("of namespace {namespace}"), format!("{reason}; {mend}"))
        })?;
        let server = access.cluster_url.clone();
        let place = place(&server, namespace);
        let client = client(access).map_err(|error| unavailable(&place, failure::innermost(&error)))?;
        let version = timeout(CONNECT_LIMIT, client.apiserver_version())
            .await
            .map_err(|_| unavailable(&place, format!("no answer within {} s", CONNECT_LIMIT.as_secs())))?
            .map_err(|error| failure::error(&place, "asking for the version", failure::of(error)))?;
        let shared = Shared {
            config: config.clone(),
            choice: choice.clone(),
            instance: choice.installation.clone().unwrap_or_else(|| instance.to_owned()),
            description: format!("Kubernetes {} at {place}", version.git_version),
            server,
            policy: Mutex::default(),
            fingerprints: Fingerprints::default(),
            has_leftovers: AtomicBool::new(false),
        };
        Ok(Self {
            client,
            shared: Arc::new(shared),
        })
    }

    /// Returns a connection by `client`, as tests make one up.
    #[cfg(test)]
    pub(super) fn over(client: Client) -> Self {
        let shared = Shared {
            config: Config::default(),
            choice: Kubernetes::default(),
            instance: "here".to_owned(),
            description: String::new(),
            server: http::Uri::from_static("http://localhost"),
            policy: Mutex::default(),
            fingerprints: Fingerprints::default(),
            has_leftovers: AtomicBool::new(false),
        };
        Self {
            client,
            shared: Arc::new(shared),
        }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn namespace(&self) -> &str {
        &self.shared.choice.namespace
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), self.namespace())
    }

    /// Names cluster and namespace, for people.
    pub(super) fn place(&self) -> String {
        place(&self.shared.server, self.namespace())
    }

    /// Awaits one call, for at most [`CALL_LIMIT`].
    pub(super) async fn ask<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
        match timeout(CALL_LIMIT, Box::pin(call)).await {
            Ok(answer) => answer.map_err(failure::of),
            Err(_) => Err(Failure::Silent(format!("no answer within {} s", CALL_LIMIT.as_secs()))),
        }
    }

    /// Converts a failure of `what` into an error that says who must act.
    pub(super) fn error_of(&self, what: &str, failure: Failure) -> EnvironmentError {
        failure::error(&self.place(), what, failure)
    }

    /// Returns the error that the cluster cannot be used as it is.
    pub(super) fn unavailable(&self, reason: String) -> EnvironmentError {
        EnvironmentError::ClusterUnavailable {
            place: self.place(),
            reason,
        }
    }

    pub(super) fn note_leftover(&self) {
        self.shared.has_leftovers.store(true, Ordering::Relaxed);
    }
}

/// Returns a client whose packets are sent at once.
///
/// The library's own connections wait for the other end's word about the last packet before they
/// send the next small one, which costs a call over a kept stream 40 ms now and then.
fn client(access: Access) -> kube::Result<Client> {
    if access.proxy_url.is_some() {
        return Client::try_from(access);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(access.connect_timeout);
    let connector = access.rustls_https_connector_with_connector(connector)?;
    let service = ServiceBuilder::new()
        .layer(access.base_uri_layer())
        .option_layer(
            access
                .default_retry
                .then(|| RetryLayer::new(RetryPolicy::server_retry())),
        )
        .option_layer(access.auth_layer()?)
        .layer(access.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector));
    Ok(ClientBuilder::new(service, access.default_namespace).build())
}

fn place(server: &http::Uri, namespace: &str) -> String {
    format!("{}, namespace {namespace}", server.to_string().trim_end_matches('/'))
}

/// Returns how the cluster is reached, or why that is not known.
async fn access(choice: &Kubernetes, kubeconfig: Option<PathBuf>) -> Result<Access, String> {
    let options = KubeConfigOptions {
        context: choice.context.clone(),
        ..KubeConfigOptions::default()
    };
    let file = choice
        .kubeconfig
        .clone()
        .or(kubeconfig)
        .filter(|file| choice.kubeconfig.is_some() || file.exists());
    let mut access = match file {
        Some(file) => {
            let read = Kubeconfig::read_from(&file).map_err(|error| error.to_string())?;
            let loaded = Access::from_custom_kubeconfig(read, &options).await;
            loaded.map_err(|error| format!("{}: {error}", file.display()))?
        }
        None => Access::incluster().map_err(|error| error.to_string())?,
    };
    access.connect_timeout = Some(CONNECT_LIMIT);
    access.write_timeout = None;
    access.read_timeout = None;
    Ok(access)
}
