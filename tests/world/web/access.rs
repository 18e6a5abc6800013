//! Who comes in, and who does not.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{ALICE, BOB, ends, form_token, is_framed, opened, problem, with_users};
use crate::world::World;

#[tokio::test]
async fn nobody_comes_in_without_a_token_and_every_answer_keeps_browsers_in_bounds() {
    let mut world = World::start().await;
    world.configure(|config| config["http"] = json!({ "listen": "127.0.0.1:0" }));
    let (program, web) = opened(&world, &["dashboard"]).await;
    let file = world.state_dir().join("http-token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    for path in [
        "/api/status",
        "/api/history",
        "/api/logs",
        "/api/events",
        "/api/openapi.json",
        "/metrics",
    ] {
        let response = web.request(Method::GET, path).send().await.unwrap();
        assert!(is_framed(response.headers()), "{path}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        problem(response, StatusCode::UNAUTHORIZED).await;
        let wrong = web
            .request(Method::GET, path)
            .bearer_auth("wrong")
            .send()
            .await
            .unwrap();
        assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
    for path in ["/", "/statistics", "/machine", "/runs/x"] {
        let response = web.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER, "{path}");
        assert_eq!(response.headers()["location"], "/login");
    }
    let response = web.request(Method::POST, "/api/clear-history").send().await.unwrap();
    problem(response, StatusCode::UNAUTHORIZED).await;
    for path in ["/health", "/ready", "/login", "/assets/live.js", "/assets/style.css"] {
        let response = web.request(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert!(is_framed(response.headers()), "{path}");
    }
    assert_eq!(web.get("/api/status").await.status(), StatusCode::OK);
    // A name that somebody lets point here.
    for path in ["/", "/login", "/api/status"] {
        let request = web.request(Method::GET, path).header("host", "evil.example");
        let status = request.send().await.unwrap().status();
        assert!(
            status == StatusCode::MISDIRECTED_REQUEST || path == "/login",
            "{path}: {status}"
        );
    }
    ends(program, &world).await;
    let token = web.token.clone();
    let logs = std::process::Command::new("grep")
        .args(["-rF", &token])
        .arg(world.folder().join("logs"))
        .output();
    assert!(logs.unwrap().stdout.is_empty(), "the token is in the logs");
    world.finish().await;
}

#[tokio::test]
async fn a_session_lasts_until_it_is_ended_and_acts_from_its_own_pages_only() {
    let mut world = World::start().await;
    with_users(&mut world);
    let (program, web) = opened(&world, &["dashboard"]).await;
    let cookie = web.logs_in(ALICE).await.unwrap();
    let response = web.page("/", &cookie).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(is_framed(response.headers()));
    let page = response.text().await.unwrap();
    let token = form_token(&page);
    assert!(page.contains("Nothing is being worked on."), "{page}");

    // Without the form's token, with another's, from another site, from nowhere.
    let refused = web.sends("/clear-history", &cookie, &[]).await;
    problem(refused, StatusCode::FORBIDDEN).await;
    let refused = web.sends("/clear-history", &cookie, &[("form_token", "x")]).await;
    problem(refused, StatusCode::FORBIDDEN).await;
    for headers in [
        vec![("origin", "https://evil.example")],
        vec![("origin", "null")],
        vec![],
        vec![("origin", web.url.as_str()), ("sec-fetch-site", "cross-site")],
    ] {
        let mut request = web.request(Method::POST, "/clear-history").header("cookie", &cookie);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let refused = request.form(&[("form_token", token.as_str())]).send().await.unwrap();
        problem(refused, StatusCode::FORBIDDEN).await;
    }
    let done = web.sends("/clear-history", &cookie, &[("form_token", &token)]).await;
    assert_eq!(done.status(), StatusCode::SEE_OTHER);

    // The session is known to the next process.
    ends(program, &world).await;
    let (program, web) = opened(&world, &["dashboard"]).await;
    assert_eq!(web.page("/", &cookie).await.status(), StatusCode::OK);
    let events = web.page("/api/events", &cookie).await;
    assert_eq!(events.status(), StatusCode::OK);
    let out = web.sends("/logout", &cookie, &[("form_token", &token)]).await;
    let read = tokio::time::timeout(Duration::from_secs(10), events.text()).await;
    read.expect("a window that reads on ends with the session").unwrap();
    assert_eq!(out.headers()["location"], "/login");
    assert_eq!(
        web.page("/", &cookie).await.status(),
        StatusCode::SEE_OTHER,
        "it is ended for good"
    );
    // A session that somebody plants is none.
    for planted in ["coding-agent-session=1", "coding-agent-session=9999999999.0.alice.x"] {
        assert_eq!(web.page("/", planted).await.status(), StatusCode::SEE_OTHER);
    }
    let facts = world.journal();
    let cleared = facts.iter().find(|fact| fact["command"] == "clear-history").unwrap();
    assert_eq!(cleared["by"], "alice");
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn who_may_look_may_not_act_and_who_guesses_is_not_heard() {
    let mut world = World::start().await;
    with_users(&mut world);
    let (program, web) = opened(&world, &["dashboard"]).await;
    let cookie = web.logs_in(BOB).await.unwrap();
    let page = web.page("/", &cookie).await.text().await.unwrap();
    assert!(!page.contains("/clear-history"));
    let token = form_token(&page);
    let refused = web.sends("/clear-history", &cookie, &[("form_token", &token)]).await;
    assert!(problem(refused, StatusCode::FORBIDDEN).await.contains("can: approve"));
    for path in ["/api/clear-history", "/api/tasks", "/api/auto-approve"] {
        let request = web.request(Method::POST, path).bearer_auth(BOB).json(&json!({}));
        problem(request.send().await.unwrap(), StatusCode::FORBIDDEN).await;
    }
    for _ in 0..10 {
        assert_eq!(
            web.logs_in("a-guess-of-a-token").await.unwrap_err(),
            "/login?failed=wrong"
        );
    }
    assert_eq!(web.logs_in(ALICE).await.unwrap_err(), "/login?failed=often");
    let refused = web.get("/api/status").await;
    problem(refused, StatusCode::TOO_MANY_REQUESTS).await;
    // Whoever is in stays in.
    assert_eq!(web.page("/", &cookie).await.status(), StatusCode::OK);
    ends(program, &world).await;
    world.finish().await;
}

#[tokio::test]
async fn an_open_address_needs_users_and_a_taken_one_is_said_while_the_work_goes_on() {
    let mut world = World::start().await;
    world.configure(|config| config["http"] = json!({ "listen": "0.0.0.0:0" }));
    let ended = world.command(&["serve"]).await;
    assert_eq!(ended.code, Some(78), "{ended:?}");
    assert!(ended.stderr.contains("http.users"), "{}", ended.stderr);
    world.configure(|config| config["http"] = json!({}));
    let ended = world.command(&["dashboard", "--listen", "0.0.0.0:0"]).await;
    assert_eq!(ended.code, Some(78), "{ended:?}");

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    world.configure(|config| config["http"] = json!({ "listen": address }));
    let ended = world.command(&["dashboard"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("choose another one in http.listen"),
        "{}",
        ended.stderr
    );
    let mut program = world.spawn(&["serve"]);
    program.until_it_prints("at work").await;
    world.until_logged("no HTTP server").await;
    // It looks at the forge all the same.
    world
        .until("a look at the forge", || !world.github.requests().is_empty())
        .await;
    program.signal("TERM");
    let ended = program.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("no HTTP server"), "{}", ended.stderr);
    world.finish().await;
}
