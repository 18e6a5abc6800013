//! One message, from its route to its answer.

mod noting; // facts about the message
mod reading; // workers that look at a repository

use std::time::{Duration, Instant};

use noting::Told;

use super::phrases::Phrase;
use super::routes::asking::{self, Order};
use super::routes::naming;
use super::routes::operating;
use super::routes::talking::{self, Said};
use super::services::ChatServices;
use super::session::Session;
use crate::journal::fact::Fact;
use crate::journal::fact::chat::OtherRoute;
use crate::llm::config::role::Role;
use crate::messenger::place::{Incoming, Messenger};
use crate::routing::Route;
use crate::routing::classifier::{self, Fault};
use crate::routing::command;
use crate::routing::decision::{self, AskedEffects, Decision, Doubt, Incoming as Message, Step, is_announced};
use crate::routing::flow::{Flow, Next, StopReason};
use crate::routing::worker;
use crate::store::StoreError;

/// A message that is being answered.
pub(super) struct Handling<'a> {
    services: &'a ChatServices,
    incoming: &'a Incoming,
    session: &'a mut Session,
    flow: Flow,
    /// The person's own request, without a command.
    own: String,
    /// The chat model's wording of it, where it hands the request over.
    wording: Option<String>,
    begun: Instant,
    /// Time that does not count against the limit.
    apart: Duration,
    /// The model that was named for the work.
    model: Option<String>,
    /// Sentences about the conversation itself, for the person.
    notices: Vec<String>,
    told: Told,
}

impl<'a> Handling<'a> {
    pub(super) fn new(services: &'a ChatServices, incoming: &'a Incoming, session: &'a mut Session) -> Self {
        Self {
            flow: Flow::new(services.service.config().chat.routing.limits(), AskedEffects::default()),
            own: String::new(),
            wording: None,
            begun: Instant::now(),
            apart: Duration::ZERO,
            model: None,
            notices: Vec::new(),
            told: Told::default(),
            services,
            incoming,
            session,
        }
    }

    /// Returns what is said to the person.
    pub(super) async fn handle(&mut self, text: &str) -> Result<String, StoreError> {
        // Before a model is asked about it: what it says of models holds for itself, too.
        self.settle(text);
        let decision = self.decide(text).await;
        self.note_decision(&decision);
        let chat = &self.services.service.config().chat;
        self.flow = Flow::new(chat.routing.limits(), decision.asked_effects(chat.rules()));
        self.own = decision.own_request();
        self.session
            .remember_message(&decision.request, &self.incoming.attached);
        self.told.initial = Some(decision.route);
        self.model.clone_from(&decision.model);
        let before = self.session.route;
        let answer = if decision.is_refused {
            self.told.last = Some(decision.route);
            self.words(Phrase::Refused(decision.route))
        } else if decision.request.is_empty() && decision.route == Route::Chat && self.incoming.attached.is_empty() {
            self.told.last = Some(Route::Chat);
            String::new()
        } else {
            self.follow(decision.route, decision.request).await?
        };
        let mut said = std::mem::take(&mut self.notices);
        let last = self.told.last.unwrap_or(Route::Chat);
        if is_announced(before, last) && !decision.is_refused {
            said.push(self.words(Phrase::Announced(last)));
        }
        self.session.route = Some(last);
        // The words of a program that failed, or of a server, hold whatever they hold.
        self.session
            .remember(true, self.services.service.clean(&answer).as_str());
        said.push(answer);
        said.retain(|part| !part.is_empty());
        self.note_end();
        Ok(said.join("\n\n"))
    }

    /// Takes up what a message says of the models of its conversation, or demands of them because
    /// of what it is about.
    fn settle(&mut self, text: &str) {
        match command::local_only(text) {
            None => {}
            Some(true) => {
                self.session.local_only = true;
                self.notices.push(self.words(Phrase::LocalOnly));
            }
            Some(false) => {
                let is_forgotten = self.session.open(&self.incoming.attached);
                let phrase = if is_forgotten {
                    Phrase::Forgotten
                } else {
                    Phrase::Anywhere
                };
                self.notices.push(self.words(phrase));
            }
        }
        let has_pictures = !self.incoming.attached.is_empty();
        let rule = naming::local_only_rule(self.services, self.session, text, has_pictures);
        self.keep_near(rule);
    }

    /// Keeps the conversation on near models from now on, if a rule demands it.
    fn keep_near(&mut self, rule: Option<String>) {
        if rule.is_none() || self.session.rule.is_some() {
            return;
        }
        self.session.rule = rule;
        if !self.session.local_only && self.services.talks_far() {
            self.notices.push(self.words(Phrase::Confidential));
        }
    }

    fn words(&self, phrase: Phrase<'_>) -> String {
        phrase.in_words(self.session.is_japanese)
    }

    fn name(&self) -> String {
        self.incoming.place.to_string()
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the milliseconds that count against the limit.
    fn used(&self) -> u64 {
        let used = self.begun.elapsed().saturating_sub(self.apart);
        u64::try_from(used.as_millis()).unwrap_or(u64::MAX)
    }

    async fn decide(&mut self, text: &str) -> Decision {
        let chat = &self.services.service.config().chat;
        let (far, models) = (self.services.far_routes(), self.services.service.models().names());
        let message = Message {
            text,
            local_only: self.session.local_only,
            far: &far,
            models: &models,
            enters_as_chat: self.incoming.place.messenger == Messenger::Line,
        };
        let unsure = match decision::decide(&message, chat.rules()) {
            Step::Decided(decision) => return decision,
            // Pictures without words are talked about.
            Step::Unsure(unsure) if unsure.request.is_empty() => return unsure.fallback(),
            Step::Unsure(unsure) => unsure,
        };
        let asked = talking::classify(self.services, self.session, classifier::PROMPT, &unsure.request).await;
        let read = match asked {
            Ok(answer) => classifier::read(&answer),
            Err(error) => Err(Fault::NoAnswer(error)),
        };
        if let Ok(classified) = &read {
            self.told.classifier = Some((classified.route, classified.confidence));
        }
        let (decision, doubt) = unsure.with(read, chat.rules(), chat.routing.thresholds());
        if let Some(Doubt::Faulty(fault)) = doubt {
            self.told.error = fault.to_string();
            self.services.note(Fact::ClassifierError {
                session: self.name(),
                reason: fault.to_string(),
            });
        }
        decision
    }

    /// Follows a route to its answer, and another one where it leads there, once.
    async fn follow(&mut self, route: Route, request: String) -> Result<String, StoreError> {
        let (mut route, mut request) = (route, request);
        loop {
            self.told.last = Some(route);
            let (answer, next) = match route {
                Route::Chat => Box::pin(self.chat(&request)).await,
                Route::Code => (Box::pin(self.code()).await?, None),
                Route::Ops => (self.ops().await?, None),
                Route::Plan | Route::Analyze | Route::Research => Box::pin(self.look(route, &request)).await,
            };
            let Some((other, task)) = next else {
                return Ok(answer);
            };
            if self.session.local_only && self.services.far_routes().contains(&other) {
                return Ok(self.words(Phrase::Refused(other)));
            }
            self.services.note(Fact::RouteOverridden(OtherRoute {
                session: self.name(),
                from: route.to_string(),
                to: other.to_string(),
                reason: answer,
            }));
            (route, request) = (other, task);
        }
    }

    /// Has the chat model answer; where it delegates, returns where to, with its task.
    async fn chat(&mut self, request: &str) -> (String, Option<(Route, String)>) {
        let session = self.without_last();
        let said = match talking::talk(self.services, self.incoming, &session, request).await {
            Ok(said) => said,
            Err(error) => {
                tracing::warn!("the chat model gave no answer: {error}");
                return (self.unanswered(error), None);
            }
        };
        match said {
            Said::Answer(text) => {
                let (proposal, text) = worker::proposal(&text);
                let Some(proposal) = proposal else {
                    return (text, None);
                };
                let millis = self.used();
                match self.flow.proposed(&proposal, Route::Chat, millis) {
                    Next::Reroute(route) => (proposal.reason, Some((route, request.to_owned()))),
                    Next::Confirm(route) => (self.asks_back(route, &text), None),
                    Next::Stop(reason) => (self.stopped(reason, &text), None),
                    Next::Answer | Next::Again => (text, None),
                }
            }
            Said::Delegated { route, task } => match self.flow.delegated(route) {
                Next::Reroute(route) => {
                    self.wording = Some(task.clone());
                    ("the chat model delegated".to_owned(), Some((route, task)))
                }
                Next::Confirm(route) => (self.asks_back(route, &task), None),
                Next::Stop(reason) => (self.stopped(reason, &task), None),
                Next::Answer | Next::Again => (task, None),
            },
        }
    }

    /// Returns what the person is told where the chat model gives no answer.
    fn unanswered(&mut self, error: String) -> String {
        self.told.error = error;
        let reason = if self.lacks_near_model(Role::Chat) {
            Phrase::NoNearModel
        } else {
            Phrase::NoModel
        };
        self.words(Phrase::NoAnswer(&self.words(reason)))
    }

    /// Tells whether a role has no near model where only such ones are asked.
    fn lacks_near_model(&self, role: Role) -> bool {
        self.session.local_only_rule().is_some() && !self.services.model(role, self.session, None).is_near()
    }

    async fn order(&self, own: &str, request: &str) -> Result<Order, String> {
        asking::order(self.services, self.incoming, self.session, own, request).await
    }

    async fn code(&self) -> Result<String, StoreError> {
        let model = self.model.as_deref();
        let named = model.and_then(|name| self.services.service.models().named(name, Role::Worker, None));
        if self.session.local_only && named.is_some_and(|model| !model.stays_near()) {
            return Ok(self.words(Phrase::Refused(Route::Code)));
        }
        match self.order(&self.own, &self.own).await {
            Ok(order) => {
                let wording = self.wording.as_deref();
                asking::open(self.services, self.incoming, self.session, &order, wording, model).await
            }
            Err(told) => Ok(told),
        }
    }

    async fn ops(&self) -> Result<String, StoreError> {
        if let Err(told) = self.order("", "").await {
            return Ok(told);
        }
        let name = self.wording.as_deref().unwrap_or(&self.own);
        operating::operate(self.services, self.incoming, &self.own, name, self.session.is_japanese).await
    }

    /// Returns the session without the message that is being answered.
    fn without_last(&self) -> Session {
        let mut session = self.session.clone();
        session.memory.pop();
        session
    }

    /// Returns what the person is told where a model would go on on a route that they did not ask
    /// for.
    fn asks_back(&mut self, route: Route, text: &str) -> String {
        let told = self.words(Phrase::NeedsCommand(route));
        self.ended(StopReason::NeedUserConfirmation, text, &told)
    }

    fn stopped(&mut self, reason: StopReason, text: &str) -> String {
        let limits = self.services.service.config().chat.routing.limits();
        let told = match reason {
            StopReason::NeedUserConfirmation => self.words(Phrase::NeedsConfirmation),
            StopReason::MaxMillis => self.words(Phrase::OutOfTime(limits.max_millis.div_ceil(1_000))),
            StopReason::MaxLoops => self.words(Phrase::OutOfLoops(limits.max_loops)),
            StopReason::WorkerFailed if self.lacks_near_model(Role::Planner) => {
                self.words(Phrase::NoAnswer(&self.words(Phrase::NoNearModel)))
            }
            StopReason::WorkerFailed => self.words(Phrase::NoWorkerAnswer),
        };
        self.ended(reason, text, &told)
    }

    fn ended(&mut self, reason: StopReason, text: &str, told: &str) -> String {
        self.told.stopped = Some(reason);
        self.services.note(Fact::LoopStopped {
            session: self.name(),
            reason: reason.as_str().to_owned(),
        });
        format!("{text}\n\n{told}").trim().to_owned()
    }
}
