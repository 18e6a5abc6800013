//! Tools that control the run itself: finish a subtask, ask people, revise the plan, add set-up.
//! `tell_program` does each of these, and is the only one that is described where it is allowed:
//! four descriptions would be paid for in every request.
//!
//! They are tools and not fields of the reply, so that JSON and native calls are treated alike. A
//! call only records the request; the run acts on it after all calls of the reply.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conversation::ToolSpec;
use crate::rules::Tools;
use crate::tool::{ToolError, ToolOutput, ToolServer, own_spec, read_args};

const NAME: &str = "agent";
const FINISH_SUBTASK: &str = "finish_subtask";
const REVISE_PLAN: &str = "revise_plan";
const ADD_SET_UP: &str = "add_set_up";
const ASK_PEOPLE: &str = "ask_people";
/// Name of the tool that stands for all the others.
const TELL_PROGRAM: &str = "tell_program";

/// The requests that `tell_program` takes, each with a description of its argument.
const REQUESTS: [(&str, &str); 4] = [
    (FINISH_SUBTASK, "its id"),
    (REVISE_PLAN, "why"),
    (ADD_SET_UP, "a command for the container of the checks"),
    (ASK_PEOPLE, "what neither task nor files tell, and waits"),
];

/// Maximum length of a question, reason or command, in characters.
const LONGEST: usize = 2_000;
/// The same of an id that is quoted.
const LONGEST_ID: usize = 100;

/// Requests that the model made in one reply.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlRequests {
    pub finished: BTreeSet<String>,
    pub question: Option<String>,
    /// Reason for which the plan should be revised.
    pub revision: Option<String>,
    /// Commands that a new container needs in addition to the plan's set-up.
    pub set_up: Vec<String>,
}

impl ControlRequests {
    /// Tells whether `done` in the same reply does not count: who asks people something, or wants
    /// another plan, is not done.
    pub(crate) fn comes_before_the_end(&self) -> bool {
        self.question.is_some() || self.revision.is_some()
    }
}

/// Server of the control tools.
pub(crate) struct ControlTools {
    requested: Mutex<ControlRequests>,
    /// The ids of the plan's subtasks.
    subtasks: Mutex<Vec<String>>,
    /// The requests that the model may make in this run.
    open: Vec<&'static str>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FinishSubtask {
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskPeople {
    question: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevisePlan {
    reason: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddSetUp {
    command: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TellProgram {
    finish_subtask: Option<String>,
    revise_plan: Option<String>,
    add_set_up: Option<String>,
    ask_people: Option<String>,
}

impl ControlTools {
    /// Returns the tools of a run; `may_ask` tells whether there are people who could answer a
    /// question.
    pub(crate) fn new(may_ask: bool, has_plan: bool, rules: &Tools) -> Self {
        let is_open = |request: &&str| {
            let has_sense = match *request {
                FINISH_SUBTASK | REVISE_PLAN => has_plan,
                ASK_PEOPLE => may_ask,
                _ => true,
            };
            has_sense && rules.refusal(&format!("{NAME}/{request}")).is_none()
        };
        Self {
            requested: Mutex::default(),
            subtasks: Mutex::default(),
            open: REQUESTS.iter().map(|(request, _)| *request).filter(is_open).collect(),
        }
    }

    /// Takes the requests made since the last call.
    pub(crate) fn take(&self) -> ControlRequests {
        std::mem::take(&mut *self.requested.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the ids of the subtasks that can be finished; a revision of the plan changes them.
    pub(crate) fn know_subtasks(&self, ids: Vec<String>) {
        *self.subtasks.lock().unwrap_or_else(PoisonError::into_inner) = ids;
    }

    fn record(&self, add: impl FnOnce(&mut ControlRequests)) {
        add(&mut self.requested.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Records a request, and returns the answer to it.
    fn take_down(&self, request: &str, words: &str) -> Result<&'static str, ToolError> {
        Ok(match request {
            FINISH_SUBTASK => {
                let id = self.known_subtask(words.trim())?;
                self.record(|requested| {
                    requested.finished.insert(id);
                });
                "Ticked."
            }
            REVISE_PLAN => {
                let reason = said("reason", words)?;
                self.record(|requested| requested.revision = Some(reason));
                "The plan will be revised."
            }
            ADD_SET_UP => {
                let command = said("command", words)?;
                self.record(|requested| requested.set_up.push(command));
                "Noted: it is run in new containers of this task. It was not run in this one."
            }
            ASK_PEOPLE => {
                let question = said("question", words)?;
                self.record(|requested| requested.question = Some(question));
                "Asked. What people answer comes with the next message."
            }
            _ => return Err(ToolError::TellModel(format!("there is no tool {NAME}/{request}"))),
        })
    }

    fn known_subtask(&self, id: &str) -> Result<String, ToolError> {
        let subtasks = self.subtasks.lock().unwrap_or_else(PoisonError::into_inner);
        if subtasks.iter().any(|known| known == id) {
            return Ok(id.to_owned());
        }
        let known = subtasks.join(", ");
        let id: String = id.chars().take(LONGEST_ID).collect();
        Err(ToolError::TellModel(format!(
            "there is no subtask {id}; there are {known}"
        )))
    }

    /// Records several requests of one call. Small models fill what they do not need with nothing.
    fn tell(&self, told: TellProgram) -> Result<String, ToolError> {
        let told = [
            (FINISH_SUBTASK, told.finish_subtask),
            (REVISE_PLAN, told.revise_plan),
            (ADD_SET_UP, told.add_set_up),
            (ASK_PEOPLE, told.ask_people),
        ];
        let told: Vec<(&str, String)> = told
            .into_iter()
            .filter_map(|(request, words)| Some((request, words?)))
            .filter(|(_, words)| !words.trim().is_empty())
            .collect();
        let fault = match told.iter().find(|(request, _)| !self.open.contains(request)) {
            Some((request, _)) => Some(format!("{request} cannot be told in this run")),
            None => told.is_empty().then(|| "nothing was told".to_owned()),
        };
        if let Some(fault) = fault {
            let open = self.open.join(", ");
            return Err(ToolError::TellModel(format!("{fault}; there are {open}")));
        }
        let answers: Result<Vec<&str>, ToolError> = told
            .iter()
            .map(|(request, words)| self.take_down(request, words))
            .collect();
        Ok(answers?.join("\n"))
    }

    /// Describes the tool that does what the others do.
    fn tell_program(&self) -> ToolSpec {
        let open = || REQUESTS.iter().filter(|(request, _)| self.open.contains(request));
        let told: Vec<String> = open().map(|(request, what)| format!("{request}: {what}")).collect();
        let arguments: Map<String, Value> = open()
            .map(|(request, _)| ((*request).to_owned(), json!({ "type": "string" })))
            .collect();
        ToolSpec {
            name: format!("{NAME}/{TELL_PROGRAM}"),
            description: format!("Beside the next step. {}.", told.join("; ")),
            schema: json!({ "type": "object", "properties": arguments }),
        }
    }
}

#[async_trait]
impl ToolServer for ControlTools {
    fn name(&self) -> &str {
        NAME
    }

    fn system_prompt(&self) -> Option<&str> {
        None
    }

    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError> {
        let alone = self.open.iter().map(|request| match *request {
            FINISH_SUBTASK => own_spec::<FinishSubtask>(NAME, request, "Ticks a subtask, beside the next step."),
            REVISE_PLAN => own_spec::<RevisePlan>(NAME, request, "Asks for a better plan."),
            ADD_SET_UP => own_spec::<AddSetUp>(NAME, request, "Adds a set-up command for the container of the checks."),
            _ => own_spec::<AskPeople>(
                NAME,
                request,
                "Stops until a person answers; only for what neither task nor files tell.",
            ),
        });
        let together = (!self.open.is_empty()).then(|| self.tell_program());
        Ok(together.into_iter().chain(alone).collect())
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let text = match tool {
            TELL_PROGRAM => self.tell(read_args(args)?)?,
            FINISH_SUBTASK => {
                let FinishSubtask { id } = read_args(args)?;
                self.take_down(tool, &id)?.to_owned()
            }
            REVISE_PLAN => {
                let RevisePlan { reason } = read_args(args)?;
                self.take_down(tool, &reason)?.to_owned()
            }
            ADD_SET_UP => {
                let AddSetUp { command } = read_args(args)?;
                self.take_down(tool, &command)?.to_owned()
            }
            ASK_PEOPLE => {
                let AskPeople { question } = read_args(args)?;
                self.take_down(tool, &question)?.to_owned()
            }
            _ => return Err(ToolError::TellModel(format!("there is no tool {NAME}/{tool}"))),
        };
        Ok(ToolOutput {
            text,
            is_error: false,
            structured: None,
        })
    }

    async fn close(&self) {}
}

fn said(what: &str, text: &str) -> Result<String, ToolError> {
    let text: String = text.trim().chars().take(LONGEST).collect();
    if text.is_empty() {
        return Err(ToolError::TellModel(format!("the {what} is empty")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(may_ask: bool, has_plan: bool, rules: &Tools) -> ControlTools {
        let tools = ControlTools::new(may_ask, has_plan, rules);
        tools.know_subtasks(vec!["1".to_owned(), "2".to_owned()]);
        tools
    }

    async fn told(tools: &ControlTools, words: &Value) -> Result<String, String> {
        let args = words.as_object().unwrap();
        let output = tools.call(TELL_PROGRAM, args).await;
        output.map(|output| output.text).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn several_things_can_be_told_in_one_call() {
        let tools = tools(true, true, &Tools::default());
        let words = json!({ "finish_subtask": "1", "add_set_up": "make deps", "revise_plan": "", "ask_people": null });
        assert_eq!(
            told(&tools, &words).await.unwrap(),
            "Ticked.\nNoted: it is run in new containers of this task. It was not run in this one."
        );
        let expected = ControlRequests {
            finished: BTreeSet::from(["1".to_owned()]),
            set_up: vec!["make deps".to_owned()],
            ..ControlRequests::default()
        };
        assert_eq!(tools.take(), expected);
    }

    #[tokio::test]
    async fn a_subtask_that_does_not_exist_is_not_ticked() {
        let tools = tools(true, true, &Tools::default());
        let words = json!({ "finish_subtask": "task-1", "add_set_up": "make deps" });
        assert_eq!(
            told(&tools, &words).await.unwrap_err(),
            "there is no subtask task-1; there are 1, 2"
        );
        assert_eq!(tools.take(), ControlRequests::default());
        let alone = json!({ "id": " 2 " });
        tools.call(FINISH_SUBTASK, alone.as_object().unwrap()).await.unwrap();
        assert_eq!(tools.take().finished, BTreeSet::from(["2".to_owned()]));
    }

    #[tokio::test]
    async fn what_a_run_has_no_use_for_is_neither_described_nor_taken() {
        let rules = Tools {
            denied: vec!["agent/add_set_up".to_owned()],
            ..Tools::default()
        };
        let tools = tools(true, false, &rules);
        let specs = tools.list().await.unwrap();
        let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["agent/tell_program", "agent/ask_people"]);
        assert_eq!(
            specs[0].schema,
            json!({ "type": "object", "properties": { "ask_people": { "type": "string" } } })
        );
        assert_eq!(
            told(&tools, &json!({ "finish_subtask": "1" })).await.unwrap_err(),
            "finish_subtask cannot be told in this run; there are ask_people"
        );
        assert_eq!(
            told(&tools, &json!({ "ask_people": " " })).await.unwrap_err(),
            "nothing was told; there are ask_people"
        );
        assert_eq!(tools.take(), ControlRequests::default());
    }
}
