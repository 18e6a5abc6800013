//! An HTTP server on a thread pool of its own, whose connections can be cut in the middle.
//!
//! It does not share the caller's runtime: a test may block its own thread (waiting for a process,
//! say) and the server still answers. Dropping it ends it, with every connection and child process.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::task::Context;
use std::task::Poll;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use axum::serve::Listener;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::ReadBuf;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// A running server. Ends when dropped.
pub struct Server {
    runtime: Option<Runtime>,
}

/// The server's hold on one connection.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    is_cut: Arc<AtomicBool>,
}

impl Server {
    /// Serves on a listener that is already bound.
    pub fn start(listener: std::net::TcpListener, router: Router) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).thread_name("fake").enable_all().build();
        let runtime = runtime.expect("a thread pool can be started");
        listener
            .set_nonblocking(true)
            .expect("a listener can be made non-blocking");
        runtime.spawn(async move {
            let listener = Cuttable(TcpListener::from_std(listener).expect("a bound listener"));
            let service = router.into_make_service_with_connect_info::<Connection>();
            let _ = axum::serve(listener, service).await;
        });
        Self { runtime: Some(runtime) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Connection {
    /// Cuts the connection: nothing more is written to it, and the client sees it break off.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    fn check(&self) -> io::Result<()> {
        if self.is_cut.load(Ordering::SeqCst) {
            return Err(io::Error::from(io::ErrorKind::ConnectionReset));
        }
        Ok(())
    }
}

/// Returns a free port of the loopback interface, bound.
pub async fn loopback() -> std::net::TcpListener {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await;
    let listener = listener.expect("the loopback interface has a free port");
    listener.into_std().expect("a bound listener")
}

struct Cuttable(TcpListener);

struct Stream {
    socket: TcpStream,
    connection: Connection,
}

impl Listener for Cuttable {
    type Io = Stream;
    type Addr = Connection;

    async fn accept(&mut self) -> (Stream, Connection) {
        let (socket, _) = Listener::accept(&mut self.0).await;
        let connection = Connection::default();
        (
            Stream {
                socket,
                connection: connection.clone(),
            },
            connection,
        )
    }

    fn local_addr(&self) -> io::Result<Connection> {
        Ok(Connection::default())
    }
}

impl Connected<IncomingStream<'_, Cuttable>> for Connection {
    fn connect_info(stream: IncomingStream<'_, Cuttable>) -> Self {
        stream.remote_addr().clone()
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.connection.check()?;
        Pin::new(&mut self.socket).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.check()?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
