//! Reads the certificates that `ca_file` names: those at the top level for all connections and for
//! programs in containers, those of a section for its own.

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;

use super::fault::Faults;
use super::{Config, Variables};
use crate::certificates::{self, Trust};

/// Variables that name other certificates in place of the machine's.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Sets the certificates that each connection trusts. Relative paths start at `folder`.
pub(super) fn read(config: &mut Config, folder: &Path, environment: Variables<'_>, faults: &mut Faults) {
    let mut reader = Reader {
        folder,
        bundles: config.state_dir.join("certificates"),
        are_replaced: VARIABLES.iter().any(|name| environment(name).is_some()),
        common: Vec::new(),
        faults,
    };
    reader.common = reader.certificates("ca_file", config.ca_file.as_deref());
    for (key, host) in config.github.with_keys_mut("github") {
        host.trust = reader.trust(&format!("{key}.ca_file"), host.ca_file.as_deref());
    }
    for (key, host) in config.gitlab.with_keys_mut("gitlab") {
        host.trust = reader.trust(&format!("{key}.ca_file"), host.ca_file.as_deref());
    }
    config.command_executor.trust = reader.trust("ca_file", None);
    config.traces.trust = reader.trust("traces.ca_file", None);
    config.chat.slack.trust = reader.trust("ca_file", None);
    config.chat.line.trust = reader.trust("ca_file", None);
    let llm = &mut config.llm;
    let sections = [
        ("ollama".to_owned(), &mut llm.ollama.options),
        ("lmstudio".to_owned(), &mut llm.lmstudio.options),
        ("openai".to_owned(), &mut llm.openai.options),
        ("anthropic".to_owned(), &mut llm.anthropic.options),
    ];
    let named = llm.models.iter_mut();
    let named = named.map(|(name, model)| (format!("models.{name}"), &mut model.options));
    for (key, options) in sections.into_iter().chain(named) {
        options.trust = reader.trust(&format!("llm.{key}.ca_file"), options.ca_file.as_deref());
    }
}

struct Reader<'a> {
    folder: &'a Path,
    bundles: PathBuf,
    /// Whether variables name other certificates in place of the machine's.
    are_replaced: bool,
    common: Vec<CertificateDer<'static>>,
    faults: &'a mut Faults,
}

impl Reader<'_> {
    fn trust(&mut self, key: &str, own: Option<&Path>) -> Trust {
        let mut added = self.common.clone();
        added.extend(self.certificates(key, own));
        if added.is_empty() && !self.are_replaced {
            return Trust::default();
        }
        Trust::new(added, Some(self.bundles.clone()))
    }

    fn certificates(&mut self, key: &str, file: Option<&Path>) -> Vec<CertificateDer<'static>> {
        let Some(file) = file.map(|file| self.folder.join(file)) else {
            return Vec::new();
        };
        certificates::read(&file).unwrap_or_else(|reason| {
            self.faults.at(key, format!("the file {} {reason}", file.display()));
            Vec::new()
        })
    }
}
