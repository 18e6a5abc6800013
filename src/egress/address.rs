//! Classifies addresses: public, private (somebody's own network), or forbidden to every container.
//!
//! An address that is not known to be public is not public: in IPv6 only the allocated part
//! (`2000::/3`) can be. A form that embeds an IPv4 address is judged by it, or refused where a
//! machine on the way would extract it again.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of network an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    Public,
    /// This machine or a network of the operator's; reachable only by an exception that names the
    /// host.
    Private,
    /// Never reachable; the text says in a few words what the address is.
    Forbidden(&'static str),
}

use Range::{Forbidden, Private, Public};

const METADATA: &str = "cloud metadata";
const LINK_LOCAL_OR_METADATA: &str = "link-local or cloud metadata";

/// Classifies `address`.
pub fn range(address: IpAddr) -> Range {
    match address {
        IpAddr::V4(address) => of_4(address),
        IpAddr::V6(address) => of_6(address),
    }
}

fn of_4(address: Ipv4Addr) -> Range {
    match address.octets() {
        // Azure uses a public address, Alibaba a carrier-grade NAT one, Oracle one that is reserved
        // for protocols.
        [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] | [169, 254, ..] => {
            Forbidden(LINK_LOCAL_OR_METADATA)
        }
        [0, ..] => Forbidden("unspecified"),
        [127 | 10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18 | 19, ..] => Private,
        [192, 0, 0, _] => Forbidden("protocol assignments"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Forbidden("documentation"),
        [192, 88, 99, _] => Forbidden("6to4 relay"),
        [224..=239, ..] => Forbidden("multicast"),
        [240..=255, ..] => Forbidden("reserved"),
        _ => Public,
    }
}

fn of_6(address: Ipv6Addr) -> Range {
    if let Some(inner) = address.to_ipv4_mapped() {
        return of_4(inner);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Forbidden("unspecified"),
        // NAT64: the translator would reach its own network. No exception is needed: the embedded
        // address can be named directly.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => match of_4(v4(high, low)) {
            Public => Public,
            Private | Forbidden(_) => Forbidden("a translated address that is not public"),
        },
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..] => Forbidden(METADATA),
        [0, 0, 0, 0, 0, 0, 0, 1] | [0xfc00..=0xfdff, ..] => Private,
        [0xfe80..=0xfebf, ..] => Forbidden("link-local"),
        [0xff00..=0xffff, ..] => Forbidden("multicast"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => Forbidden("documentation"),
        // Includes Teredo.
        [0x2001, 0..=0x01ff, ..] => Forbidden("protocol assignments"),
        [0x2002, ..] => Forbidden("6to4"),
        [0x2000..=0x3fff, ..] => Public,
        _ => Forbidden("reserved"),
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Range {
        range(text.parse().unwrap())
    }

    #[test]
    fn every_special_range_is_known_at_both_its_ends() {
        for (first, last, expected) in [
            ("0.0.0.0", "0.255.255.255", Forbidden("unspecified")),
            ("10.0.0.0", "10.255.255.255", Private),
            ("100.64.0.0", "100.127.255.255", Private),
            ("127.0.0.0", "127.255.255.255", Private),
            ("169.254.0.0", "169.254.255.255", Forbidden(LINK_LOCAL_OR_METADATA)),
            ("172.16.0.0", "172.31.255.255", Private),
            ("192.0.0.0", "192.0.0.255", Forbidden("protocol assignments")),
            ("192.0.2.0", "192.0.2.255", Forbidden("documentation")),
            ("192.88.99.0", "192.88.99.255", Forbidden("6to4 relay")),
            ("192.168.0.0", "192.168.255.255", Private),
            ("198.18.0.0", "198.19.255.255", Private),
            ("198.51.100.0", "198.51.100.255", Forbidden("documentation")),
            ("203.0.113.0", "203.0.113.255", Forbidden("documentation")),
            ("224.0.0.0", "239.255.255.255", Forbidden("multicast")),
            ("240.0.0.0", "255.255.255.255", Forbidden("reserved")),
            ("fc00::", "fdff:ffff::", Private),
            ("fe80::", "febf:ffff::1", Forbidden("link-local")),
            ("fec0::", "feff:ffff::1", Forbidden("reserved")),
            ("ff00::", "ffff::", Forbidden("multicast")),
            ("2001::", "2001:1ff:ffff::", Forbidden("protocol assignments")),
            ("2001:db8::", "2001:db8:ffff::", Forbidden("documentation")),
            ("3fff::", "3fff:fff:ffff::", Forbidden("documentation")),
            ("2002::", "2002:ffff:ffff::", Forbidden("6to4")),
            ("100::", "1fff:ffff::", Forbidden("reserved")),
            ("4000::", "fbff:ffff::", Forbidden("reserved")),
            ("64:ff9b:1::", "64:ff9b:1:ffff::", Forbidden("reserved")),
        ] {
            assert_eq!((of(first), of(last)), (expected, expected), "{first} to {last}");
        }
    }

    #[test]
    fn what_lies_beside_them_is_public() {
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "168.63.129.15",
            "2001:200::1",
            "2606:4700::1111",
            "2003::1",
            "3ffe:ffff::1",
        ] {
            assert_eq!(of(text), Public, "{text}");
        }
    }

    #[test]
    fn the_metadata_of_no_cloud_is_reached() {
        for text in [
            "169.254.169.254",
            "169.254.170.2",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert!(matches!(of(text), Forbidden(_)), "{text}: {:?}", of(text));
        }
    }

    #[test]
    fn an_address_inside_another_is_no_way_round() {
        assert_eq!(of("::ffff:127.0.0.1"), Private);
        assert_eq!(of("::ffff:10.0.0.1"), Private);
        assert_eq!(of("::ffff:1.1.1.1"), Public);
        assert!(matches!(of("::127.0.0.1"), Forbidden(_)));
        assert!(matches!(of("64:ff9b::7f00:1"), Forbidden(_)));
        assert_eq!(of("64:ff9b::101:101"), Public);
        assert!(matches!(of("2002:7f00:1::"), Forbidden(_)));
        assert!(matches!(of("2001::7f00:1"), Forbidden(_)));
    }

    proptest! {
        /// No address that the standard library calls special is public here.
        #[test]
        fn nothing_special_is_public_4(octets: [u8; 4]) {
            let address = Ipv4Addr::from(octets);
            let is_special = address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_broadcast()
                || address.is_documentation()
                || address.is_multicast()
                || address.is_unspecified();
            prop_assert!(!is_special || range(address.into()) != Public);
            // The same holds for its IPv4-mapped and NAT64 forms.
            let mapped = range(address.to_ipv6_mapped().into());
            prop_assert_eq!(mapped, range(address.into()));
            let [a, b, c, d] = octets.map(u16::from);
            let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a << 8 | b, c << 8 | d);
            prop_assert_eq!(range(translated.into()) == Public, mapped == Public);
        }

        #[test]
        fn only_what_is_given_out_is_public_6(bits: u128, is_global: bool) {
            // Half of the cases lie in the only range where an address can be public.
            let bits = if is_global { bits >> 3 | 1 << 125 } else { bits };
            let address = Ipv6Addr::from(bits);
            if range(address.into()) == Public && address.to_ipv4_mapped().is_none() && bits >> 32 != 0x64_ff9b << 64 {
                prop_assert_eq!(bits >> 125, 1);
                prop_assert!(!address.is_unique_local() && !address.is_unicast_link_local() && !address.is_multicast());
            }
        }
    }
}
