//! Tools that control the run itself: finish a subtask, ask people, revise the plan, add set-up.
//!
//! They are tools and not fields of the reply, so that JSON and native calls are treated alike. A
//! call only records the request; the run acts on it after all calls of the reply.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::conversation::ToolSpec;
use crate::tool::{ToolError, ToolOutput, ToolServer, own_spec, read_args};

const NAME: &str = "agent";
/// Maximum length of a question, reason or command, in characters.
const LONGEST: usize = 2_000;

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

/// Server of the control tools.
pub(crate) struct ControlTools {
    requested: Mutex<ControlRequests>,
    /// Whether there are people who could answer a question.
    may_ask: bool,
    has_plan: bool,
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

impl ControlTools {
    pub(crate) fn new(may_ask: bool, has_plan: bool) -> Self {
        Self {
            requested: Mutex::default(),
            may_ask,
            has_plan,
        }
    }

    /// Takes the requests made since the last call.
    pub(crate) fn take(&self) -> ControlRequests {
        std::mem::take(&mut *self.requested.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wish(&self, add: impl FnOnce(&mut ControlRequests)) {
        add(&mut self.requested.lock().unwrap_or_else(PoisonError::into_inner));
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
        let mut specs = Vec::new();
        if self.has_plan {
            specs.push(own_spec::<FinishSubtask>(
                NAME,
                "finish_subtask",
                "Ticks a subtask, beside the next step.",
            ));
            specs.push(own_spec::<RevisePlan>(NAME, "revise_plan", "Asks for a better plan."));
        }
        specs.push(own_spec::<AddSetUp>(
            NAME,
            "add_set_up",
            "Adds a set-up command for the container of the checks.",
        ));
        if self.may_ask {
            specs.push(own_spec::<AskPeople>(
                NAME,
                "ask_people",
                "Stops until a person answers; only for what neither task nor files tell.",
            ));
        }
        Ok(specs)
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let text = match tool {
            "finish_subtask" => {
                let FinishSubtask { id } = read_args(args)?;
                self.wish(|requested| {
                    requested.finished.insert(id.trim().to_owned());
                });
                "Ticked."
            }
            "revise_plan" => {
                let RevisePlan { reason } = read_args(args)?;
                let reason = said("reason", &reason)?;
                self.wish(|requested| requested.revision = Some(reason));
                "The plan will be revised."
            }
            "add_set_up" => {
                let AddSetUp { command } = read_args(args)?;
                let command = said("command", &command)?;
                self.wish(|requested| requested.set_up.push(command));
                "Noted: it is run in new containers of this task. It was not run in this one."
            }
            "ask_people" => {
                let AskPeople { question } = read_args(args)?;
                let question = said("question", &question)?;
                self.wish(|requested| requested.question = Some(question));
                "Asked. What people answer comes with the next message."
            }
            _ => return Err(ToolError::TellModel(format!("there is no tool {NAME}/{tool}"))),
        };
        Ok(ToolOutput {
            text: text.to_owned(),
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
