//! Starting a task: an issue is opened with the label that has it worked on, once for each key.

use axum::http::StatusCode;
use uuid::Uuid;

use super::Web;
use super::access::Visitor;
use super::api::{NewTask, Opened};
use super::problem::Problem;
use crate::service::requested::{self, NotOpened, Request};

/// Most characters of a title, a text and a key.
const LONGEST_TITLE: usize = 250;
const LONGEST_TEXT: usize = 50_000;
const LONGEST_KEY: usize = 200;

impl Web {
    /// Opens an issue for a task; returns whether it is new. The same key of the same user opens
    /// one issue, also where the program was killed in between; with another task it is refused.
    pub(super) async fn open_task(
        &self,
        visitor: &Visitor,
        task: NewTask,
        key: Option<&str>,
    ) -> Result<(Opened, bool), Problem> {
        check(&task)?;
        if key.is_some_and(|key| key.is_empty() || key.chars().count() > LONGEST_KEY) {
            let detail = format!("`Idempotency-Key` must have 1 to {LONGEST_KEY} characters");
            return Err(Problem::bad_request(detail));
        }
        // A key is the user's own; without one each request is another.
        let id = key.map_or_else(Uuid::new_v4, |key| {
            Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{}\n{key}", visitor.name).as_bytes())
        });
        let content = format!("{}\n{}\n{}", task.repository, task.title, task.text);
        let content = Uuid::new_v5(&Uuid::NAMESPACE_OID, content.as_bytes());
        let name = requested::opened_by(id);
        let _one_at_a_time = self.asking.lock().await;
        let store = self.service.store();
        let is_first = store.first_time(&name, &content.to_string()).await?;
        let known = store.noted_once(&name).await?.unwrap_or_default();
        let (asked, opened) = known.split_once(' ').unwrap_or((&known, ""));
        if asked != content.to_string() {
            let detail = "this `Idempotency-Key` was used for another task; choose a new one";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
        if let Some((task, url)) = opened.split_once(' ') {
            let opened = Opened {
                task: task.to_owned(),
                url: url.to_owned(),
            };
            return Ok((opened, false));
        }
        let request = Request {
            repository: task.repository.trim(),
            title: task.title.trim(),
            text: &task.text,
            by: &visitor.name,
            key: id,
            is_repeated: !is_first,
            model: None,
            pictures: &[],
        };
        let opened = self.service.request(&request).await.map_err(refused)?;
        store
            .note_once(&name, &format!("{content} {} {}", opened.task, opened.url))
            .await?;
        let opened = Opened {
            task: opened.task.to_string(),
            url: opened.url,
        };
        Ok((opened, true))
    }
}

fn check(task: &NewTask) -> Result<(), Problem> {
    let title = task.title.trim();
    if title.is_empty() || title.chars().count() > LONGEST_TITLE || title.contains(char::is_control) {
        let detail = format!("`title` must be one line of 1 to {LONGEST_TITLE} characters");
        return Err(Problem::bad_request(detail));
    }
    if task.text.chars().count() > LONGEST_TEXT {
        return Err(Problem::bad_request(format!(
            "`text` has more than {LONGEST_TEXT} characters"
        )));
    }
    Ok(())
}

fn refused(error: NotOpened) -> Problem {
    match error {
        NotOpened::NotConfigured(_) => {
            let detail =
                "`repository` is not among those that the configuration names; write it like github:owner/repo";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        }
        NotOpened::Forge(error) => {
            tracing::warn!("an issue could not be opened: {error}");
            let detail = format!("{error}; send it again, and it is opened once");
            Problem::new(StatusCode::BAD_GATEWAY, detail)
        }
        NotOpened::Store(error) => error.into(),
    }
}
