//! The machine's access to its engine and registries, determined as Docker's own command line does.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::environment::config::engine_choice::{EngineChoice, Kubernetes};

const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// Maximum bytes of a file of Docker's that is read.
const LARGEST_FILE: u64 = 1024 * 1024;

/// The settings of the engine in the process's environment; empty for the defaults.
#[derive(Debug, Clone, Default)]
pub struct EngineAccess {
    /// `DOCKER_HOST`: a unix socket or a tcp address.
    pub host: Option<String>,
    /// `DOCKER_CONTEXT`: the context to use instead of the current one.
    pub context: Option<String>,
    /// Folder with `config.json` and the contexts: `DOCKER_CONFIG`, or `.docker` in the home.
    pub config_folder: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`, which has the socket of a rootless engine.
    pub runtime_folder: Option<PathBuf>,
    /// The file that says how a cluster is reached: `KUBECONFIG`, or `.kube/config` in the home.
    pub kubeconfig: Option<PathBuf>,
    /// The cluster that runs the containers instead, if the configuration chooses one.
    pub cluster: Option<Kubernetes>,
}

/// A context, as `docker context create` writes it.
#[derive(Deserialize)]
struct Context {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Endpoints")]
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Option<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(rename = "Host")]
    host: String,
}

/// The part of `config.json` that names the current context.
#[derive(Default, Deserialize)]
struct Current {
    #[serde(rename = "currentContext")]
    context: Option<String>,
}

impl EngineAccess {
    /// Returns the settings in the environment variables; `get` looks one up.
    pub fn from_variables(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let in_home = || get("HOME").map(|home| Path::new(&home).join(".docker"));
        Self {
            host: get("DOCKER_HOST"),
            context: get("DOCKER_CONTEXT"),
            config_folder: get("DOCKER_CONFIG").map(PathBuf::from).or_else(in_home),
            runtime_folder: get("XDG_RUNTIME_DIR").map(PathBuf::from),
            kubeconfig: get("KUBECONFIG")
                .map(PathBuf::from)
                .or_else(|| get("HOME").map(|home| Path::new(&home).join(".kube/config"))),
            cluster: None,
        }
    }

    /// Returns the access to the engine that the configuration chooses.
    #[must_use]
    pub fn to(mut self, choice: &EngineChoice) -> Self {
        self.cluster = choice.cluster().cloned();
        self
    }

    /// Returns the engine's address: `DOCKER_HOST`, else that of the context, else the usual
    /// socket, or where there is none that of a rootless engine.
    pub(super) fn address(&self) -> String {
        let host = self.host.as_deref().map(|host| host.trim().trim_end_matches('/'));
        if let Some(host) = host.filter(|host| !host.is_empty()) {
            return host.to_owned();
        }
        if let Some(host) = self.host_of_context() {
            return host;
        }
        let rootless = self.runtime_folder.as_deref().map(|folder| folder.join("docker.sock"));
        match rootless.filter(|socket| !Path::new(DEFAULT_SOCKET).exists() && socket.exists()) {
            Some(socket) => format!("unix://{}", socket.display()),
            None => format!("unix://{DEFAULT_SOCKET}"),
        }
    }

    /// Returns the address of the engine in a context. Contexts lie in folders named by a hash, and
    /// their name is in the file.
    fn host_of_context(&self) -> Option<String> {
        let folder = self.config_folder.as_deref()?;
        let current = || {
            let text = read_bounded(&folder.join("config.json")).ok()?;
            serde_json::from_slice::<Current>(&text).unwrap_or_default().context
        };
        let name = self.context.clone().or_else(current)?;
        let contexts = std::fs::read_dir(folder.join("contexts/meta")).ok()?;
        contexts.flatten().find_map(|entry| {
            let text = read_bounded(&entry.path().join("meta.json")).ok()?;
            let context: Context = serde_json::from_slice(&text).ok()?;
            let endpoint = context.endpoints.docker.filter(|_| context.name == name)?;
            Some(endpoint.host)
        })
    }
}

/// Reads a file of Docker's, unless it is too large.
pub(super) fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(LARGEST_FILE).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_that_of_dockers_own_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let meta = folder.path().join("contexts/meta/0a");
        std::fs::create_dir_all(&meta).unwrap();
        let context = r#"{"Name": "rootless", "Metadata": {}, "Endpoints": {"docker": {"Host": "unix:///run/user/7/docker.sock"}}}"#;
        std::fs::write(meta.join("meta.json"), context).unwrap();
        let mut access = EngineAccess {
            config_folder: Some(folder.path().to_owned()),
            ..EngineAccess::default()
        };
        assert_eq!(access.address(), "unix:///var/run/docker.sock");
        access.context = Some("rootless".to_owned());
        assert_eq!(access.address(), "unix:///run/user/7/docker.sock");
        access.context = None;
        std::fs::write(folder.path().join("config.json"), r#"{"currentContext": "rootless"}"#).unwrap();
        assert_eq!(access.address(), "unix:///run/user/7/docker.sock");
        access.host = Some("tcp://127.0.0.1:2375/".to_owned());
        assert_eq!(access.address(), "tcp://127.0.0.1:2375");
    }

    #[test]
    fn the_environment_names_dockers_folder() {
        let variables = [
            ("HOME", "/home/ann"),
            ("DOCKER_HOST", " "),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
        ];
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let access = EngineAccess::from_variables(&get);
        assert_eq!(access.config_folder.as_deref(), Some(Path::new("/home/ann/.docker")));
        assert_eq!(access.host, None);
        assert_eq!(access.runtime_folder.as_deref(), Some(Path::new("/run/user/7")));
    }
}
