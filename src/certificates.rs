//! Whom TLS connections trust, in HTTP clients, git and containers alike: the certificates of this
//! machine (`SSL_CERT_FILE` and `SSL_CERT_DIR` name others in their place), and those of files that
//! the configuration adds.
//!
//! A trusted certificate that is not only an authority's but the server's own, as one `openssl`
//! command makes it, is accepted for the names that stand in it. rustls alone refuses it
//! (`CaUsedAsEndEntity`), while git and browsers take it.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use reqwest::ClientBuilder;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage, OtherError, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256};

/// The default trust, shared by all connections without certificates of their own: nothing else at
/// a start takes as long as reading the machine's.
static OF_THE_MACHINE: LazyLock<Trust> = LazyLock::new(|| Trust::new(Vec::new(), None));

/// The complaint about a server that answers in plain text.
const WITHOUT_TLS: &str =
    "the server answers without TLS; write http:// in its address, or use the port on which it speaks TLS";

/// Characters in a line of PEM.
const PEM_LINE: usize = 64;

/// The certificates that the connections to one server trust; by default those that this machine
/// trusts. Cheap to clone; clones share what was read.
#[derive(Debug, Clone)]
pub struct Trust(Arc<Trusted>);

#[derive(Debug)]
struct Trusted {
    added: Vec<CertificateDer<'static>>,
    folder: Option<PathBuf>,
    tls: OnceLock<Option<ClientConfig>>,
    bundle: OnceLock<PathBuf>,
    fingerprint: OnceLock<String>,
}

/// Two are the same if they name the same certificates.
impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        (&self.0.added, &self.0.folder) == (&other.0.added, &other.0.folder)
    }
}

impl Default for Trust {
    fn default() -> Self {
        OF_THE_MACHINE.clone()
    }
}

impl Trust {
    /// Returns trust in the machine's certificates and in `added`. With a `folder`, git gets a file
    /// in it that contains all of them; without one, git reads the machine's by itself.
    pub fn new(added: Vec<CertificateDer<'static>>, folder: Option<PathBuf>) -> Self {
        Self(Arc::new(Trusted {
            added,
            folder,
            tls: OnceLock::new(),
            bundle: OnceLock::new(),
            fingerprint: OnceLock::new(),
        }))
    }

    /// Returns the builder of a client that trusts these certificates. Needs a default provider of
    /// rustls.
    pub fn client(&self) -> ClientBuilder {
        let builder = reqwest::Client::builder();
        match self.0.tls.get_or_init(|| self.tls()) {
            Some(config) => builder.tls_backend_preconfigured(config.clone()),
            // The client then tries it itself, and its error says why it failed.
            None => builder,
        }
    }

    /// Returns the same for a client that speaks HTTP/1.1 alone, from which a connection can be
    /// taken over for another protocol.
    pub fn client_to_take_over(&self) -> ClientBuilder {
        let builder = reqwest::Client::builder().http1_only();
        match self.0.tls.get_or_init(|| self.tls()) {
            Some(config) => {
                let mut config = config.clone();
                config.alpn_protocols = vec![b"http/1.1".to_vec()];
                builder.tls_backend_preconfigured(config)
            }
            None => builder,
        }
    }

    fn tls(&self) -> Option<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.certificates());
        let chains = WebPkiServerVerifier::builder(Arc::new(roots))
            .build()
            .inspect_err(|error| tracing::warn!("the certificates of this machine cannot be used: {error}"))
            .ok()?;
        let verifier = Verifier {
            chains,
            trust: self.0.added.clone(),
            trusted: OnceLock::new(),
        };
        let mut config = ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Some(config)
    }

    fn certificates(&self) -> Vec<CertificateDer<'static>> {
        all_with(&self.0.added)
    }

    /// Returns true if the configuration or a variable names certificates, so that programs
    /// elsewhere do not find them by themselves.
    pub fn is_named(&self) -> bool {
        self.0.folder.is_some()
    }

    /// Identifies the certificates, those of the machine among them, so that nothing is taken that
    /// was made with others; `None` if none are named.
    pub fn fingerprint(&self) -> Option<&str> {
        let digest = || format!("{:x}", Sha256::digest(pem(&self.with_those_of(&[]))));
        let short = || digest().chars().take(16).collect();
        self.is_named().then(|| self.0.fingerprint.get_or_init(short).as_str())
    }

    /// Returns all certificates and those in these files of PEM, each once and in the same order
    /// every time. What is no certificate there is left out, a key above all.
    pub fn with_those_of(&self, files: &[String]) -> Vec<CertificateDer<'static>> {
        let more = files
            .iter()
            .flat_map(|text| CertificateDer::pem_slice_iter(text.as_bytes()));
        let all: BTreeSet<Vec<u8>> = more
            .flatten()
            .chain(self.certificates())
            .map(|certificate| certificate.to_vec())
            .collect();
        all.into_iter().map(CertificateDer::from).collect()
    }

    /// Returns the file with all certificates that git is to trust in place of the machine's;
    /// `None` if git finds the right ones by itself. Written once in the life of the process.
    pub fn bundle(&self) -> io::Result<Option<&Path>> {
        let Some(folder) = &self.0.folder else { return Ok(None) };
        if self.0.bundle.get().is_none_or(|file| !file.is_file()) {
            let text = pem(&self.certificates());
            let digest = format!("{:x}", Sha256::digest(&text));
            // git runs in another folder, from which a relative path leads elsewhere.
            let folder = std::path::absolute(folder)?;
            let file = folder.join(format!("{digest:.16}.pem"));
            std::fs::create_dir_all(&folder)?;
            // Renamed into place: a git of another process may be reading it.
            let unfinished = folder.join(format!(".{}", std::process::id()));
            std::fs::write(&unfinished, text)?;
            std::fs::rename(&unfinished, &file)?;
            let _ = self.0.bundle.set(file);
        }
        Ok(self.0.bundle.get().map(PathBuf::as_path))
    }
}

/// Reads the certificates of a PEM file; the error is the rest of a sentence that begins with the
/// file's name.
pub fn read(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = std::fs::read(file).map_err(|error| format!("cannot be read: {error}"))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| format!("is not PEM: {error}"))?;
    if certificates.is_empty() {
        return Err("holds no certificate; write it in PEM, from `-----BEGIN CERTIFICATE-----` on".to_owned());
    }
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        let added = roots.add(certificate.clone());
        added.map_err(|error| format!("holds a certificate that cannot be used: {error}"))?;
    }
    Ok(certificates)
}

/// Returns what is wrong with the server's certificate, or that it answers without TLS, and after a
/// semicolon how to fix it, if that is the reason why a connection failed.
pub fn complaint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref() {
            Some(rustls::Error::InvalidCertificate(fault)) => return Some(sentence(fault)),
            Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                return Some(WITHOUT_TLS.to_owned());
            }
            Some(_) | None => {}
        }
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            // An I/O error names the causes of what is inside it, and leaves out that itself.
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    None
}

fn sentence(fault: &CertificateError) -> String {
    match fault {
        CertificateError::UnknownIssuer => {
            "the server's certificate comes from an authority that is not trusted here; name that authority's certificate in \
             ca_file"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } if presented.is_empty() => {
            let is_number = matches!(expected, ServerName::IpAddress(_));
            let kind = if is_number { "IP" } else { "DNS" };
            format!(
                "the server's certificate is for no address (it has no subjectAltName); {}",
                how_to_make(kind, &expected.to_str())
            )
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            // Each is written as `DnsName("host")`.
            let names = presented.iter().map(|name| {
                let name = name.split_once('(').map_or(name.as_str(), |(_, name)| name);
                name.trim_matches(['"', ')'])
            });
            let names = names.collect::<Vec<_>>().join(", ");
            format!(
                "the server's certificate is for {names}, and not for the configured address; use an address that stands in \
                 it, or give the server a certificate for this one"
            )
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            let day = day(*not_after);
            format!("the server's certificate ended on {day}; renew it, or set this machine's clock")
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            let day = day(*not_before);
            format!("the server's certificate begins on {day}; set this machine's clock, or wait")
        }
        fault if is_in(fault, &webpki::Error::UnsupportedCertVersion) => format!(
            "the server's certificate is of an old version, which no TLS of today takes; {}",
            how_to_make("DNS", "HOST")
        ),
        fault if is_of_an_authority(fault) => {
            "the server's certificate signs itself and is not trusted here; name this very certificate in ca_file".to_owned()
        }
        _ => format!("the server's certificate cannot be used ({fault}); give the server another"),
    }
}

/// Returns how to make a certificate that is accepted for an address.
fn how_to_make(kind: &str, host: &str) -> String {
    format!(
        "make one of version 3 with the address in it: `openssl req -x509 -newkey rsa:3072 -nodes -days 365 -keyout key.pem \
         -out certificate.pem -subj /CN={host} -addext subjectAltName={kind}:{host}`, and name it in ca_file"
    )
}

fn day(moment: UnixTime) -> String {
    let moment = i64::try_from(moment.as_secs())
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    moment.map_or_else(|| "another day".to_owned(), |moment| moment.date_naive().to_string())
}

fn is_of_an_authority(fault: &CertificateError) -> bool {
    is_in(fault, &webpki::Error::CaUsedAsEndEntity)
}

/// Tells whether a fault of a certificate, for which rustls has no name, is this one.
fn is_in(fault: &CertificateError, wanted: &webpki::Error) -> bool {
    matches!(fault, CertificateError::Other(OtherError(cause)) if cause.downcast_ref::<webpki::Error>() == Some(wanted))
}

/// Judges chains as rustls does, and besides accepts a trusted certificate as the server's own.
#[derive(Debug)]
struct Verifier {
    chains: Arc<WebPkiServerVerifier>,
    trust: Vec<CertificateDer<'static>>,
    /// The trusted certificates, parsed when the first server shows an authority's certificate as
    /// its own. Few do, and all others need only names and keys.
    trusted: OnceLock<Vec<CertificateDer<'static>>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let judged = self
            .chains
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match judged {
            // This is found out after the time of validity was checked and before anything else.
            Err(rustls::Error::InvalidCertificate(fault))
                if is_of_an_authority(&fault) && self.trusted().iter().any(|trusted| trusted == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

impl Verifier {
    fn trusted(&self) -> &[CertificateDer<'static>] {
        self.trusted.get_or_init(|| all_with(&self.trust))
    }
}

/// Returns the machine's certificates and `added`.
fn all_with(added: &[CertificateDer<'static>]) -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!("certificates of this machine cannot be read: {error}");
    }
    let mut certificates = found.certs;
    certificates.extend_from_slice(added);
    certificates
}

/// Writes certificates in PEM.
pub fn pem(certificates: &[CertificateDer<'_>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        let encoded = STANDARD.encode(certificate);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in encoded.as_bytes().chunks(PEM_LINE) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is said of a fault that arrives as the HTTP client hands it on.
    fn told(fault: rustls::Error) -> String {
        complaint(&io::Error::new(io::ErrorKind::InvalidData, fault)).unwrap()
    }

    #[test]
    fn a_certificate_as_old_instructions_make_it_is_told_with_the_command_that_makes_a_good_one() {
        let of_certificate = |fault| told(rustls::Error::InvalidCertificate(fault));
        let nameless = |host: &'static str| CertificateError::NotValidForNameContext {
            expected: ServerName::try_from(host).unwrap(),
            presented: Vec::new(),
        };
        insta::assert_snapshot!(of_certificate(nameless("lab.example")), @"the server's certificate is for no address (it has no subjectAltName); make one of version 3 with the address in it: `openssl req -x509 -newkey rsa:3072 -nodes -days 365 -keyout key.pem -out certificate.pem -subj /CN=lab.example -addext subjectAltName=DNS:lab.example`, and name it in ca_file");
        assert!(of_certificate(nameless("10.0.0.1")).contains("subjectAltName=IP:10.0.0.1`"));
        let old = CertificateError::Other(OtherError(Arc::new(webpki::Error::UnsupportedCertVersion)));
        insta::assert_snapshot!(of_certificate(old), @"the server's certificate is of an old version, which no TLS of today takes; make one of version 3 with the address in it: `openssl req -x509 -newkey rsa:3072 -nodes -days 365 -keyout key.pem -out certificate.pem -subj /CN=HOST -addext subjectAltName=DNS:HOST`, and name it in ca_file");
        let signs_itself = CertificateError::Other(OtherError(Arc::new(webpki::Error::CaUsedAsEndEntity)));
        assert!(of_certificate(signs_itself).contains("signs itself"));
    }

    #[test]
    fn a_server_without_tls_is_told_as_that() {
        insta::assert_snapshot!(told(InvalidMessage::InvalidContentType.into()), @"the server answers without TLS; write http:// in its address, or use the port on which it speaks TLS");
        let other = io::Error::other(rustls::Error::InvalidMessage(InvalidMessage::InvalidCcs));
        assert_eq!(complaint(&other), None);
    }
}
