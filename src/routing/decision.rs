//! The decision about a message.

use super::Route;
use super::classifier::{Classified, Fault, Thresholds, Weak};
use super::command::{self, ChatCommand};
use super::rules::Rules;
use super::text;

/// A message with what counts for it.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    pub text: &'a str,
    /// Whether the session asks only models that are near.
    pub local_only: bool,
    /// The routes whose models are elsewhere.
    pub far: &'a [Route],
    /// Names of models that `/code` may name.
    pub models: &'a [String],
    /// Whether every message of this channel goes to the chat model, which delegates.
    pub enters_as_chat: bool,
}

/// The way in which the route was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Command,
    Rule,
    Classifier,
    Fallback,
    /// The channel's entry.
    Entry,
}

impl Source {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Rule => "rule",
            Self::Classifier => "classifier",
            Self::Fallback => "fallback",
            Self::Entry => "entry",
        }
    }
}

/// The route of a message, with the reasons for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub route: Route,
    pub source: Source,
    /// Confidence, in percent.
    pub confidence: u8,
    pub reason: String,
    pub evidence: Vec<String>,
    /// Whether the session asks only models that are near, from this message on.
    pub local_only: bool,
    /// Whether the route is refused because its models are elsewhere. Nothing is sent then.
    pub is_refused: bool,
    /// The message without a command.
    pub request: String,
    /// The model that was named for the work.
    pub model: Option<String>,
}

/// The routes with effects that a person's own message asks for. A model leads to no other: what it
/// says may be the words of whoever wrote what it read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskedEffects {
    code: bool,
    ops: bool,
}

/// The outcome of the first three ways to decide: a decision, or a question to the classifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Decided(Decision),
    Unsure(Unsure),
}

/// A message that neither a command nor a rule decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsure {
    pub request: String,
    local_only: bool,
    far: Vec<Route>,
}

/// Why the classifier's answer did not decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    Faulty(Fault),
    Weak(Classified, Weak),
}

/// Decides by command and by rule.
pub fn decide(incoming: &Incoming<'_>, rules: &Rules) -> Step {
    let commanded = command::read(incoming.text);
    let local_only = command::local_only(incoming.text).unwrap_or(incoming.local_only);
    let whole = incoming.text.trim().to_owned();
    let decided = |route, source, request: String| Decision {
        route,
        source,
        confidence: 100,
        reason: String::new(),
        evidence: Vec::new(),
        local_only,
        is_refused: local_only && incoming.far.contains(&route),
        request,
        model: None,
    };
    let request = match commanded {
        Some(commanded) => match commanded.command {
            ChatCommand::Route(_) if incoming.enters_as_chat => whole,
            ChatCommand::Route(route) => {
                let (model, rest) = match route {
                    Route::Code => command::named_model(&commanded.rest, incoming.models),
                    _ => (None, commanded.rest.as_str()),
                };
                let decision = Decision {
                    evidence: vec![commanded.name.to_owned()],
                    model,
                    ..decided(route, Source::Command, rest.to_owned())
                };
                return Step::Decided(decision);
            }
            ChatCommand::LocalOnly | ChatCommand::Anywhere => {
                if commanded.rest.is_empty() {
                    let decision = Decision {
                        evidence: vec![commanded.name.to_owned()],
                        ..decided(Route::Chat, Source::Command, String::new())
                    };
                    return Step::Decided(decision);
                }
                commanded.rest
            }
        },
        None => whole,
    };
    if incoming.enters_as_chat {
        let commanded =
            command::read(&request).filter(|commanded| commanded.command == ChatCommand::Route(Route::Code));
        let model = commanded.and_then(|commanded| command::named_model(&commanded.rest, incoming.models).0);
        return Step::Decided(Decision {
            model,
            ..decided(Route::Chat, Source::Entry, request)
        });
    }
    match rules.find(&text::own_words(&request)) {
        Some(hit) => Step::Decided(Decision {
            evidence: hit.evidence,
            ..decided(hit.route, Source::Rule, request)
        }),
        None => Step::Unsure(Unsure {
            request,
            local_only,
            far: incoming.far.to_vec(),
        }),
    }
}

impl AskedEffects {
    fn of(route: Route) -> Self {
        Self {
            code: route == Route::Code,
            ops: route == Route::Ops,
        }
    }

    /// Tells whether a message may go on to a route because a model says so.
    pub const fn allow(self, route: Route) -> bool {
        match route {
            Route::Code => self.code,
            Route::Ops => self.ops,
            Route::Chat | Route::Plan | Route::Analyze | Route::Research => true,
        }
    }
}

impl Decision {
    /// Returns the person's own request: the message without its command and the model that was
    /// named behind it, which in a channel whose messages enter as chat are still in what the chat
    /// model reads.
    pub fn own_request(&self) -> String {
        match self.source {
            Source::Entry => {
                let request = command::read(&self.request).map_or_else(|| self.request.clone(), |command| command.rest);
                let model = self.model.as_deref().unwrap_or_default();
                request.strip_prefix(model).unwrap_or(&request).trim_start().to_owned()
            }
            Source::Command | Source::Rule | Source::Classifier | Source::Fallback => self.request.clone(),
        }
    }

    /// Returns the routes with effects that the message asks for in its sender's own words.
    ///
    /// A command asks for its own route and no other. Without one, only talk may lead to effects:
    /// on the other routes a worker reads what strangers wrote. The dictionary says then what the
    /// message asks for, or a word that stands for a change does, where the dictionary is silent.
    pub fn asked_effects(&self, rules: &Rules) -> AskedEffects {
        if let Some(commanded) = self.commanded() {
            return AskedEffects::of(commanded);
        }
        if self.route != Route::Chat {
            return AskedEffects::default();
        }
        let own = text::own_words(&self.request);
        match rules.find(&own).map(|hit| hit.route) {
            None | Some(Route::Chat) => AskedEffects {
                code: rules.asks_for_code(&own),
                ops: false,
            },
            Some(route) => AskedEffects::of(route),
        }
    }

    fn commanded(&self) -> Option<Route> {
        match self.source {
            Source::Command => Some(self.route),
            Source::Entry => command::commanded(&self.request),
            Source::Rule | Source::Classifier | Source::Fallback => None,
        }
    }
}

impl Unsure {
    /// Decides by the classifier's answer; where that does not decide, the route is CHAT, and the
    /// second value says why.
    pub fn with(
        self,
        answer: Result<Classified, Fault>,
        rules: &Rules,
        thresholds: Thresholds,
    ) -> (Decision, Option<Doubt>) {
        let doubt = match answer {
            Err(fault) => Doubt::Faulty(fault),
            Ok(classified) => match classified.judge(&self.request, rules, thresholds) {
                Ok(()) => {
                    let decision = Decision {
                        route: classified.route,
                        source: Source::Classifier,
                        confidence: classified.confidence,
                        reason: classified.reason,
                        evidence: classified.evidence,
                        local_only: self.local_only,
                        is_refused: self.local_only && self.far.contains(&classified.route),
                        request: self.request,
                        model: None,
                    };
                    return (decision, None);
                }
                Err(weak) => Doubt::Weak(classified, weak),
            },
        };
        (self.fallback(), Some(doubt))
    }

    /// Decides without a classifier.
    pub fn fallback(self) -> Decision {
        Decision {
            route: Route::Chat,
            source: Source::Fallback,
            confidence: 0,
            reason: String::new(),
            evidence: Vec::new(),
            local_only: self.local_only,
            is_refused: self.local_only && self.far.contains(&Route::Chat),
            request: self.request,
            model: None,
        }
    }
}

/// Tells whether people are told of the route: only where it is another one than before, and never
/// of CHAT.
pub fn is_announced(before: Option<Route>, now: Route) -> bool {
    now != Route::Chat && before != Some(now)
}
