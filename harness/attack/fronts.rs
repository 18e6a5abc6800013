//! A way out to a host that is allowed, and inside of it the name of one that is not: what a
//! network with many customers behind the same addresses would take for them.
//!
//! The allowed host keeps every byte that it gets. No byte of a connection to anybody else may be
//! among them.

use crate::attempt::{Attempt, End};
use crate::class::Class;

/// A placeholder for name and port of the host that keeps what it gets.
pub const FRONT: &str = "@FRONT@";
/// A placeholder for the port of that host.
pub const FRONT_PORT: &str = "@FRONTPORT@";

/// The word that is in everything that must not arrive.
pub const MARKED: &str = "evil";

/// Makes each `ClientHello` by hand, and sends bytes through a tunnel to the allowed host. Every
/// hello has the mark in it, whatever name it asks for.
const HANDS: &str = r"
import socket, time
def u8(b): return bytes([len(b)]) + b
def u16(b): return len(b).to_bytes(2, 'big') + b
def entry(name): return b'\0' + u16(name)
def sni(*names): return b'\0\0' + u16(u16(b''.join(entry(n) for n in names)))
def hello(*extensions):
    body = b'\3\3' + b'evil' * 8 + u8(b'') + u16(b'\x13\1') + u8(b'\0') + (u16(b''.join(extensions)) if extensions else b'')
    return b'\1' + len(body).to_bytes(3, 'big') + body
def record(part, kind=22): return bytes([kind, 3, 1]) + u16(part)
def send(*parts, pause=0, early=b''):
    s = socket.create_connection(('127.0.0.1', 3128))
    s.settimeout(3)
    s.sendall(b'CONNECT @FRONT@ HTTP/1.1\r\n\r\n' + early)
    if not early: assert b' 200 ' in s.recv(4096)
    try:
        for part in parts:
            s.sendall(part)
            time.sleep(pause)
        while said := s.recv(4096): print(said)
    except OSError as error: print(error)
";

pub fn all() -> Vec<Attempt> {
    let honest = "curl -sS -m 20 --noproxy '' http://@FRONT@/ | grep -q heard";
    let out = |name, commands: &str| {
        Attempt::new(Class::Front, name, End::Delivered)
            // There is a way to the host, so what did not arrive was refused by rule.
            .succeeds(honest)
            .runs(commands)
            .works()
    };
    let by_hand = |name, lines: &str| out(name, &format!("python3 - <<'PROGRAM'{HANDS}{lines}\nPROGRAM"));
    vec![
        out(
            "other-name",
            "curl -sSk -m 5 --noproxy '' --connect-to evil.example:@FRONTPORT@:@FRONT@ https://evil.example:@FRONTPORT@/",
        )
        .short(),
        by_hand("one-record", "send(record(hello(sni(b'evil.example'))))").short(),
        by_hand(
            "byte-by-byte",
            "send(*[bytes([b]) for b in record(hello(sni(b'evil.example')))], pause=0.002)",
        ),
        by_hand(
            "many-records",
            "h = hello(sni(b'evil.example'))\nsend(b''.join(record(h[i:i + 7]) for i in range(0, len(h), 7)))",
        )
        .short(),
        by_hand("alert-in-front", "send(record(b'\\1\\0', 21) + record(hello(sni(b'evil.example'))))"),
        by_hand("empty-record-in-front", "send(record(b'') + record(hello(sni(b'evil.example'))))"),
        by_hand(
            "two-extensions",
            "send(record(hello(sni(b'localhost'), sni(b'evil.example'))))",
        ),
        by_hand("two-names", "send(record(hello(sni(b'localhost', b'evil.example'))))"),
        by_hand("two-hellos", "send(record(hello(sni(b'localhost')) + hello(sni(b'evil.example'))))"),
        by_hand("large-letters", "send(record(hello(sni(b'EVIL.EXAMPLE'))))"),
        by_hand("dot-at-the-end", "send(record(hello(sni(b'evil.example.'))))"),
        by_hand("no-name", "send(record(hello()))").short(),
        by_hand("zero-in-the-name", "send(record(hello(sni(b'localhost\\0.evil.example'))))"),
        by_hand("address-as-name", "send(record(hello(sni(b'127.0.0.2'))))"),
        by_hand("old-hello", "send(b'\\x80\\x2e\\1\\3\\1\\0\\3\\0\\0\\0\\x20\\0\\0\\5' + b'evil' * 8)"),
        by_hand("before-the-answer", "send(early=record(hello(sni(b'evil.example'))))"),
        by_hand("endless", "send(b'\\x16\\3\\1\\x40\\0\\1\\0\\x3f\\xfc' + b'evil' * 8000)"),
        by_hand(
            "plain-host",
            "send(b'GET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n')",
        )
        .short(),
        by_hand(
            "plain-pipelined",
            "send(b'GET / HTTP/1.1\\r\\nHost: @FRONT@\\r\\n\\r\\nGET /evil HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n')",
        ),
        by_hand(
            "plain-oddly-spelled",
            "send(b'\\r\\n\\r\\nget / HTTP/1.1\\nhost:evil.example\\n\\n')",
        ),
    ]
}
