//! A connection pooler between, the real one.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::{sentence, server};
use crate::store::config::Server;
use crate::store::postgres::{examine, open};

/// `PgBouncer` before a server, on a port of this machine.
struct Pooler {
    _folder: tempfile::TempDir,
    _child: Child,
    port: u16,
}

impl Pooler {
    async fn start(server: &str, mode: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // It refuses to work as root.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        // None that the kernel gives to somebody else by itself.
        let port = std::iter::repeat_with(|| fastrand::u16(20_000..30_000))
            .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .unwrap();
        let socket = server.split("host=").nth(1).unwrap().split('&').next().unwrap();
        let file = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\npostgres = host={socket} user=agent\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\nignore_startup_parameters = extra_float_digits,options\n"
        );
        std::fs::write(&file, text).unwrap();
        let mut command = if rustix::process::geteuid().is_root() {
            // Takes this process's place, so that it is the pooler that is killed at the end.
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]);
            command.arg("/usr/sbin/pgbouncer");
            command
        } else {
            Command::new("/usr/sbin/pgbouncer")
        };
        let mut child = command
            .arg(&file)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "the pooler ended: {ended:?}");
            sleep(Duration::from_millis(20)).await;
        }
        Self {
            _folder: folder,
            _child: child,
            port,
        }
    }

    fn address(&self) -> String {
        format!("postgres://agent@127.0.0.1:{}/postgres", self.port)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_hands_sessions_around_is_refused_and_one_that_does_not_is_as_good_as_the_server() {
    let server = server::start().await;
    let pooler = Pooler::start(&server.address, "transaction").await;
    let said = sentence(&pooler.address()).await;
    assert!(said.contains("pool_mode"), "{said}");
    let examined = examine(&Server::new(&pooler.address(), None))
        .await
        .unwrap_err()
        .to_string();
    assert!(examined.contains("connect to the server itself"), "{examined}");

    let pooler = Pooler::start(&server.address, "session").await;
    examine(&Server::new(&pooler.address(), None)).await.unwrap();
    open(&Server::new(&pooler.address(), None), Duration::ZERO)
        .await
        .unwrap();
}
