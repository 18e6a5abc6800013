//! GitHub's own SDK, and the library of Standard Webhooks, sign deliveries for the program: the
//! payloads that others published are taken, and what is signed wrongly is refused.

use std::path::Path;
use std::process::Command;

use crate::openapi::Served;

const GITHUB: &str = "It's a Secret to Everybody";
const GITLAB: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn deliveries_that_others_published_and_signed_are_taken_and_no_other() {
    let hooks = format!("{{github: {{secret: \"{GITHUB}\"}}, gitlab: {{signing_secret: {GITLAB}}}}}");
    let served = Served::with(&format!("webhooks: {hooks}"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = std::env::var_os("CODING_AGENT_TEST_NODE").map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges-npm"),
        Into::into,
    );
    assert!(
        installed.exists(),
        "{} is missing: run `make setup`",
        installed.display()
    );
    let output = Command::new("node")
        .arg(root.join("tests/judges/webhooks.mjs"))
        .env("JUDGES", &installed)
        .envs([
            ("DASHBOARD", served.url.as_str()),
            ("GITHUB_SECRET", GITHUB),
            ("GITLAB_SECRET", GITLAB),
        ])
        .output()
        .unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}\n{complained}");
    let taken: usize = said.split_whitespace().next().unwrap().parse().unwrap();
    assert!(taken > 300, "{said}");
}
