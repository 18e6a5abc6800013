//! Tests of what the policy allows and refuses, and of its sentences.

use proptest::prelude::*;

use super::*;

fn to(text: &str) -> Destination {
    Destination::parse(text, Some(443)).unwrap()
}

fn policy(allowed: &[&str], private: &[&str]) -> Policy {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    Policy::of_readable(&owned(allowed), &owned(private))
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_name_is_that_host_and_a_star_is_all_below_it() {
    let policy = policy(
        &[
            "pypi.org",
            "*.example.com",
            ".example.net",
            "Host.Example.ORG:8080",
            "[2606::1]",
        ],
        &[],
    );
    let is_allowed = |text: &str| policy.judge(to(text)).is_ok();
    for text in [
        "pypi.org:443",
        "pypi.org:80",
        "PyPI.org.:443",
        "a.example.com:443",
        "a.b.example.com:80",
        "a.example.net",
        "host.example.org:8080",
        "[2606::1]:443",
        "[2606:0::0:1]",
    ] {
        assert!(is_allowed(text), "{text}");
    }
    for text in [
        "pypi.org:22",
        "xpypi.org",
        "pypi.org.evil.example",
        "example.com",
        "example.net",
        "evilexample.com",
        "a.example.com:8080",
        "host.example.org:443",
        "[2606::2]",
        "1.1.1.1",
    ] {
        assert!(!is_allowed(text), "{text}");
    }
}

#[test]
fn what_is_no_host_is_not_read() {
    for text in [
        "",
        ":443",
        "a b",
        "a..b",
        ".a",
        "host:",
        "host:0",
        "host:+80",
        "host:65536",
        "host:80:80",
        "[::1",
        "[::1]80",
        "[host]:80",
        "user@host:80",
        "host/path",
        "h\u{f6}st",
        "host%2e:80",
        "2606::1",
    ] {
        assert_eq!(Destination::parse(text, Some(443)), None, "{text}");
    }
    assert_eq!(Destination::parse("host", None), None, "no port is known");
    assert_eq!(Destination::parse(&"a".repeat(64), Some(80)), None);
    assert_eq!(Destination::parse(&["a"; 200].join("."), Some(80)), None);
    assert_eq!(to("[::ffff:1.2.3.4]:80"), to("1.2.3.4:80"));
}

#[test]
fn an_entry_that_is_no_host_is_named() {
    let fault = |text: &str| text.parse::<Pattern>().unwrap_err();
    insta::assert_snapshot!(fault("https://pypi.org"), @"'https://pypi.org' is not a host; write a name such as example.com, *.example.com for all below it, or example.com:8080 for another port than 80 and 443 (no https://, no path)");
    for text in [
        "",
        "*",
        "*.",
        "pypi.org/simple",
        "*.1.2.3.4",
        "10.0.0.0/8",
        "a.*.b",
        "host:http",
    ] {
        assert!(fault(text).starts_with(&format!("'{text}' is not a host")), "{text}");
    }
    let all: Vec<String> = policy(&["a.example", ".b.example", "[::1]:80"], &["c.example:81"])
        .named()
        .collect();
    assert_eq!(all, ["a.example", "*.b.example", "[::1]:80", "c.example:81"]);
}

#[test]
fn of_a_names_addresses_only_the_public_ones_are_taken() {
    let permit = policy(&["a.example"], &[]).judge(to("a.example")).unwrap();
    let chosen = permit.choose(&addresses(&["10.0.0.1", "1.1.1.1", "::1", "::ffff:8.8.8.8"]), &[]);
    assert_eq!(chosen, Ok(addresses(&["1.1.1.1", "8.8.8.8"])));
    assert_eq!(permit.choose(&[], &[]), Ok(Vec::new()));
}

#[test]
fn an_exception_reaches_a_private_network_and_no_metadata() {
    let policy = policy(&["b.example"], &["a.example:8080"]);
    let permit = policy.judge(to("a.example:8080")).unwrap();
    let private = addresses(&["10.0.0.1", "127.0.0.1", "fd12::1"]);
    assert_eq!(permit.choose(&private, &[]), Ok(private.clone()));
    assert!(permit.choose(&addresses(&["169.254.169.254"]), &[]).is_err());
    assert!(policy.judge(to("a.example:443")).is_err());
    assert!(policy.judge(to("b.example")).unwrap().choose(&private, &[]).is_err());
}

#[test]
fn a_refusal_says_what_by_which_rule_and_how_to_allow_it() {
    let policy = policy(&["a.example", "127.0.0.1"], &[]);
    let by_list = |text: &str| policy.judge(to(text)).unwrap_err().sentence();
    let by_address = |text: &str, address: &str| {
        let permit = policy.judge(to(text)).unwrap();
        permit.choose(&addresses(&[address]), &[]).unwrap_err().sentence()
    };
    insta::assert_snapshot!(by_list("evil.example:443"), @"evil.example is not among the hosts that containers may reach; whoever runs coding-agent can allow it in config.yaml: command_executor.network.allow: [evil.example]");
    insta::assert_snapshot!(by_list("8.8.8.8:53"), @r#"8.8.8.8 is not among the hosts that containers may reach; whoever runs coding-agent can allow it in config.yaml: command_executor.network.allow: ["8.8.8.8:53"]"#);
    insta::assert_snapshot!(by_list("a.example:22"), @r#"a.example may be reached, but not its port 22; whoever runs coding-agent can allow it in config.yaml: command_executor.network.allow: ["a.example:22"]"#);
    insta::assert_snapshot!(by_address("a.example", "10.0.0.1"), @"a.example leads to 10.0.0.1, in a private network, which containers do not reach; whoever runs coding-agent can allow it in config.yaml: command_executor.network.allow_private: [a.example]");
    insta::assert_snapshot!(by_address("127.0.0.1", "127.0.0.1"), @r#"127.0.0.1 is in a private network, which containers do not reach; whoever runs coding-agent can allow it in config.yaml: command_executor.network.allow_private: ["127.0.0.1:443"]"#);
    insta::assert_snapshot!(by_address("a.example", "fd00:ec2::254"), @"a.example leads to fd00:ec2::254 (cloud metadata), which is never reached from a container, whatever the configuration says");
}

proptest! {
    /// No special address is ever chosen, whatever the name resolves to.
    #[test]
    fn no_special_address_is_ever_chosen(resolved: Vec<IpAddr>) {
        let permit = policy(&["a.example"], &[]).judge(to("a.example")).unwrap();
        for address in permit.choose(&resolved, &[]).unwrap_or_default() {
            prop_assert_eq!(range(address), Range::Public);
        }
    }

    /// A host shown in a comment or an answer consists of harmless characters only.
    #[test]
    fn what_is_read_as_a_host_is_harmless(text in "\\PC*", host in "[a-zA-Z0-9_.\\-]{1,80}", port: u16) {
        for text in [text, format!("{host}:{port}")] {
            if let Some(destination) = Destination::parse(&text, Some(80)) {
                let shown = destination.to_string();
                let is_harmless = |letter: char| letter.is_ascii_alphanumeric() || "-_.:[]".contains(letter);
                prop_assert!(shown.chars().all(is_harmless) && shown.len() < 300);
                prop_assert_eq!(Destination::parse(&shown, None), Some(destination));
            }
        }
    }
}
