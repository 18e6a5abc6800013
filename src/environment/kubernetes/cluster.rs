//! The connection to a cluster's API server.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::Pod;
use kube::client::retry::RetryPolicy;
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config as Access};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tower::retry::RetryLayer;
use tower::{BoxError, Service, ServiceBuilder};

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
        let (access, login) = access(choice, kubeconfig).await.map_err(|reason| {
            let mend =
                "name a kubeconfig in environment.kubernetes.kubeconfig, or run in the cluster with a service account";
            unavailable(&format!("of namespace {namespace}"), format!("{reason}; {mend}"))
        })?;
        let server = access.cluster_url.clone();
        let place = place(&server, namespace);
        // A program that the kubeconfig names for credentials is run meanwhile.
        let made = timeout(
            CONNECT_LIMIT,
            tokio::task::spawn_blocking(move || client(access, login)),
        )
        .await;
        let client = match made {
            Ok(Ok(Ok(client))) => client,
            Ok(Ok(Err(error))) => return Err(unavailable(&place, failure::all_causes(&error))),
            Ok(Err(panicked)) => return Err(unavailable(&place, panicked.to_string())),
            Err(_) => {
                let limit = CONNECT_LIMIT.as_secs();
                let reason = format!("what the kubeconfig names for credentials did not end within {limit} s");
                return Err(unavailable(&place, reason));
            }
        };
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

/// A proxy on the way to the API server.
struct Proxy {
    address: http::Uri,
    /// The header with which it lets the program through.
    login: Option<http::HeaderValue>,
}

/// Returns a client whose packets are sent at once.
///
/// The library's own connections wait for the other end's word about the last packet before they
/// send the next small one, which costs a call over a kept stream 40 ms now and then.
fn client(access: Access, login: Option<http::HeaderValue>) -> kube::Result<Client> {
    let mut direct = HttpConnector::new();
    direct.enforce_http(false);
    direct.set_nodelay(true);
    direct.set_connect_timeout(access.connect_timeout);
    let Some(proxy) = access.proxy_url.clone() else {
        return over(&access, direct);
    };
    let tunnel = |proxy| Tunnel::new(proxy, direct.clone());
    match proxy.scheme_str() {
        Some("http") => match login {
            Some(login) => over(&access, tunnel(proxy).with_auth(login)),
            None => over(&access, tunnel(proxy)),
        },
        Some("socks5") => over(&access, SocksV5::new(proxy, direct)),
        // Encrypted ones are left to the library.
        _ => Client::try_from(access),
    }
}

fn over<C>(access: &Access, connector: C) -> kube::Result<Client>
where
    C: Service<http::Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: std::error::Error + Send + Sync + 'static,
{
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
    Ok(ClientBuilder::new(service, access.default_namespace.clone()).build())
}

/// Returns the login that stands in a proxy's address.
fn login(proxy: &http::Uri) -> Option<http::HeaderValue> {
    let url: url::Url = proxy.to_string().parse().ok()?;
    let word = |text: &str| {
        percent_encoding::percent_decode_str(text)
            .decode_utf8_lossy()
            .into_owned()
    };
    let (user, password) = (word(url.username()), word(url.password().unwrap_or_default()));
    let login = BASE64_STANDARD.encode(format!("{user}:{password}"));
    let header = http::HeaderValue::from_str(&format!("Basic {login}")).ok();
    header.filter(|_| !user.is_empty())
}

/// Returns the proxy on the way to `server`: the one that the kubeconfig names, or else that of the
/// variables. The library asks `NO_PROXY` about the proxy's own address instead of the server's.
fn proxy(named: Option<&str>, server: &http::Uri, variables: &Matcher) -> Result<Option<Proxy>, String> {
    if let Some(named) = named.map(str::trim).filter(|named| !named.is_empty()) {
        let parsed = named.parse::<http::Uri>();
        let named_one = |address| Proxy {
            login: login(&address),
            address,
        };
        return parsed
            .map(|address| Some(named_one(address)))
            .map_err(|error| format!("its proxy-url '{named}' is no address: {error}"));
    }
    let Some(found) = variables.intercept(server) else {
        return Ok(None);
    };
    Ok(Some(Proxy {
        address: found.uri().clone(),
        login: found.basic_auth().cloned(),
    }))
}

fn place(server: &http::Uri, namespace: &str) -> String {
    format!("{}, namespace {namespace}", server.to_string().trim_end_matches('/'))
}

/// Returns how the cluster is reached, or why that is not known.
async fn access(
    choice: &Kubernetes,
    kubeconfig: Option<PathBuf>,
) -> Result<(Access, Option<http::HeaderValue>), String> {
    let options = KubeConfigOptions {
        context: choice.context.clone(),
        ..KubeConfigOptions::default()
    };
    let file = choice
        .kubeconfig
        .clone()
        .or(kubeconfig)
        .filter(|file| choice.kubeconfig.is_some() || file.exists());
    let mut named = None;
    let is_inside = file.is_none();
    let mut access = match file {
        Some(file) => {
            let read = Kubeconfig::read_from(&file).map_err(|error| error.to_string())?;
            named = proxy_of(&read, choice.context.as_deref());
            let loaded = Access::from_custom_kubeconfig(read, &options).await;
            loaded.map_err(|error| format!("{}: {error}", file.display()))?
        }
        None => Access::incluster().map_err(|error| error.to_string())?,
    };
    let found = if is_inside {
        None
    } else {
        proxy(named.as_deref(), &access.cluster_url, &Matcher::from_env())?
    };
    let (address, login) = found.map(|proxy| (proxy.address, proxy.login)).unzip();
    access.proxy_url = address;
    access.connect_timeout = Some(CONNECT_LIMIT);
    access.write_timeout = None;
    access.read_timeout = None;
    Ok((access, login.flatten()))
}

/// Returns the `proxy-url` of the cluster in a context of a kubeconfig, or in its current one.
fn proxy_of(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == name)?;
    let name = &context.context.as_ref()?.cluster;
    let cluster = kubeconfig.clusters.iter().find(|cluster| &cluster.name == name)?;
    cluster.cluster.as_ref()?.proxy_url.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_is_asked_about_the_server() {
        let variables = Matcher::builder()
            .https("http://me:a%2Fb@10.1.2.3:3128")
            .no("10.0.0.0/8,.internal.example")
            .build();
        let way = |named, server: &str| {
            let found = proxy(named, &server.parse().unwrap(), &variables).unwrap();
            found.map(|proxy| (proxy.address.to_string(), proxy.login))
        };
        assert_eq!(way(None, "https://10.0.0.1:6443"), None);
        assert_eq!(way(None, "https://api.internal.example:6443"), None);
        let header = |text: &str| http::HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(text))).ok();
        let elsewhere = way(None, "https://api.example.com:6443");
        assert_eq!(elsewhere, Some(("http://10.1.2.3:3128/".to_owned(), header("me:a/b"))));
        let named = way(Some("http://you:c@proxy.example:3128"), "https://10.0.0.1:6443").unwrap();
        assert_eq!(named.1, header("you:c"), "what the kubeconfig names is meant");
        assert!(proxy(Some("no address"), &"https://10.0.0.1".parse().unwrap(), &variables).is_err());
    }
}
