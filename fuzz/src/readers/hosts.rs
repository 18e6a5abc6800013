//! Hosts: what a container asks for, what the lists of the configuration say, and what a tunnel
//! begins with.

use std::net::IpAddr;

use coding_agent::egress::address::{Range, range};
use coding_agent::egress::hello::{self, Opening};
use coding_agent::egress::pattern::Pattern;
use coding_agent::egress::{Destination, Policy};

use super::text;

/// A destination and an entry of a list: what is read is read again from how it is written, and
/// nothing but what is listed is let through.
pub fn hosts(bytes: &[u8]) {
    let text = text(bytes);
    let (asked, listed) = text.split_once('\n').unwrap_or((&text, ""));
    let entry = listed.parse::<Pattern>();
    if let Ok(pattern) = &entry {
        assert_eq!(pattern.to_string().parse().as_ref(), Ok(pattern));
    }
    let Some(destination) = Destination::parse(asked, Some(443)) else {
        return;
    };
    let written = destination.to_string();
    assert_eq!(Destination::parse(&written, None).as_ref(), Some(&destination));
    assert!(written.len() < 300 && written.bytes().all(|byte| byte.is_ascii_graphic()));
    let is_listed = entry.is_ok_and(|pattern| pattern.takes(&destination));
    match Policy::of_readable(&[listed.to_owned()], &[]).judge(destination) {
        Ok(permit) => {
            assert!(is_listed);
            let addresses: Vec<IpAddr> = ["127.0.0.1", "169.254.169.254", "1.1.1.1", "::ffff:10.0.0.1"]
                .iter()
                .filter_map(|address| address.parse().ok())
                .collect();
            for chosen in permit.choose(&addresses, &[]).unwrap_or_default() {
                assert_eq!(range(chosen), Range::Public);
            }
        }
        Err(refusal) => {
            assert!(!is_listed);
            assert!(refusal.sentence().len() < 1000);
        }
    }
}

/// The first bytes of a tunnel: once they are understood, more of them change nothing, and only
/// what is listed gets through.
pub fn client_hello(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(hello::LONGEST)];
    let whole = hello::read(bytes);
    for part in 0..8 {
        let before = hello::read(&bytes[..bytes.len() * part / 8]);
        assert!(
            before == Opening::Incomplete || before == whole,
            "{before:?} became {whole:?}"
        );
    }
    let policy = Policy::of_readable(&["listed.example".to_owned()], &[]);
    let listed = Destination::parse("listed.example:443", None);
    let Some(permit) = listed.clone().and_then(|listed| policy.judge(listed).ok()) else {
        panic!("what is listed is not let through");
    };
    let is_for_it = matches!(&whole, Opening::Tls { name } if *name == listed.map(|listed| listed.host));
    let is_let_through = policy.judge_inside(&permit, &whole).is_ok();
    assert_eq!(is_let_through, is_for_it || whole == Opening::Http, "{whole:?}");
}
