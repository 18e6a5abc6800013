//! Image names with a tag, or with the digest that pins one image.

/// Separator between an image's name and its digest.
const BY_DIGEST: &str = "@sha256:";

/// Returns the digest of an image with its name: from the registry that `image` names, else from
/// another one, else the id of an image that was never in a registry.
pub(crate) fn digest_of(image: &str, id: &str, repo_digests: &[String]) -> String {
    let is_of = |digest: &&String| {
        let name = digest.split('@').next().unwrap_or_default();
        let rest = image.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with([':', '@']) && !rest.contains('/')))
    };
    let digest = repo_digests.iter().find(is_of).or(repo_digests.first());
    digest.map_or(id, String::as_str).to_owned()
}

/// Returns what is wrong with an image name and how to fix it; `usual` is a valid example.
pub(crate) fn fault_of_name(image: &str, usual: &str) -> Option<String> {
    if image.trim().is_empty() || image.contains(char::is_whitespace) {
        return Some(format!(
            "'{image}' is not the name of an image; write one such as {usual}"
        ));
    }
    let (_, digest) = image.split_once('@')?;
    let is_digit = |sign: u8| matches!(sign, b'0'..=b'9' | b'a'..=b'f');
    let is_digest = digest
        .strip_prefix(&BY_DIGEST[1..])
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(is_digit));
    (!is_digest).then(|| {
        format!(
            "'{image}' does not end with a digest; write {usual}{BY_DIGEST} and 64 hexadecimal digits, as `docker images --digests` \
             shows them"
        )
    })
}

/// Returns true if the image is pinned by its digest.
pub(crate) fn is_by_digest(image: &str) -> bool {
    image.contains(BY_DIGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_registry_that_was_named() {
        let known = ["mirror.example/python@sha256:aa", "python@sha256:bb"].map(str::to_owned);
        for (image, expected) in [
            ("python:3.11", "python@sha256:bb"),
            ("mirror.example/python", "mirror.example/python@sha256:aa"),
            ("python@sha256:bb", "python@sha256:bb"),
            ("python-slim:3", "mirror.example/python@sha256:aa"),
        ] {
            assert_eq!(digest_of(image, "sha256:cc", &known), expected, "{image}");
        }
        assert_eq!(digest_of("own:latest", "sha256:cc", &[]), "sha256:cc");
    }

    #[test]
    fn a_name_with_a_digest_is_one_and_a_broken_one_is_told() {
        let digest = "0123456789abcdef".repeat(4);
        for image in [
            "python:3",
            &format!("python@sha256:{digest}"),
            &format!("a.example:5/b:1@sha256:{digest}"),
        ] {
            assert_eq!(fault_of_name(image, "python:3"), None, "{image}");
        }
        for image in [
            "",
            "a b",
            "python@sha256:12",
            "python@latest",
            &format!("python@sha256:{}", digest.to_uppercase()),
        ] {
            assert!(fault_of_name(image, "python:3").is_some(), "{image}");
        }
    }
}
