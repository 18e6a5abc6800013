//! Spans, made of facts: what has ended when a fact is recorded, with the time at which it began.
//!
//! The trace of a run has the run's own id, and its outermost span the last half of it, so that
//! processes which know nothing of one another add to the same trace.

use std::collections::HashMap;
use std::time::SystemTime;

use chrono::{DateTime, TimeDelta, Utc};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use uuid::Uuid;

use crate::journal::fact::{Entry, Fact};
use crate::llm;
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// The conventions that names and attributes keep to.
pub(super) const CONVENTIONS: &str = "https://opentelemetry.io/schemas/1.41.0";
/// The name of the agent, and of the service.
pub(super) const NAME: &str = "coding-agent";
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The tokens of a prompt that were written into the provider's cache.
const CACHE_WRITTEN: &str = "gen_ai.usage.cache_creation.input_tokens";

/// Runs whose stage is remembered at once; the one that was begun first gives way.
const MOST_RUNS: usize = 4_096;

/// Makes spans of facts, in the order in which they were recorded.
pub(super) struct Weaver {
    /// Provider and model by the name of the configuration.
    models: HashMap<String, (&'static str, String)>,
    stages: HashMap<RunId, Stage>,
    scope: InstrumentationScope,
}

/// The stage that a run is in: the span that encloses all that happens meanwhile.
struct Stage {
    id: SpanId,
    begun: DateTime<Utc>,
    state: State,
}

/// The properties that all spans of a fact share.
#[derive(Clone, Copy)]
struct Place {
    run: RunId,
    ended: DateTime<Utc>,
}

/// The properties of a span besides its place.
struct Told {
    name: String,
    kind: SpanKind,
    begun: DateTime<Utc>,
    status: Status,
    attributes: Vec<KeyValue>,
}

impl Weaver {
    pub(super) fn new(models: &llm::config::Config) -> Self {
        let models = models.all_models().into_iter();
        Self {
            models: models
                .map(|model| (model.name, (model.provider.as_str(), model.model)))
                .collect(),
            stages: HashMap::new(),
            scope: InstrumentationScope::builder(NAME)
                .with_version(VERSION)
                .with_schema_url(CONVENTIONS)
                .build(),
        }
    }

    /// Returns what has ended with a fact.
    pub(super) fn take(&mut self, entry: &Entry) -> Vec<SpanData> {
        let Some(run) = entry.subject.run else {
            return Vec::new();
        };
        let place = Place { run, ended: entry.at };
        match &entry.fact {
            Fact::Claimed { state, .. } => {
                if let Ok(state) = state.parse() {
                    self.enter(place, state);
                }
                Vec::new()
            }
            Fact::StageChanged { from, to } => {
                let mut ended: Vec<SpanData> = self.stage(place, *from).into_iter().collect();
                if to.is_final() {
                    ended.push(self.whole(place, entry.subject.task.as_ref(), *to));
                } else {
                    self.enter(place, *to);
                }
                ended
            }
            Fact::Postponed { .. } | Fact::PutDown { .. } => self.put_down(place).into_iter().collect(),
            Fact::ModelCalled { .. } | Fact::ToolCalled { .. } | Fact::EnvironmentStarted { .. } => {
                let told = self.told(&entry.fact, entry.at);
                told.map(|told| self.within_stage(place, told)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Remembers which stage a run has entered, and when.
    fn enter(&mut self, place: Place, state: State) {
        if self.stages.len() >= MOST_RUNS {
            let oldest = self.stages.iter().min_by_key(|(_, stage)| stage.begun);
            if let Some(oldest) = oldest.map(|(run, _)| *run) {
                self.stages.remove(&oldest);
            }
        }
        let entered = Stage {
            id: new_id(),
            begun: place.ended,
            state,
        };
        self.stages.insert(place.run, entered);
    }

    /// Returns the span of the stage that a run leaves, if this process saw it begin.
    fn stage(&mut self, place: Place, state: State) -> Option<SpanData> {
        let Stage { id, begun, .. } = self.stages.remove(&place.run)?;
        let name = first_word(state);
        let told = Told {
            attributes: vec![KeyValue::new("coding_agent.stage", name.clone())],
            name: format!("stage {name}"),
            kind: SpanKind::Internal,
            begun,
            status: Status::Unset,
        };
        Some(self.span(place, id, Some(root(place.run)), told))
    }

    /// Returns the span of the stage in which a run is put down: whoever takes the run up again
    /// begins another one, and what was done in this one belongs to it. Where the run is put down
    /// to wait for people, the wait has only begun.
    fn put_down(&mut self, place: Place) -> Option<SpanData> {
        let state = self.stages.get(&place.run)?.state;
        if state.is_set_aside() {
            return None;
        }
        self.stage(place, state)
    }

    /// Returns the outermost span of a run that is over.
    fn whole(&self, place: Place, task: Option<&TaskId>, state: State) -> SpanData {
        let outcome = first_word(state);
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "invoke_agent"),
            KeyValue::new("gen_ai.agent.name", NAME),
            KeyValue::new("gen_ai.agent.version", VERSION),
            KeyValue::new("gen_ai.conversation.id", place.run.to_string()),
            KeyValue::new("coding_agent.outcome", outcome.clone()),
        ];
        attributes.extend(task.map(|task| KeyValue::new("coding_agent.task", task.to_string())));
        let has_failed = outcome == "failed";
        if has_failed {
            attributes.push(KeyValue::new("error.type", "failed"));
        }
        let told = Told {
            name: format!("invoke_agent {NAME}"),
            kind: SpanKind::Internal,
            begun: created(place.run).unwrap_or(place.ended),
            status: status(has_failed),
            attributes,
        };
        self.span(place, root(place.run), None, told)
    }

    /// Returns what is told of a call, or of the start of an environment, which took as long as the
    /// fact says.
    fn told(&self, fact: &Fact, ended: DateTime<Utc>) -> Option<Told> {
        match fact {
            Fact::ModelCalled { milliseconds, .. } => self.reply(fact, before(ended, *milliseconds)),
            Fact::ToolCalled {
                tool,
                is_error,
                milliseconds,
                ..
            } => Some(tool_call(tool, *is_error, before(ended, *milliseconds))),
            Fact::EnvironmentStarted {
                environment,
                milliseconds,
                has_waited: false,
                ..
            } => Some(Told {
                name: format!("start environment {environment}"),
                kind: SpanKind::Internal,
                begun: before(ended, *milliseconds),
                status: Status::Unset,
                attributes: vec![KeyValue::new("coding_agent.environment", environment.clone())],
            }),
            _ => None,
        }
    }

    fn reply(&self, fact: &Fact, begun: DateTime<Utc>) -> Option<Told> {
        let Fact::ModelCalled {
            turn,
            input,
            output,
            cached,
            cache_written,
            model,
            role,
            ..
        } = fact
        else {
            return None;
        };
        let known = self.models.get(model);
        let name = known.map_or(model, |(_, name)| name);
        let mut attributes = vec![
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.request.model", name.clone()),
            KeyValue::new("gen_ai.usage.input_tokens", number(*input)),
            KeyValue::new("gen_ai.usage.output_tokens", number(*output)),
            KeyValue::new("gen_ai.usage.cache_read.input_tokens", number(*cached)),
            KeyValue::new("coding_agent.role", role.clone()),
            KeyValue::new("coding_agent.turn", i64::from(*turn)),
        ];
        let cache_written = cache_written.map(number);
        attributes.extend(cache_written.map(|tokens| KeyValue::new(CACHE_WRITTEN, tokens)));
        attributes.extend(known.map(|(provider, _)| KeyValue::new("gen_ai.provider.name", *provider)));
        Some(Told {
            name: format!("chat {name}"),
            kind: SpanKind::Client,
            begun,
            status: Status::Unset,
            attributes,
        })
    }

    fn within_stage(&self, place: Place, told: Told) -> SpanData {
        let parent = self.stages.get(&place.run).map_or(root(place.run), |stage| stage.id);
        self.span(place, new_id(), Some(parent), told)
    }

    fn span(&self, place: Place, id: SpanId, parent: Option<SpanId>, told: Told) -> SpanData {
        let trace = TraceId::from_bytes(place.run.0.into_bytes());
        SpanData {
            span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::default()),
            parent_span_id: parent.unwrap_or(SpanId::INVALID),
            parent_span_is_remote: false,
            span_kind: told.kind,
            name: told.name.into(),
            start_time: SystemTime::from(told.begun),
            end_time: SystemTime::from(place.ended.max(told.begun)),
            attributes: told.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: told.status,
            instrumentation_scope: self.scope.clone(),
        }
    }
}

fn tool_call(tool: &str, is_error: bool, begun: DateTime<Utc>) -> Told {
    let mut attributes = vec![
        KeyValue::new("gen_ai.operation.name", "execute_tool"),
        KeyValue::new("gen_ai.tool.name", tool.to_owned()),
        KeyValue::new("gen_ai.tool.type", "function"),
    ];
    if is_error {
        attributes.push(KeyValue::new("error.type", "tool_error"));
    }
    Told {
        name: format!("execute_tool {tool}"),
        kind: SpanKind::Internal,
        begun,
        status: status(is_error),
        attributes,
    }
}

fn before(ended: DateTime<Utc>, milliseconds: u64) -> DateTime<Utc> {
    let time = TimeDelta::milliseconds(i64::try_from(milliseconds).unwrap_or_default());
    ended.checked_sub_signed(time).unwrap_or(ended)
}

/// Returns the id of a run's outermost span.
fn root(run: RunId) -> SpanId {
    let (_, last) = run.0.as_u64_pair();
    SpanId::from_bytes(last.to_be_bytes())
}

fn new_id() -> SpanId {
    let (_, last) = Uuid::new_v4().as_u64_pair();
    SpanId::from_bytes(last.to_be_bytes())
}

/// Returns when a run was begun, which its id tells.
fn created(run: RunId) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = run.0.get_timestamp()?.to_unix();
    DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)
}

fn status(is_error: bool) -> Status {
    if is_error { Status::error("") } else { Status::Unset }
}

fn number(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// Returns the first word of a state: what follows says where it goes on.
fn first_word(state: State) -> String {
    let text = state.to_string();
    text.split(':').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fact::Subject;
    use crate::task::state::Stage as StageOf;

    const RUN: &str = "019aa6b2-0000-7000-8000-000000000007";

    fn entry(second: i64, fact: Fact) -> Entry {
        Entry {
            // The run's id says when it was begun: so many seconds before.
            at: DateTime::from_timestamp_millis(0x019a_a6b2_0000).unwrap() + TimeDelta::seconds(second),
            subject: Subject {
                task: "github:acme/widgets#1".parse().ok(),
                run: RUN.parse().ok(),
            },
            fact,
        }
    }

    fn claimed(state: State) -> Fact {
        Fact::Claimed {
            machine: None,
            state: state.to_string(),
        }
    }

    fn changed(from: State, to: State) -> Fact {
        Fact::StageChanged { from, to }
    }

    fn model_called() -> Fact {
        Fact::ModelCalled {
            turn: 1,
            input: 100,
            output: 7,
            cached: 50,
            cache_written: Some(20),
            milliseconds: 2_000,
            model: "llm".to_owned(),
            role: "planner".to_owned(),
        }
    }

    fn put_down() -> Fact {
        let ending = "put back".to_owned();
        Fact::PutDown { ending }
    }

    /// Returns the spans of these facts, of which one comes each second.
    fn spans(facts: impl IntoIterator<Item = Fact>) -> Vec<SpanData> {
        let mut weaver = Weaver::new(&llm::config::Config::default());
        let entries = (1..).zip(facts).map(|(second, fact)| entry(second, fact));
        entries.flat_map(|entry| weaver.take(&entry)).collect()
    }

    fn seconds(span: &SpanData) -> u64 {
        span.end_time.duration_since(span.start_time).unwrap().as_secs()
    }

    #[test]
    fn a_run_is_a_trace_of_its_stages_with_what_was_done_in_them() {
        let mut weaver = Weaver::new(&llm::config::Config::default());
        assert!(weaver.take(&entry(1, claimed(State::Planning))).is_empty());
        let chat = weaver.take(&entry(4, model_called())).remove(0);
        assert_eq!((seconds(&chat), &chat.span_kind), (2, &SpanKind::Client));
        assert!(chat.name.starts_with("chat "), "{}", chat.name);
        let written = KeyValue::new(CACHE_WRITTEN, 20_i64);
        assert!(chat.attributes.contains(&written), "{chat:?}");
        let planning = weaver.take(&entry(5, changed(State::Planning, State::Preparing)));
        assert_eq!(planning.len(), 1);
        assert_eq!(
            (planning[0].name.as_ref(), seconds(&planning[0])),
            ("stage planning", 4)
        );
        assert_eq!(chat.parent_span_id, planning[0].span_context.span_id());

        let ended = weaver.take(&entry(9, changed(State::Preparing, State::Failed)));
        let [preparing, whole] = ended.as_slice() else {
            panic!("{ended:?}");
        };
        assert_eq!(preparing.parent_span_id, whole.span_context.span_id());
        assert_eq!(whole.parent_span_id, SpanId::INVALID);
        assert_eq!((seconds(whole), &whole.status), (9, &Status::error("")));
        let ids = [&chat, &planning[0], preparing, whole].map(|span| span.span_context.trace_id());
        assert!(
            ids.iter()
                .all(|id| id.to_bytes() == *RUN.parse::<Uuid>().unwrap().as_bytes())
        );
    }

    #[test]
    fn what_was_done_before_a_run_was_put_down_belongs_to_a_span_that_is_sent() {
        let until = DateTime::UNIX_EPOCH;
        let postponed = || Fact::Postponed {
            until,
            reason: "a limit".to_owned(),
        };
        let working = || [claimed(State::Working), model_called()];
        let ends = [
            vec![postponed()],
            vec![postponed(), put_down()],
            vec![put_down()],
            vec![changed(State::Working, State::Verifying)],
        ];
        let spans = spans(ends.into_iter().flat_map(|end| working().into_iter().chain(end)));
        assert_eq!(spans.len(), 8, "{spans:?}");
        for pair in spans.chunks(2) {
            assert!(pair[0].name.starts_with("chat "), "{spans:?}");
            assert_eq!(pair[0].parent_span_id, pair[1].span_context.span_id());
            assert_eq!((pair[1].name.as_ref(), seconds(&pair[1])), ("stage working", 2));
        }
    }

    #[test]
    fn a_wait_for_people_goes_on_when_its_run_is_put_down() {
        let paused = State::Paused(StageOf::Working);
        let spans = spans([
            claimed(State::Working),
            changed(State::Working, paused),
            put_down(),
            changed(paused, State::Working),
        ]);
        let told: Vec<_> = spans.iter().map(|span| (span.name.as_ref(), seconds(span))).collect();
        assert_eq!(told, [("stage working", 1), ("stage paused", 2)]);
    }

    #[test]
    fn what_began_in_another_process_is_not_made_up() {
        let mut weaver = Weaver::new(&llm::config::Config::default());
        let resumed = Fact::StageChanged {
            from: State::Paused(StageOf::Working),
            to: State::Working,
        };
        assert!(weaver.take(&entry(1, resumed)).is_empty());
        let mut called = |is_error| {
            let fact = Fact::ToolCalled {
                tool: "workspace/read_file".to_owned(),
                about: "a secret place".to_owned(),
                is_error,
                bytes: 1,
                milliseconds: 10,
                path: Some("a secret place".to_owned()),
                size: None,
                status: None,
            };
            weaver.take(&entry(2, fact)).remove(0)
        };
        let (good, bad) = (called(false), called(true));
        assert_eq!(
            (good.status.clone(), bad.status.clone()),
            (Status::Unset, Status::error(""))
        );
        assert!(!format!("{good:?}{bad:?}").contains("secret place"));
    }

    #[test]
    fn the_stages_of_runs_that_never_end_here_give_way() {
        let mut weaver = Weaver::new(&llm::config::Config::default());
        for number in 0..MOST_RUNS + 10 {
            let mut claimed = entry(i64::try_from(number).unwrap(), claimed(State::Working));
            claimed.subject.run = Some(RunId::new());
            weaver.take(&claimed);
        }
        assert_eq!(weaver.stages.len(), MOST_RUNS);
    }
}
