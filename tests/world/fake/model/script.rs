//! The script of the model: its answers, step by step.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::Value;
use serde_json::json;

use super::Model;
use super::check::extends;
use super::conversation::Request;
use super::conversation::Said;
use super::streaming::Middle;

/// One answer of the model.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub comment: String,
    /// The tools that are called, with their arguments.
    pub calls: Vec<(String, Value)>,
    pub is_done: bool,
    /// A text that is sent as it is, instead of all the above.
    pub text: Option<String>,
    /// The tokens that the server counts for the prompt, where that is not the truth.
    pub prompt_tokens: Option<u64>,
    /// Whether the server ends the reply at its length limit.
    pub is_cut: bool,
    /// What the model says instead of an answer, where it refuses one; nothing where a filter of
    /// its provider does.
    pub refusal: Option<String>,
    /// What the model thinks before its answer, where it thinks and this is not the usual.
    pub thought: Option<String>,
    /// The time that the model thinks before its answer.
    pub thinks: Option<Duration>,
    /// The seconds for which requests are refused with 429 instead.
    pub is_limited_for: Option<u64>,
}

impl Answer {
    pub fn says(text: &str) -> Self {
        Self {
            text: Some(text.to_owned()),
            ..Self::default()
        }
    }

    pub fn plans(plan: impl Into<Value>) -> Self {
        Self::says(&plan.into().to_string())
    }

    pub fn calls(tool: &str, args: Value) -> Self {
        Self {
            comment: format!("Calling {tool}"),
            calls: vec![(tool.to_owned(), args)],
            ..Self::default()
        }
    }

    pub fn done(comment: &str) -> Self {
        Self {
            comment: comment.to_owned(),
            is_done: true,
            ..Self::default()
        }
    }

    /// Has the model think as long as this first.
    pub fn thinking(mut self, duration: Duration) -> Self {
        self.thinks = Some(duration);
        self
    }
}

/// A plan in the form the program asks for.
#[derive(Clone, Debug)]
pub struct Plan(Value);

impl Plan {
    /// Returns a plan with these subtasks, each after the one before, in no particular environment.
    pub fn of(subtasks: &[&str]) -> Self {
        let ids: Vec<String> = (1..=subtasks.len()).map(|number| format!("task-{number}")).collect();
        let list: Vec<Value> = subtasks
            .iter()
            .enumerate()
            .map(|(place, description)| {
                let before: Vec<&String> = ids[..place].iter().rev().take(1).collect();
                json!({ "id": ids[place], "description": description, "dependencies": before })
            })
            .collect();
        Self(json!({
            "phase": "planning",
            "goal_understanding": {
                "main_objective": subtasks.first(),
                "success_criteria": [],
                "constraints": [],
                "context_analysis": "",
            },
            "task_decomposition": { "reasoning": "", "subtasks": list },
            "action_plan": { "execution_order": ids, "actions": [] },
            "verification": [],
            "comment": "Planned.",
        }))
    }

    pub fn in_environment(self, name: &str) -> Self {
        self.with("selected_environment", json!({ "name": name, "reasoning": "It fits." }))
    }

    /// Chooses the environment `python`, and has these commands set it up.
    pub fn set_up_by(self, commands: &[&str]) -> Self {
        let environment = json!({ "name": "python", "setup_commands": commands, "reasoning": "" });
        self.with("selected_environment", environment)
    }

    /// Adds a verification command, which must succeed.
    pub fn verified_by(mut self, command: &str) -> Self {
        if let Some(list) = self.0["verification"].as_array_mut() {
            list.push(json!({ "command": command }));
        }
        self
    }

    /// Sets or replaces a field.
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.0[field] = value;
        self
    }
}

impl From<Plan> for Value {
    fn from(plan: Plan) -> Self {
        plan.0
    }
}

#[derive(Clone, Debug)]
pub(super) enum Fault {
    Status(StatusCode),
    RateLimited(Option<u64>),
    /// 429, with a header of its own that says how long to wait.
    LimitedBy(&'static str, &'static str),
    /// 400, with words of the server's own.
    Refused(String),
    TooLong,
    BreaksOff,
    Raw(StatusCode, String),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) answer: Answer,
    pub(super) fault: Option<Fault>,
    pub(super) delay: Option<Duration>,
    pub(super) is_held: bool,
    /// The event in the middle of the answer's stream.
    pub(super) middle: Option<Middle>,
}

impl Step {
    pub(super) fn answer(answer: Answer) -> Self {
        Self {
            delay: answer.thinks,
            fault: answer.is_limited_for.map(|seconds| Fault::RateLimited(Some(seconds))),
            answer,
            ..Self::default()
        }
    }
}

/// The scripts of all tasks.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    by_task: Vec<(Option<String>, VecDeque<Step>)>,
    /// Each conversation that was answered, where the same one gets the same answer.
    answered: Option<Vec<(Vec<Said>, Answer)>>,
}

impl Scripts {
    /// Gives a conversation that was answered before the same answer from now on, and no new step.
    pub(super) fn repeat(&mut self) {
        self.answered.get_or_insert_default();
    }

    /// Returns the step for the conversation of `request`: the next one of its script, unless it
    /// was answered before and answers are repeated.
    pub(super) fn next(&mut self, request: &Request) -> Option<Step> {
        let said = &request.messages;
        let before = self
            .answered
            .iter()
            .flatten()
            .find(|(earlier, _)| earlier.len() == said.len() && extends(said, earlier));
        if let Some((_, answer)) = before {
            return Some(Step::answer(answer.clone()));
        }
        let step = self.take(request)?;
        if let Some(answered) = self.answered.as_mut().filter(|_| step.fault.is_none()) {
            answered.push((said.clone(), step.answer.clone()));
        }
        Some(step)
    }

    fn take(&mut self, request: &Request) -> Option<Step> {
        let begin = request.first_user_message();
        let fits = |words: &Option<String>| words.as_ref().is_some_and(|words| begin.contains(words.as_str()));
        let own = self.by_task.iter().position(|(words, _)| fits(words));
        let place = own.or_else(|| self.by_task.iter().position(|(words, _)| words.is_none()))?;
        self.by_task[place].1.pop_front()
    }

    pub(super) fn unused(&self) -> impl Iterator<Item = String> {
        self.by_task
            .iter()
            .filter(|(_, steps)| !steps.is_empty())
            .map(|(words, steps)| {
                let whose = words.as_deref().unwrap_or("everything else");
                format!(
                    "{} steps of the script for {whose:?} were not used; the next is {:?}",
                    steps.len(),
                    steps[0]
                )
            })
    }

    fn of(&mut self, words: Option<&str>) -> &mut VecDeque<Step> {
        let place = self.by_task.iter().position(|(own, _)| own.as_deref() == words);
        let place = place.unwrap_or_else(|| {
            self.by_task.push((words.map(str::to_owned), VecDeque::new()));
            self.by_task.len() - 1
        });
        &mut self.by_task[place].1
    }
}

/// The script of one task, to be written on.
#[derive(Clone)]
pub struct Script<'model> {
    model: &'model Model,
    words: Option<String>,
}

impl<'model> Script<'model> {
    pub(super) fn new(model: &'model Model, words: Option<String>) -> Self {
        Self { model, words }
    }

    pub fn answers(self, answer: Answer) -> Self {
        self.step(Step::answer(answer))
    }

    pub fn plans(self, plan: impl Into<Value>) -> Self {
        self.answers(Answer::plans(plan))
    }

    pub fn calls(self, tool: &str, args: Value) -> Self {
        self.answers(Answer::calls(tool, args))
    }

    /// Adds a reply with several calls.
    pub fn calls_all<const N: usize>(self, calls: [(&str, Value); N]) -> Self {
        self.answers(Answer {
            comment: "Calling several tools".to_owned(),
            calls: calls.into_iter().map(|(tool, args)| (tool.to_owned(), args)).collect(),
            ..Answer::default()
        })
    }

    /// Adds a reply with this text as it is, in JSON mode or not.
    pub fn says(self, text: &str) -> Self {
        self.answers(Answer::says(text))
    }

    pub fn done(self, comment: &str) -> Self {
        self.answers(Answer::done(comment))
    }

    /// Answers the next `times` requests with this status.
    pub fn fails(mut self, status: u16, times: usize) -> Self {
        let status = StatusCode::from_u16(status).expect("a status of HTTP");
        for _ in 0..times {
            self = self.fault(Fault::Status(status));
        }
        self
    }

    /// Breaks the connection off in the middle of a reply.
    pub fn breaks_off(self) -> Self {
        self.fault(Fault::BreaksOff)
    }

    /// Adds a reply in which the model declines, in these words; without any, a filter of its
    /// provider ends the reply.
    pub fn declines(self, words: &str) -> Self {
        self.answers(Answer {
            refusal: Some(words.to_owned()),
            ..Answer::says("")
        })
    }

    /// Refuses the request with 400, in these words.
    pub fn refuses(self, words: &str) -> Self {
        self.fault(Fault::Refused(words.to_owned()))
    }

    /// Refuses the prompt as too long, in the words of the protocol.
    pub fn too_long(self) -> Self {
        self.fault(Fault::TooLong)
    }

    /// Answers 429, with the seconds to wait where there are some.
    pub fn rate_limited(self, retry_after: Option<u64>) -> Self {
        self.fault(Fault::RateLimited(retry_after))
    }

    /// Answers 429, with a header that says in its own way how long to wait.
    pub fn limited_by(self, header: &'static str, wait: &'static str) -> Self {
        self.fault(Fault::LimitedBy(header, wait))
    }

    /// Answers 200 with a body that may be anything.
    pub fn sends(self, body: &str) -> Self {
        self.fault(Fault::Raw(StatusCode::OK, body.to_owned()))
    }

    /// Refuses with this status and body.
    pub fn refuses_with(self, status: u16, body: &str) -> Self {
        let status = StatusCode::from_u16(status).expect("a status of HTTP");
        self.fault(Fault::Raw(status, body.to_owned()))
    }

    /// Makes the step before wait this long.
    pub fn slow(self, duration: Duration) -> Self {
        self.last(|step| step.delay = Some(duration))
    }

    /// Makes the step before wait for [`Model::release`].
    pub fn holds(self) -> Self {
        self.last(|step| step.is_held = true)
    }

    /// Makes the step before wait for [`Model::release`] in the middle of its stream.
    pub fn halts(self) -> Self {
        self.last(|step| step.middle = Some(Middle::Waits))
    }

    /// Breaks the connection off in the middle of the stream of the step before.
    pub fn breaks_midway(self) -> Self {
        self.last(|step| step.middle = Some(Middle::BreaksOff))
    }

    /// Makes the second half of the step before come in small pieces, slowly.
    pub fn trickles(self) -> Self {
        self.last(|step| step.middle = Some(Middle::Trickles))
    }

    /// Makes an error take the place of the second half of the step before.
    pub fn fails_midway(self, error: Value) -> Self {
        self.last(|step| step.middle = Some(Middle::Fails(error)))
    }

    /// Makes the server count this many tokens for the prompt of the step before.
    pub fn counts(self, prompt_tokens: u64) -> Self {
        self.last(|step| step.answer.prompt_tokens = Some(prompt_tokens))
    }

    /// Makes the server end the step before at its length limit.
    pub fn cut(self) -> Self {
        self.last(|step| step.answer.is_cut = true)
    }

    /// Gives the step before another thought.
    pub fn thinking_of(self, thought: &str) -> Self {
        self.last(|step| step.answer.thought = Some(thought.to_owned()))
    }

    /// Gives the step before another comment.
    pub fn because(self, comment: &str) -> Self {
        self.last(|step| comment.clone_into(&mut step.answer.comment))
    }

    /// Makes the step before say that all is done, besides its calls.
    pub fn and_done(self) -> Self {
        self.last(|step| step.answer.is_done = true)
    }

    fn fault(self, fault: Fault) -> Self {
        self.step(Step {
            answer: Answer::done("The half that arrives of this reply is not to be read."),
            fault: Some(fault),
            ..Step::default()
        })
    }

    fn step(self, step: Step) -> Self {
        self.model.lock().scripts.of(self.words.as_deref()).push_back(step);
        self
    }

    fn last(self, change: impl FnOnce(&mut Step)) -> Self {
        let changed = self
            .model
            .lock()
            .scripts
            .of(self.words.as_deref())
            .back_mut()
            .map(change);
        changed.expect("there is a step before");
        self
    }
}

/// The steps of [`Script`], on the script for all tasks without one of their own.
impl Model {
    pub fn plans(&self, plan: impl Into<Value>) -> Script<'_> {
        self.script().plans(plan)
    }

    pub fn calls(&self, tool: &str, args: Value) -> Script<'_> {
        self.script().calls(tool, args)
    }

    pub fn says(&self, text: &str) -> Script<'_> {
        self.script().says(text)
    }

    pub fn done(&self, comment: &str) -> Script<'_> {
        self.script().done(comment)
    }

    pub fn fails(&self, status: u16, times: usize) -> Script<'_> {
        self.script().fails(status, times)
    }

    pub fn breaks_off(&self) -> Script<'_> {
        self.script().breaks_off()
    }

    pub fn declines(&self, words: &str) -> Script<'_> {
        self.script().declines(words)
    }

    pub fn refuses(&self, words: &str) -> Script<'_> {
        self.script().refuses(words)
    }

    pub fn too_long(&self) -> Script<'_> {
        self.script().too_long()
    }

    pub fn rate_limited(&self, retry_after: Option<u64>) -> Script<'_> {
        self.script().rate_limited(retry_after)
    }

    pub fn refuses_with(&self, status: u16, body: &str) -> Script<'_> {
        self.script().refuses_with(status, body)
    }
}

/// A model that needs no script.
impl Model {
    /// Starts a model that repeats the password it finds in the text, replaces a line of a file
    /// when it is asked to, and is ready otherwise.
    pub async fn repeating() -> Self {
        Self::repeating_and_editing("return net * TAX").await
    }

    /// Starts the same model, which takes `old` for the text that is to be replaced. A file that is
    /// to be written whole it writes well.
    pub async fn repeating_and_editing(old: &'static str) -> Self {
        Self::answering(move |request| {
            if let Some((_, file)) = request.seen.split_once("Mend the function gross") {
                let file = file.split("```\n").nth(1).unwrap_or_default();
                if !request.system().contains("str_replace") {
                    let mended = file.replace("net * TAX", "net * (1 + TAX)");
                    return Answer::says(&format!(
                        "The tax is not added.\n\nshop/prices.py\n```python\n{mended}```"
                    ));
                }
                let args = json!({ "path": "shop/prices.py", "old": old, "new": "return net * (1 + TAX)" });
                return Answer::says(&json!({ "comment": "Add it.", "tool": "str_replace", "args": args }).to_string());
            }
            let password = request.seen.split_once("The password is ").map(|(_, rest)| rest);
            let password = password.and_then(|rest| rest.split_once(".\n")).map(|(word, _)| word);
            let is_asked = request.seen.contains("What is the password");
            Answer::says(password.unwrap_or(if is_asked { "I see none." } else { "ready" }))
        })
        .await
    }
}
