//! PLAN, ANALYZE and RESEARCH: workers look at the repository, and the chat model tells what they
//! found.

use std::time::{Duration, Instant};

use super::Handling;
use crate::chat::phrases::{Phrase, Wording};
use crate::chat::routes::evidence::Evidence;
use crate::chat::routes::looking::{self, View};
use crate::chat::routes::talking;
use crate::routing::Route;
use crate::routing::flow::Next;
use crate::routing::worker::{self, WorkerOutput};

impl Handling<'_> {
    /// Has a worker look at the repository, and the chat model tell what it found.
    pub(super) async fn look(&mut self, route: Route, request: &str) -> (String, Option<(Route, String)>) {
        let order = match self.order(&self.own, request).await {
            Ok(order) => order,
            Err(told) => return (told, None),
        };
        // Getting the repository has bounds of its own, and what was fetched once is there.
        let before = Instant::now();
        let view = match looking::view(self.services, &order).await {
            Ok(view) => view,
            Err(reason) => {
                self.worker_failed(route, &reason);
                return (self.words(Phrase::CannotNow(&reason)), None);
            }
        };
        self.apart += before.elapsed();
        let rule = self.services.rule(&view.path);
        self.keep_near(rule);
        let mut found = Vec::new();
        let mut evidence = Evidence::default();
        loop {
            let output = self.worker(&view, route, &order.request, &found).await;
            let used = self.used();
            let next = self.flow.after(route, output.as_ref(), used);
            if let Some(output) = &output {
                let doubts = match evidence.check(&view, output).await {
                    Ok(doubts) => doubts,
                    Err(error) => {
                        tracing::warn!("the places of an answer could not be looked up: {error}");
                        String::new()
                    }
                };
                found.push(written(output) + &doubts);
            }
            self.told.output = output;
            let end = match next {
                Next::Again => continue,
                Next::Reroute(other) => {
                    return ("the worker's suggestion".to_owned(), Some((other, request.to_owned())));
                }
                Next::Confirm(other) => self.asks_back(other, ""),
                Next::Answer => String::new(),
                Next::Stop(reason) => self.stopped(reason, ""),
            };
            if found.is_empty() {
                return (end, None);
            }
            let places = evidence.in_words(Wording {
                is_japanese: self.session.is_japanese,
            });
            return self
                .tell(route, &view, request, &found.join("\n\n"), [places, end])
                .await;
        }
    }

    /// Has one worker look, within the time that is left.
    async fn worker(&mut self, view: &View, route: Route, request: &str, found: &[String]) -> Option<WorkerOutput> {
        let begun = self.millis();
        let limit = self.services.service.config().chat.routing.limits().max_millis;
        let left = Duration::from_millis(limit.saturating_sub(self.used()));
        let asked = looking::WorkerRequest {
            incoming: self.incoming,
            session: self.session,
            route,
            request,
            before: found,
            answer_from: Instant::now() + left * 2 / 3,
        };
        let looked = tokio::time::timeout(left, looking::look(self.services, view, &asked)).await;
        match looked {
            Ok(Ok(output)) => {
                self.worker_succeeded(route, &output, self.millis() - begun);
                return Some(output);
            }
            Ok(Err(reason)) => self.worker_failed(route, &reason),
            Err(_) => self.worker_failed(route, &format!("it was not ready within {limit} ms (max_millis)")),
        }
        None
    }

    /// Has the chat model say what was found, and adds the places that it rests on and why it ended
    /// early, if it did. Where the chat model cannot be asked, the worker's own words are not shown
    /// in its place.
    async fn tell(
        &mut self,
        route: Route,
        view: &View,
        request: &str,
        found: &str,
        [places, end]: [String; 2],
    ) -> (String, Option<(Route, String)>) {
        let session = self.without_last();
        let said = match talking::tell(self.services, &session, &view.path, request, found).await {
            Ok(said) => said,
            Err(error) => return (self.unanswered(error), None),
        };
        let (proposal, text) = worker::proposal(&said);
        let (proposal, millis) = (proposal.filter(|_| end.is_empty()), self.used());
        let next = proposal.map(|proposal| (self.flow.proposed(&proposal, route, millis), proposal.reason));
        let end = match next {
            Some((Next::Reroute(other), reason)) => return (reason, Some((other, request.to_owned()))),
            Some((Next::Confirm(other), _)) => self.asks_back(other, ""),
            Some((Next::Stop(reason), _)) => self.stopped(reason, ""),
            _ => end,
        };
        let mut parts = vec![text, places, end];
        parts.retain(|part| !part.is_empty());
        (parts.join("\n\n"), None)
    }
}

/// Returns a worker's answer as the chat model reads it.
fn written(output: &WorkerOutput) -> String {
    let list = |title: &str, entries: &[String]| match entries {
        [] => String::new(),
        entries => format!("\n{title}:\n- {}", entries.join("\n- ")),
    };
    format!(
        "{}{}{}\n(confidence {} %, risk {})",
        output.result,
        list("Next actions", &output.next_actions),
        list("Questions for the person", &output.questions_for_user),
        output.confidence,
        output.risk.as_str(),
    )
}
