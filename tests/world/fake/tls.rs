//! TLS in front of a fake: decrypts what clients send and passes it on, byte for byte.
//!
//! The certificates are those of companies and of home servers: issued by an authority of their
//! own, or one that signs itself.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::BasicConstraints;
use rcgen::CertificateParams;
use rcgen::CertifiedIssuer;
use rcgen::DnType;
use rcgen::IsCa;
use rcgen::KeyPair;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

/// The certificate of a server, and what its clients have to trust.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    trusted: String,
    /// The address of this machine that servers with it listen on.
    address: String,
}

/// A listener that speaks TLS. Ends when dropped.
pub struct Front {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Tls {
    /// A server on this machine, whose certificate a private authority issued.
    pub fn by_an_authority() -> Self {
        Self::by_an_authority_for(&server("127.0.0.1"))
    }

    /// A server at this address, whose certificate a private authority issued.
    pub fn by_an_authority_at(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            ..Self::by_an_authority_for(&server(address))
        }
    }

    /// One that a private authority issued to a server with another name.
    pub fn for_another_name() -> Self {
        Self::by_an_authority_for(&server("gitlab.example.com"))
    }

    /// One that a private authority issued long ago.
    pub fn expired() -> Self {
        let mut params = server("127.0.0.1");
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        Self::by_an_authority_for(&params)
    }

    fn by_an_authority_for(server: &CertificateParams) -> Self {
        let mut authority = CertificateParams::default();
        // Two of the same name are taken for one another where both are trusted.
        let name = format!("Acme authority {}", uuid::Uuid::now_v7());
        authority.distinguished_name.push(DnType::CommonName, name);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let authority = CertifiedIssuer::self_signed(authority, key).expect("proper parameters");
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = server.signed_by(&key, &authority).expect("proper parameters");
        Self::new(certificate.der().clone(), &key, authority.pem())
    }

    /// One certificate that is server and authority in one, as `openssl req -x509` makes it.
    pub fn self_signed() -> Self {
        let mut params = server("127.0.0.1");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params.self_signed(&key).expect("proper parameters");
        Self::new(certificate.der().clone(), &key, certificate.pem())
    }

    fn new(certificate: CertificateDer<'static>, key: &KeyPair, trusted: String) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a proper key");
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the key belongs to the certificate");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            trusted,
            address: "127.0.0.1".to_owned(),
        }
    }

    /// Returns the certificate that clients have to trust, in PEM.
    pub fn trusted(&self) -> &str {
        &self.trusted
    }
}

impl Front {
    /// Listens on a free port of the address that the certificate is used at, in front of the server
    /// at `behind`.
    pub fn start(tls: &Tls, behind: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind((&*tls.address, 0)).expect("the address has a free port");
        Self::start_on(listener, tls, behind)
    }

    /// Serves on a listener that is already bound.
    pub fn start_on(listener: std::net::TcpListener, tls: &Tls, behind: SocketAddr) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("tls").enable_all().build();
        let runtime = runtime.expect("a thread pool can be started");
        let address = listener.local_addr().expect("a bound listener");
        listener
            .set_nonblocking(true)
            .expect("a listener can be made non-blocking");
        let acceptor = tls.acceptor.clone();
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a bound listener");
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(acceptor.clone(), client, behind));
            }
        });
        Self {
            address,
            runtime: Some(runtime),
        }
    }

    /// Returns `https://127.0.0.1:4711`.
    pub fn origin(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn pass_on(acceptor: TlsAcceptor, client: TcpStream, behind: SocketAddr) {
    // A client that trusts nobody here hangs up.
    let Ok(mut client) = acceptor.accept(client).await else {
        return;
    };
    if let Ok(mut server) = TcpStream::connect(behind).await {
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

fn server(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).expect("a proper name")
}
