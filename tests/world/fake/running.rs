//! A running fake forge and its parts. All of them end when it is dropped.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use tempfile::TempDir;

use crate::fake::forge::Forge;
use crate::fake::server::Server;
use crate::fake::server::loopback;
use crate::fake::tls::Front;
use crate::fake::tls::Tls;

/// A forge that answers.
pub struct Running<S> {
    pub forge: Arc<Forge<S>>,
    _server: Server,
    _front: Option<Front>,
    _folder: TempDir,
}

/// The beginning of one kind of forge: its state in a folder of its own, and its doors.
pub struct Kind<S> {
    pub state: fn(&Path) -> S,
    pub router: fn(&Arc<Forge<S>>) -> Router,
}

impl<S> Running<S> {
    /// Starts on a listener that is already bound.
    pub fn start_on(listener: TcpListener, kind: &Kind<S>) -> Self {
        let address = listener.local_addr().expect("a bound listener has an address");
        Self::start(format!("http://{address}"), listener, None, kind)
    }

    /// Starts behind TLS, which all its addresses then show.
    pub async fn start_behind(tls: &Tls, kind: &Kind<S>) -> Self {
        let listener = loopback().await;
        let address = listener.local_addr().expect("a bound listener has an address");
        let front = Front::start(tls, address);
        Self::start(front.origin(), listener, Some(front), kind)
    }

    fn start(origin: String, listener: TcpListener, front: Option<Front>, kind: &Kind<S>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let state = (kind.state)(folder.path());
        let forge = Arc::new(Forge::new(origin, folder.path().to_owned(), state));
        let server = Server::start(listener, (kind.router)(&forge));
        Self {
            forge,
            _server: server,
            _front: front,
            _folder: folder,
        }
    }
}
