//! Pages for people: made on the server of the same documents that scripts get, in English and
//! Japanese. They work without script; a small one has them follow what happens.
//!
//! Everything that people or models wrote is put in as text: the templates escape it, and the
//! content policy of every answer lets no script run but the program's own file.

mod charts; // pictures for the statistics
mod forms; // what people send
mod language; // English and Japanese
mod views; // one function for each page

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use chrono::DateTime;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use serde::Serialize;

use super::Web;
use super::access::Visitor;
use super::problem::Problem;
pub(super) use language::Language;
use language::Words;

/// The templates.
const TEMPLATES: [(&str, &str); 10] = [
    ("base.html", include_str!("templates/base.html")),
    ("login.html", include_str!("templates/login.html")),
    ("runs.html", include_str!("templates/runs.html")),
    ("run.html", include_str!("templates/run.html")),
    ("evaluations.html", include_str!("templates/evaluations.html")),
    ("evaluation.html", include_str!("templates/evaluation.html")),
    ("statistics.html", include_str!("templates/statistics.html")),
    ("machine.html", include_str!("templates/machine.html")),
    ("new.html", include_str!("templates/new.html")),
    ("message.html", include_str!("templates/message.html")),
];

/// The files that pages load: name, type, content.
const ASSETS: [(&str, &str, &str); 3] = [
    ("style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    (
        "live.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/live.js"),
    ),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// Bytes of a login, which everybody may send.
const LARGEST_LOGIN: usize = 8 * 1024;

/// The pages of a server.
pub(super) struct Pages {
    templates: Environment<'static>,
    words: Words,
}

impl Pages {
    pub(super) fn new() -> Result<Self, minijinja::Error> {
        let mut templates = Environment::new();
        templates.set_undefined_behavior(UndefinedBehavior::Strict);
        templates.set_auto_escape_callback(|_| AutoEscape::Html);
        templates.add_filter("when", when);
        templates.add_filter("first_word", |text: String| {
            text.split(':').next().unwrap_or_default().to_owned()
        });
        templates.add_filter("urlencode", |text: String| {
            url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
        });
        templates.add_filter("dollars", |cost: f64| format!("${cost:.2}"));
        templates.add_filter("figure", |number: f64| {
            if number.fract() == 0.0 {
                format!("{number:.0}")
            } else {
                format!("{number:.2}")
            }
        });
        templates.add_filter("whole", |number: f64| format!("{number:.0}"));
        templates.add_filter("percent", |share: f64| format!("{:.1} %", share * 100.0));
        for (name, text) in TEMPLATES {
            templates.add_template(name, text)?;
        }
        let words = Words::read().map_err(|reason| minijinja::Error::new(minijinja::ErrorKind::SyntaxError, reason))?;
        Ok(Self { templates, words })
    }

    /// Makes a page of a template; `data` are its own variables.
    fn page(&self, frame: &Frame, template: &str, data: &Value) -> Response {
        let made = self.templates.get_template(template).and_then(|template| {
            template.render(context! {
                t => Serde(self.words.of(frame.language)),
                language => frame.language.code(),
                other_language => frame.language.other().code(),
                visitor => frame.visitor.as_ref().map(|visitor| Value::from(Serde(Shown::of(visitor)))),
                path => frame.path.as_str(),
                ..data.clone()
            })
        });
        match made {
            Ok(text) => Html(text).into_response(),
            Err(error) => {
                tracing::error!("a page could not be made: {error:#}");
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made").into_response()
            }
        }
    }

    /// Makes a page that explains a problem.
    fn problem(&self, frame: &Frame, problem: &Problem) -> Response {
        let data =
            context! { title => problem.status.canonical_reason().unwrap_or("Error"), text => problem.detail.as_str() };
        let mut response = self.page(frame, "message.html", &data);
        *response.status_mut() = problem.status;
        response
    }
}

/// The parts that every page shows.
struct Frame {
    language: Language,
    visitor: Option<Visitor>,
    /// The address of the page, for the link to the other language.
    path: String,
}

/// The visitor, as templates know them.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    may_act: bool,
    form_token: &'a str,
}

impl<'a> Shown<'a> {
    fn of(visitor: &'a Visitor) -> Self {
        Self {
            name: &visitor.name,
            may_act: visitor.may_act(),
            form_token: visitor.form_token.as_deref().unwrap_or_default(),
        }
    }
}

/// Formats a time for people.
fn when(text: String) -> String {
    DateTime::parse_from_rfc3339(&text).map_or(text, |time| time.to_utc().format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Returns the pages for those who were let in.
pub(super) fn inside() -> Router<Arc<Web>> {
    Router::new()
        .route("/", get(views::runs))
        .route("/runs/{id}", get(views::run))
        .route("/evaluations", get(views::evaluations))
        .route("/evaluations/{id}", get(views::evaluation))
        .route("/statistics", get(views::statistics))
        .route("/machine", get(views::machine))
        .route("/new", get(views::new))
        .route("/runs/{id}/{action}", post(forms::act))
        .route("/tasks", post(forms::open_task))
        .route("/auto-approve", post(forms::switch_approval))
        .route("/clear-history", post(forms::clear_history))
        .route("/logout", post(forms::log_out))
}

/// Returns what everybody may see.
pub(super) fn outside() -> Router<Arc<Web>> {
    Router::new()
        .route("/login", get(views::login).post(forms::log_in))
        .route("/language", get(forms::choose_language))
        .route("/assets/{name}", get(asset))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .layer(DefaultBodyLimit::max(LARGEST_LOGIN))
}

async fn asset(Path(name): Path<String>) -> Response {
    let found = ASSETS.iter().find(|(known, _, _)| *known == name);
    let Some((_, kind, content)) = found else {
        return Problem::not_found("there is no such file").into_response();
    };
    // Checked anew each time, so that a new version of the program is a new page.
    let headers = [(header::CONTENT_TYPE, *kind), (header::CACHE_CONTROL, "no-cache")];
    (headers, *content).into_response()
}

/// Answers a request for an address that does not exist.
pub(super) async fn lost() -> Problem {
    Problem::not_found("there is nothing at this address; the dashboard begins at /")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_read_and_knows_only_words_that_there_are() {
        let pages = Pages::new().unwrap();
        let words: Vec<String> = pages.words.names();
        for (name, text) in TEMPLATES {
            for used in text.split("t.").skip(1) {
                let word = used
                    .split(|sign: char| !sign.is_ascii_lowercase() && sign != '_')
                    .next()
                    .unwrap();
                let before = text.split(&format!("t.{used}")).next().unwrap_or_default();
                // `t.` as the end of another word.
                if before.ends_with(|sign: char| sign.is_ascii_alphanumeric() || sign == '_') || word.is_empty() {
                    continue;
                }
                assert!(words.iter().any(|known| known == word), "{name}: {word}");
            }
        }
    }

    #[test]
    fn what_people_wrote_is_text() {
        let pages = Pages::new().unwrap();
        let frame = Frame {
            language: Language::English,
            visitor: None,
            path: "/\"><script>".to_owned(),
        };
        let problem = Problem::not_found("<img src=x onerror=alert(1)>");
        let made = pages.problem(&frame, &problem);
        assert_eq!(made.status(), StatusCode::NOT_FOUND);
        let template = pages.templates.get_template("message.html").unwrap();
        let text = template
            .render(
                context! { t => Serde(pages.words.of(Language::Japanese)), language => "ja", other_language => "en",
                visitor => (), path => frame.path, title => "<b>", text => problem.detail },
            )
            .unwrap();
        assert!(
            !text.contains("<img") && !text.contains("<b>") && !text.contains("\"><script>"),
            "{text}"
        );
    }
}
