//! Hosts: what a container asks for, and what the lists of the configuration say.

use std::net::IpAddr;

use coding_agent::egress::address::{Range, range};
use coding_agent::egress::pattern::Pattern;
use coding_agent::egress::{Destination, Policy};

use super::text;

/// A destination and an entry of a list: what is read is read again from how it is written, and nothing but what is listed is let through.
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
