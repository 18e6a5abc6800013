//! Apps, and what `doctor` is told.

use secrecy::ExposeSecret;
use serde_json::json;

use super::{config, issue, refused, repository, task, unknown};
use crate::forge::github::{App, Config, GitHub};
use crate::forge::test_server::{Server, Told};
use crate::forge::{Forge, Verdict};

#[tokio::test]
async fn an_app_works_with_the_token_of_its_installation() {
    let server = Server::start(|asked| {
        let is_app = asked.headers["authorization"].to_str().unwrap().starts_with("Bearer ey");
        match asked.line().as_str() {
            "GET /api/v3/repos/o/r/installation" if is_app => Told::json(200, &json!({"id": 77})),
            "POST /api/v3/app/installations/77/access_tokens" if is_app => {
                let expires_at = chrono::Utc::now() + chrono::TimeDelta::hours(1);
                Told::json(201, &json!({"token": "ghs_short", "expires_at": expires_at}))
            }
            "GET /api/v3/repos/o/r/issues/1" if !is_app => Told::json(200, &issue(1)),
            "GET /api/v3/repos/o/r" if !is_app => Told::json(200, &repository(1)),
            "GET /api/v3/app" if is_app => Told::json(
                200,
                &json!({"slug": "helper", "permissions": {"contents": "write", "issues": "read", "pull_requests": "write"}}),
            ),
            _ => unknown(asked),
        }
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let private_key_file = directory.path().join("key.pem");
    std::fs::write(&private_key_file, key()).unwrap();
    let config = Config {
        token: None,
        bot_name: String::new(),
        app: Some(App {
            id: 5,
            private_key_file,
        }),
        ..config(&server)
    };
    let github = GitHub::connect(&config).await.unwrap();
    let credentials = github.git_credentials(&task()).await.unwrap();
    assert_eq!(
        (credentials.username.as_str(), credentials.password.expose_secret()),
        ("x-access-token", "ghs_short")
    );
    github.item(&task()).await.unwrap();
    assert_eq!(github.requests(), 4);
    assert_eq!(github.bot().await.unwrap(), "helper[bot]");
    let findings = github.examine().await;
    assert!(matches!(&findings[0].verdict, Verdict::Bad { detail, .. } if detail.contains("may not write issues")));
}

#[tokio::test]
async fn an_examination_tells_one_finding_for_each_subject() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/user" => Told::json(200, &json!({"login": "bot"})).with("x-oauth-scopes", "repo, delete_repo"),
        "GET /api/v3/repos/o/r" => Told::json(200, &repository(1)),
        "GET /api/v3/repos/o/r/labels" => Told::json(200, &json!([])),
        _ => refused(404, "Not Found"),
    })
    .await;
    let mut config = config(&server);
    config.repositories.push("o/hidden".to_owned());
    let findings = GitHub::connect(&config).await.unwrap().examine().await;
    let told: Vec<String> = findings
        .iter()
        .map(|finding| match &finding.verdict {
            Verdict::Good { detail } => format!("{}: good, {detail}", finding.subject),
            Verdict::Doubtful { detail, .. } => format!("{}: doubtful, {detail}", finding.subject),
            Verdict::Bad { detail, .. } => format!("{}: bad, {detail}", finding.subject),
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    GitHub token: doubtful, works, as bot; it may do more than the program needs: delete_repo
    GitHub repository o/r: good, can be read and pushed to
    GitHub labels in o/r: good, will be made when they are needed: coding agent, coding agent processing, coding agent waiting, coding agent paused, coding agent stopped, coding agent failed, coding agent done
    GitHub repository o/hidden: bad, the answer was 404 Not Found: Not Found
    ");
}

/// A key made for this test, in the form that GitHub hands out.
fn key() -> Vec<u8> {
    let lines: Vec<&str> = KEY
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let kind = "RSA PRIVATE KEY";
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n")).into_bytes()
}

const KEY: &str = "MIIEogIBAAKCAQEA0LF8HbocwVFV+g+X+8EDTzr0/m/x9DBOJjD9x1+is1Rf1qqiLDR6MMLdUvhODI/HExfv9PeWOGRbXMronrXE\
    0uO/g6qge12gtdGKikWQhpsc9Rbcp63EwjC4wTk7iAK6m7ZCQCTzaCavPk5JCEIzjWaSARA6ndQcTMTWNF2VsjHZl4vkUFCyqmhp\
    sSPqOwXek+yzT07zUyMVmFurMg2X0YK0zv2UaeWw4NiwJ18vNC6/TCu8XkegqbFhrsZLVSutaIcOqp0RxszQMIbDqrrg8UI6fcMh\
    nq/yJEG+UHylBiMHgbP5At6lFsogr5v3PHm1EReND3h4zZrNyMqHnzmZyQIDAQABAoH/bSCmcQclea0Oe5I0b9dtFs4B1wrU0A8d\
    ErlYYZPC9+EnCTvKgKhnxVv+X+0Ra6JL7p78MJQ1+UcJso009Lf17+rBj/YPsNlEyhLqo0E0lj+5bTypWOMeiNN56yngO6V17ynn\
    vxqCT6/IwENiuf/kKHMT5gL86BOcDiJXNdeX5y8V6QzXCzH2VmHCxjx9zsdasunKuG2mJp4cn1kM7AMG6aJeBr5bKGRxUGroGx3v\
    A3IPjidebDSR4NfqqunoluFVPafB3WnY9AV3Y7KBfqytwaX24hHbSccGZu/yoVFbdZod/SokZAXKvc+eX2bxQ2VfNKp5J5MQoGZX\
    cuwozAABAoGBAPKz+QvPxtM29/EGJ69BYRL+IBwFl1FzUp5V20oiTLbnAif6zRVQdXR+0MYlyBjXxXUwPrIr3w1GHjEtm3Ja4WVO\
    NEMo9RMGPpozulzLNT+P5bn+YjCgWK/A4s8CqS7Ge+WlnWDmRSs3waL7rjT1tI4dj6XqpsIjIRb/EHXBevXJAoGBANwggl3un2g/\
    yQQ5x5QiTm38jfKBpZZQAW4A/Cj1wPnryZOY8xRzi4SX+LP4HF3C01jE0oodS2UT3kptec84BE+FT1s2fjfucqK3QiXeSN5C5zwq\
    qPYLyiqWLxgpv5j4NXS+3TpdTehYpyo6ZBrByc1SkO5fHkw1ssNQ/6nca4QBAoGBALHPZPBgYxwvM2tjxQNC9OnDQKcG+Zt0z9ys\
    riIcCvQdPpknx8SL0+FrX20sFPMOcd2vYN+MALhq3IfPEAmxx1w+9U8W3KX5dzfmGe0N+477z6R6WFmjwBXTTNe47VYVmIPg1/I8\
    AgTtrnHHzhOCx6suwSUfStkEf6Onbtm2zGzxAoGBAMZYVJ+m3+PjdZFlLrv/nYPlSVH2F+o09NTV9mBB8DxBhUSFUKJg6pnzBZnE\
    OmsRnbYiw0LH2qOdH3MY6eUZqGiuyi56D4j+RjTvw56ziB0dU5YXKl9piCSPZqfzFj0TibdEM7rfT8/H8fhO3NxvORLVDtp6wqYQ\
    zJ7JYVUA07ABAoGAU7WgSgPJhen2oIa5yxCVoNAgk1ahFwS2rModUIjjbck99bm+sNPqCUMCb5IhSrHFzwUG1BUhNL3v/NzEtOn3\
    9ubjZsNGtdJOt2CKrhoa6bY+HzyI0x5VitLRI3sjXld6A5ITrfCiAil++6IeZJgTWM8d29grV3cvOf5rhWFzn1Y=";
