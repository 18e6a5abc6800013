//! The certificates that programs in a container are to trust, where the configuration or a
//! variable names some: a file in the container, and the variables by which programs find it.
//!
//! It holds certificates alone, never a key. What the image trusts by itself stays trusted: its own
//! certificates are in the file, too.

use crate::certificates::{Trust, pem};

/// Path of the file in containers.
pub(crate) const CERTIFICATES: &str = "/usr/local/share/coding-agent-certificates.pem";

/// Files with the certificates that images trust: of Debian and Alpine, Fedora, openSUSE.
pub(crate) const OF_IMAGES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// Variables by which programs are told of the file. Java has none: it reads a store of its own.
const VARIABLES: [&str; 6] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];

/// Returns the variables as `NAME=value`, but for those that the image sets itself: whoever made it
/// knows more. None if nobody named a certificate.
pub(crate) fn variables(trust: &Trust, of_image: &[String]) -> Vec<String> {
    if !trust.is_named() {
        return Vec::new();
    }
    let is_free = |name: &&&str| {
        let set = of_image.iter().filter_map(|variable| variable.split_once('='));
        !set.into_iter().any(|(own, value)| own == **name && !value.is_empty())
    };
    let free = VARIABLES.iter().filter(is_free);
    free.map(|name| format!("{name}={CERTIFICATES}")).collect()
}

/// Returns the text of the file; `of_image` are files in which the image has its own certificates.
pub(crate) fn file(trust: &Trust, of_image: &[String]) -> String {
    pem(&trust.with_those_of(of_image))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some bytes in the place of a certificate: nobody looks into them here.
    fn trust(content: &[u8]) -> Trust {
        Trust::new(vec![content.to_vec().into()], Some("bundles".into()))
    }

    #[test]
    fn nothing_is_said_where_nobody_named_a_certificate() {
        assert_eq!(variables(&Trust::default(), &[]), [""; 0]);
        assert_eq!(Trust::default().fingerprint(), None);
    }

    #[test]
    fn what_the_image_sets_stays() {
        let of_image = ["PIP_CERT=/etc/own.pem", "SSL_CERT_FILE=", "PATH=/bin"].map(str::to_owned);
        insta::assert_snapshot!(variables(&trust(b"one"), &of_image).join("\n"), @"
        SSL_CERT_FILE=/usr/local/share/coding-agent-certificates.pem
        CURL_CA_BUNDLE=/usr/local/share/coding-agent-certificates.pem
        GIT_SSL_CAINFO=/usr/local/share/coding-agent-certificates.pem
        REQUESTS_CA_BUNDLE=/usr/local/share/coding-agent-certificates.pem
        NODE_EXTRA_CA_CERTS=/usr/local/share/coding-agent-certificates.pem
        ");
    }

    #[test]
    fn the_file_holds_certificates_alone_and_each_once() {
        let of_image = pem(&[b"one".to_vec().into(), b"two".to_vec().into()]);
        let of_image = format!("{of_image}-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n# words\n");
        let text = file(&trust(b"one"), &[of_image, "no PEM".to_owned()]);
        for (certificate, times) in [(&b"one"[..], 1), (b"two", 1)] {
            let one = pem(&[certificate.to_vec().into()]);
            assert_eq!(text.matches(&one).count(), times, "{text}");
        }
        // A certificate itself may happen to be written with these letters, but not with a space.
        assert!(!text.contains("PRIVATE KEY") && !text.contains("# words"), "{text}");
    }

    #[test]
    fn other_certificates_make_another_fingerprint() {
        let (one, two) = (trust(b"one"), trust(b"two"));
        assert_eq!(one.fingerprint(), trust(b"one").fingerprint());
        assert_ne!(one.fingerprint(), two.fingerprint());
        assert_eq!(one.fingerprint().map(str::len), Some(16));
    }
}
