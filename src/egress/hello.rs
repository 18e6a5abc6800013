//! Parses the first bytes of a tunnel: a TLS `ClientHello` and the name it asks for, or a request
//! in plain HTTP.
//!
//! Parses strictly. Input that two parsers might take differently (a name given twice, a message
//! that does not fill its record, a record of another kind in front) is broken and not guessed at,
//! because the server at the other end would be the second parser.

use super::Host;

/// Maximum number of bytes to read before the beginning of a tunnel must be understood.
pub const LONGEST: usize = 16 * 1024;

/// Maximum length of one TLS record (RFC 8446, 5.1).
const LONGEST_RECORD: usize = 1 << 14;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// Hides the name that is really asked for behind an outer one that the client chooses
/// (draft-ietf-tls-esni), so the lists could not be applied.
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Connection preface of HTTP/2 without TLS, whose requests are binary.
const HTTP_2: &[u8] = b"PRI * HTTP/2";

/// The protocol that a tunnel begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// More bytes are needed to tell.
    Incomplete,
    /// A whole `ClientHello`, with the name that it asks for.
    Tls {
        name: Option<Host>,
    },
    /// The bytes look like TLS, but are not a readable `ClientHello`.
    BrokenTls,
    /// A request in plain HTTP/1.
    Http,
    Other,
}

/// A `ClientHello` that cannot be read.
struct Broken;

/// Classifies the bytes that were sent so far.
pub fn read(bytes: &[u8]) -> Opening {
    let is_tls = match bytes {
        // SSLv2's form of a ClientHello, which some servers still take.
        [0x80..=0xff, _, 1, ..] => return Opening::BrokenTls,
        [] | [20..=24 | 0x80..=0xff] | [0x80..=0xff, _] => return Opening::Incomplete,
        [20..=24, 3, ..] => true,
        _ => false,
    };
    let opening = if is_tls { tls(bytes) } else { Ok(plain(bytes)) };
    match opening {
        Ok(Opening::Incomplete) if bytes.len() >= LONGEST && is_tls => Opening::BrokenTls,
        Ok(Opening::Incomplete) if bytes.len() >= LONGEST => Opening::Other,
        Ok(opening) => opening,
        Err(Broken) => Opening::BrokenTls,
    }
}

/// Recognizes HTTP/1 by its first line.
fn plain(bytes: &[u8]) -> Opening {
    // Servers skip empty lines in front of a request.
    let begins = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    let Some(rest) = begins.map(|begins| &bytes[begins..]) else {
        return Opening::Incomplete;
    };
    if rest.starts_with(HTTP_2) {
        return Opening::Other;
    }
    let is_text = |byte: &&u8| matches!(byte, b'\t' | b'\r') || !byte.is_ascii_control();
    let line: Vec<u8> = rest.iter().take_while(is_text).map(u8::to_ascii_uppercase).collect();
    match rest.get(line.len()) {
        None => Opening::Incomplete,
        Some(b'\n') if line.windows(5).any(|word| word == b"HTTP/") => Opening::Http,
        Some(_) => Opening::Other,
    }
}

/// Reassembles the handshake message from its records, however it is fragmented.
fn tls(bytes: &[u8]) -> Result<Opening, Broken> {
    let mut message: Vec<u8> = Vec::new();
    let mut records = Reader(bytes);
    loop {
        if let [kind, a, b, c, body @ ..] = message.as_slice() {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if *kind != CLIENT_HELLO || length > LONGEST || body.len() > length {
                return Err(Broken);
            }
            if body.len() == length {
                return client_hello(body).map(|name| Opening::Tls { name });
            }
        }
        let header = match records.0 {
            [HANDSHAKE, 3, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
            [] | [HANDSHAKE] | [HANDSHAKE, 3, ..] => return Ok(Opening::Incomplete),
            _ => return Err(Broken),
        };
        if header == 0 || header > LONGEST_RECORD {
            return Err(Broken);
        }
        if records.0.len() < 5 + header {
            return Ok(Opening::Incomplete);
        }
        records.take(5)?;
        message.extend_from_slice(records.take(header)?);
    }
}

/// Returns the name that a `ClientHello` asks for (RFC 8446, 4.1.2 and RFC 6066, 3).
fn client_hello(body: &[u8]) -> Result<Option<Host>, Broken> {
    let mut hello = Reader(body);
    // Version and random bytes.
    hello.take(2 + 32)?;
    let _session = hello.short()?;
    let _ciphers = hello.long()?;
    let _compressions = hello.short()?;
    if hello.is_empty() {
        return Ok(None);
    }
    let mut extensions = Reader(hello.long()?);
    if !hello.is_empty() {
        return Err(Broken);
    }
    let mut found = None;
    while !extensions.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.long()?;
        if kind == ENCRYPTED_CLIENT_HELLO {
            return Err(Broken);
        }
        if kind == SERVER_NAME && found.replace(server_name(content)?).is_some() {
            return Err(Broken);
        }
    }
    Ok(found)
}

fn server_name(content: &[u8]) -> Result<Host, Broken> {
    let mut content = Reader(content);
    let mut names = Reader(content.long()?);
    if names.take(1)? != [HOST_NAME] {
        return Err(Broken);
    }
    let name = names.long()?;
    if !names.is_empty() || !content.is_empty() {
        return Err(Broken);
    }
    let name = std::str::from_utf8(name).map_err(|_| Broken)?;
    Host::parse(name).ok_or(Broken)
}

/// Takes bytes from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Broken)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u16, Broken> {
        match self.take(2)? {
            [high, low] => Ok(u16::from_be_bytes([*high, *low])),
            _ => Err(Broken),
        }
    }

    /// Takes a vector with a one-byte length prefix.
    fn short(&mut self) -> Result<&'a [u8], Broken> {
        let count = self.take(1)?.first().copied().unwrap_or(0);
        self.take(count.into())
    }

    /// Takes a vector with a two-byte length prefix.
    fn long(&mut self) -> Result<&'a [u8], Broken> {
        let count = self.number()?;
        self.take(count.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::pki_types::ServerName;

    use super::*;

    /// Returns what a real client sends first.
    fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut sent = Vec::new();
        client.write_tls(&mut sent).unwrap();
        sent
    }

    fn named(name: &str) -> Opening {
        Opening::Tls {
            name: Host::parse(name),
        }
    }

    /// Returns the same handshake message in records of `size` bytes.
    fn cut_up(hello: &[u8], size: usize) -> Vec<u8> {
        let record = |part: &[u8]| [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat();
        hello[5..].chunks(size).flat_map(record).collect()
    }

    /// Returns a `ClientHello` with these extensions that is otherwise usual.
    fn with_extensions(extensions: &[u8]) -> Vec<u8> {
        let long = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
        let body = [&[3, 3][..], &[7; 32], &[0], &[0, 2, 19, 1], &[1, 0], &long(extensions)].concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let message = [&[1], &length[1..], &body].concat();
        [&[22, 3, 1][..], &long(&message)].concat()
    }

    fn server_name(names: &[&str]) -> Vec<u8> {
        let long = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
        let list: Vec<u8> = names
            .iter()
            .flat_map(|name| [&[0][..], &long(name.as_bytes())].concat())
            .collect();
        [&[0, 0][..], &long(&long(&list))].concat()
    }

    #[test]
    fn the_name_of_a_real_hello_is_read_however_it_is_cut_up() {
        let whole = hello("registry.example.com");
        assert_eq!(read(&whole), named("registry.example.com"));
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), Opening::Incomplete, "after {end} bytes");
        }
        for size in [1, 7, 100] {
            assert_eq!(read(&cut_up(&whole, size)), named("registry.example.com"), "{size}");
        }
        assert_eq!(read(&hello("127.0.0.2")), Opening::Tls { name: None });
    }

    #[test]
    fn spellings_of_a_name_are_one_name() {
        for name in ["Registry.Example.COM", "registry.example.com."] {
            assert_eq!(
                read(&with_extensions(&server_name(&[name]))),
                named("registry.example.com")
            );
        }
        assert_eq!(read(&with_extensions(&[])), Opening::Tls { name: None });
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_broken() {
        let (good, evil) = (server_name(&["good.example"]), server_name(&["evil.example"]));
        let whole = with_extensions(&good);
        let alert = [21, 3, 1, 0, 2, 1, 0];
        let mut longer = whole.clone();
        longer[8] -= 1;
        for (what, bytes) in [
            ("two extensions", with_extensions(&[good.clone(), evil].concat())),
            (
                "two names",
                with_extensions(&server_name(&["good.example", "evil.example"])),
            ),
            ("no name", with_extensions(&server_name(&[]))),
            ("no host", with_extensions(&server_name(&["good example"]))),
            ("an alert in front", [&alert[..], &whole].concat()),
            ("an empty record in front", [&[22, 3, 1, 0, 0][..], &whole].concat()),
            (
                "a record of another kind between",
                [&cut_up(&whole, 20)[..25], &alert[..], &whole].concat(),
            ),
            ("a message that ends before its record", longer),
            ("SSLv2", vec![0x80, 0x2e, 1, 3, 1, 0, 0]),
            (
                "an encrypted hello",
                with_extensions(&[server_name(&["good.example"]), vec![0xfe, 0x0d, 0, 1, 0]].concat()),
            ),
        ] {
            assert_eq!(read(&bytes), Opening::BrokenTls, "{what}");
        }
        assert_eq!(read(&[22; 1]), Opening::Incomplete);
        let endless = [&[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc][..], &[0; LONGEST]].concat();
        assert_eq!(read(&endless[..LONGEST]), Opening::BrokenTls);
    }

    #[test]
    fn plain_http_is_known_by_its_first_line() {
        for request in [
            "GET / HTTP/1.1\r\n",
            "\r\nget\t/\thttp/1.0\n",
            "X-Y /a b HTTP/1.1\r\nHost: x\r\n",
        ] {
            assert_eq!(read(request.as_bytes()), Opening::Http, "{request}");
        }
        for begun in ["", "\r\n", "GET / HTT", "003egit-upload-pack /x"] {
            assert_eq!(read(begun.as_bytes()), Opening::Incomplete, "{begun}");
        }
        for other in [
            "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
            "003egit-upload-pack /x\0host=a\0",
            "*1\r\n$4\r\nPING\r\n",
            "\0\0\0\u{8}\u{4}",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            assert_eq!(read(other.as_bytes()), Opening::Other, "{other}");
        }
        assert_eq!(read(&[b'a'; LONGEST]), Opening::Other);
    }

    proptest! {
        /// More bytes never change what was recognized, and no input panics.
        #[test]
        fn what_was_understood_stays(bytes: Vec<u8>, shape in prop::sample::select(vec![0_usize, 3, 9])) {
            let head = [22, 3, 1, 0, 200, 1, 0, 0, 196];
            let bytes = [&head[..shape], &bytes].concat();
            let mut known = Opening::Incomplete;
            for end in 0..=bytes.len() {
                let opening = read(&bytes[..end]);
                prop_assert!(known == Opening::Incomplete || opening == known, "{known:?} became {opening:?}");
                known = opening;
            }
        }
    }
}
