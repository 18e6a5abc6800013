//! Ports for programs that are told where to listen.

use std::net::TcpListener;

/// Returns a free port that the kernel gives to nobody by itself. One of those that it does give
/// (`127.0.0.1:0`) could be another test's before the program listens on it.
pub fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(20_000..30_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
