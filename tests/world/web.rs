//! The dashboard, the API and the webhooks, as browsers, scripts and forges meet them.

mod access;
mod browser;
mod code;
mod evaluations;
mod events;
mod figures;
mod hooks;
mod runs;
mod scripts;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::world::{PATIENCE, Program, World};

/// Tokens of the users that [`with_users`] configures.
pub const ALICE: &str = "alice-alice-alice-alice";
pub const BOB: &str = "bob-bob-bob-bob-bob-bob";

/// A client of the HTTP server of a program.
pub struct WebClient {
    pub url: String,
    client: Client,
    /// A good token.
    pub token: String,
}

/// Lets alice act and bob look.
pub fn with_users(world: &mut World) {
    world.configure(|config| {
        config["http"] = json!({
            "listen": "127.0.0.1:0",
            "users": { "alice": { "token": ALICE, "can": "approve" }, "bob": { "token": BOB } },
        });
    });
}

/// Starts the program with these arguments, and returns it with a client of its HTTP server.
pub async fn opened(world: &World, arguments: &[&str]) -> (Program, WebClient) {
    let mut program = world.spawn(arguments);
    let line = program.line_with("the dashboard is at ").await;
    let url = line.split("is at ").nth(1).unwrap().split(';').next().unwrap().trim();
    let token = match line.split("its token is in ").nth(1) {
        Some(file) => std::fs::read_to_string(file.trim()).unwrap().trim().to_owned(),
        None => ALICE.to_owned(),
    };
    // Redirects are looked at, not followed.
    let client = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    let web = WebClient {
        url: url.to_owned(),
        client: client.build().unwrap(),
        token,
    };
    (program, web)
}

/// Ends a program as an operator does.
pub async fn ends(program: Program, world: &World) {
    program.signal("TERM");
    let ended = program.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
}

impl WebClient {
    /// Prepares a request without a token.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub async fn get(&self, path: &str) -> Response {
        let request = self.request(Method::GET, path).bearer_auth(&self.token);
        request.send().await.unwrap()
    }

    /// Returns the JSON of a good answer.
    pub async fn json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.json().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        let request = self.request(Method::POST, path).bearer_auth(&self.token);
        request.json(body).send().await.unwrap()
    }

    /// Logs in as a browser does; returns the cookie of the session.
    pub async fn logs_in(&self, token: &str) -> Result<String, String> {
        let request = self.request(Method::POST, "/login").header("origin", &self.url);
        let response = request.form(&[("token", token)]).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let to = response.headers()["location"].to_str().unwrap().to_owned();
        match response.headers().get("set-cookie") {
            Some(cookie) => {
                let cookie = cookie.to_str().unwrap();
                for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
                    assert!(cookie.contains(word), "{cookie}");
                }
                Ok(cookie.split(';').next().unwrap().to_owned())
            }
            None => Err(to),
        }
    }

    /// Returns a page as a browser with this session sees it.
    pub async fn page(&self, path: &str, cookie: &str) -> Response {
        let request = self.request(Method::GET, path).header("cookie", cookie);
        request.send().await.unwrap()
    }

    /// Returns the text of such a page; what the template escapes needlessly is as it was.
    pub async fn text(&self, path: &str, cookie: &str) -> String {
        let page = self.page(path, cookie).await.text().await.unwrap();
        page.replace("&#x2f;", "/")
    }

    /// Sends a form as a browser does.
    pub async fn sends(&self, path: &str, cookie: &str, fields: &[(&str, &str)]) -> Response {
        let request = self.request(Method::POST, path).header("cookie", cookie);
        let request = request
            .header("origin", &self.url)
            .header("sec-fetch-site", "same-origin");
        request.form(fields).send().await.unwrap()
    }
}

/// Returns the token that forms of a page carry.
pub fn form_token(page: &str) -> String {
    let rest = page.split("name=\"form_token\" value=\"").nth(1).expect("a form");
    rest.split('"').next().unwrap().to_owned()
}

/// Checks that an answer is a problem document with this status, and returns what it says.
pub async fn problem(response: Response, status: StatusCode) -> String {
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["status"], status.as_u16());
    document["detail"].as_str().unwrap().to_owned()
}

/// Waits until something is so.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let came = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(came.is_ok(), "waited in vain for {what}");
}

/// Returns the headers that every answer has.
pub fn is_framed(headers: &HeaderMap<HeaderValue>) -> bool {
    let policy = headers["content-security-policy"].to_str().unwrap();
    policy.starts_with("default-src 'none'; script-src 'self'")
        && !policy.contains("unsafe")
        && headers["x-content-type-options"] == "nosniff"
        && headers["referrer-policy"] == "same-origin"
}
