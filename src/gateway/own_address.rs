//! The addresses of the machine that the worker runs on, as the kernel lists them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the addresses of all interfaces, or none if the kernel does not list them; private
/// addresses are still recognised by their range.
pub(super) fn own_addresses() -> Vec<IpAddr> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (fourth, sixth) = (read("/proc/net/fib_trie"), read("/proc/net/if_inet6"));
    of_4(&fourth)
        .map(IpAddr::V4)
        .chain(of_6(&sixth).map(IpAddr::V6))
        .collect()
}

/// Parses the routing trie: the line after an address says whether it is local to this machine.
fn of_4(table: &str) -> impl Iterator<Item = Ipv4Addr> {
    let lines = table.lines().zip(table.lines().skip(1));
    lines.filter_map(|(line, next)| {
        let is_local = next.trim().starts_with("/32 host LOCAL");
        is_local
            .then(|| line.trim().strip_prefix("|-- ")?.parse().ok())
            .flatten()
    })
}

/// Parses one address per line, from its leading 32 hexadecimal digits.
fn of_6(table: &str) -> impl Iterator<Item = Ipv6Addr> {
    table.lines().filter_map(|line| {
        let digits = line.split_whitespace().next().filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from_bits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_kernels_tables() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\nLocal:\n        |-- 203.0.113.9\n           \
                     /32 host LOCAL\n        |-- 203.0.113.255\n           /32 link BROADCAST\n";
        assert_eq!(of_4(table).collect::<Vec<_>>(), [Ipv4Addr::new(203, 0, 113, 9)]);
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n20010db8000000000000000000000007 02 40 00 00     eth0\n";
        let sixth: Vec<_> = of_6(table).collect();
        assert_eq!(sixth, [Ipv6Addr::LOCALHOST, "2001:db8::7".parse().unwrap()]);
    }

    #[test]
    fn this_machine_has_its_loopback() {
        assert!(own_addresses().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
}
