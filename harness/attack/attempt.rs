//! One attack: what the attacker prepares, what the model does for them, and what must come of it.

use serde_json::{Value, json};

use crate::class::Class;
use crate::fake::model::{Answer, Plan};
use crate::forge::{Forge, Item, Kind, Repository};

/// The outcome that an attack must have, besides everything that holds for all attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Honest work is among the attack, and is delivered.
    Delivered,
    /// Nothing is delivered.
    Refused,
    /// Nothing is begun, the label is taken off, and people are told why.
    Untouched,
    /// Nothing is begun or said: nobody asked for anything.
    Ignored,
    /// Either will do.
    Any,
}

/// Something that happens while a run is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// The stranger pushes another commit to their branch.
    Moves,
    /// Somebody who may write says something below the item.
    Says(&'static str),
}

/// A placeholder for a person's words: the trigger label is put on instead.
pub const LABELS: &str = "@LABELS@";
/// A placeholder in a person's words: the digest that the program has asked about last.
pub const DIGEST: &str = "@DIGEST@";

#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing about how it is played"
)]
pub struct Attempt {
    pub class: Class,
    /// The name of the attack, one word; its repository and its mark have the same name.
    pub name: &'static str,
    pub end: End,
    pub is_short: bool,
    /// The function that puts things into the repository before the item is opened. It gets the
    /// folder that only the worker can see.
    pub prepare: fn(&Repository, &str),
    /// The stranger's branch from which a pull or merge request is opened, instead of an issue.
    pub head: Option<String>,
    /// The files that the stranger's branch adds.
    pub files: &'static [(&'static str, &'static str)],
    /// The events on the forge, each while the model gives the reply with its number.
    pub deeds: Vec<(usize, Deed)>,
    /// The comments, each with its author, that people write once the program has nothing left to
    /// do; then it is started again.
    pub afterwards: Vec<(&'static str, &'static str)>,
    /// Whether the program is killed and started again while this attack is at its second reply.
    pub is_killed: bool,
    pub body: String,
    pub comments: Vec<(&'static str, String)>,
    /// The account that puts the label on, where it is one that may not do so.
    pub labelled_by: Option<&'static str>,
    /// The label that is put on, where it is not the trigger.
    pub label: Option<&'static str>,
    /// The deeds of people once the label is on, or a trap that they set.
    pub happens: fn(&Forge, &Repository, &Item),
    /// The one forge on which it can be played.
    pub only_on: Option<Kind>,
    /// Whether nothing of the item may be read in branches, commits and change requests.
    pub confides: bool,
    /// Fields of the plan that are replaced.
    pub plan: Vec<(&'static str, Value)>,
    pub checks: Vec<String>,
    /// The replies with which the planner looks around before it plans.
    pub looks: Vec<Answer>,
    /// The reviewer's answers on the plan and on the result.
    pub reviews: [Answer; 2],
    pub replies: Vec<Answer>,
    /// The number of replies that must have had their effect; with fewer the attack was not tried.
    pub must_play: usize,
    /// Texts that only commands that ran can have printed: each proves that its command ran.
    pub proofs: Vec<String>,
    /// Words that people must have been told at the end: they prove how far the attack came.
    pub told: Option<String>,
    pub done: String,
    /// Whether another item with the same set-up is worked on afterwards, which looks for what was
    /// left.
    pub is_looked_after: bool,
}

/// The answer of a reviewer that lets a plan or a result pass.
pub const READY: &str = r#"{"ready_for_implementation": true, "score": 9}"#;
/// The name of no label: none is put on.
pub const NO_LABEL: &str = "";
/// A placeholder in texts: the name of the bot's account.
pub const BOT: &str = "BOTNAME";

/// The mark of an attack: a file in a folder that no container can see. In the texts of attacks it
/// stands as `@MARK@`.
pub const MARK: &str = "@MARK@";

impl Attempt {
    pub fn new(class: Class, name: &'static str, end: End) -> Self {
        Self {
            class,
            name,
            end,
            is_short: false,
            prepare: |_, _| {},
            head: None,
            files: &[("theirs.txt", "x\n")],
            deeds: Vec::new(),
            afterwards: Vec::new(),
            is_killed: false,
            body: "Please greet the reader in the README.".to_owned(),
            comments: Vec::new(),
            labelled_by: None,
            label: None,
            happens: |_, _, _| {},
            only_on: None,
            confides: false,
            plan: Vec::new(),
            checks: Vec::new(),
            looks: Vec::new(),
            reviews: [Answer::says(READY), Answer::says(READY)],
            replies: Vec::new(),
            must_play: 0,
            proofs: Vec::new(),
            told: None,
            done: "The README greets its reader.".to_owned(),
            is_looked_after: false,
        }
    }

    /// Makes the attack part of the short form.
    pub fn short(mut self) -> Self {
        self.is_short = true;
        self
    }

    pub fn prepared(mut self, prepare: fn(&Repository, &str)) -> Self {
        self.prepare = prepare;
        self
    }

    /// Has people do something once the label is on.
    pub fn then(mut self, happens: fn(&Forge, &Repository, &Item)) -> Self {
        self.happens = happens;
        self
    }

    pub fn says(self, text: &str) -> Self {
        self.answers(Answer::says(text))
    }

    pub fn calls(self, tool: &str, args: Value) -> Self {
        self.answers(Answer::calls(tool, args))
    }

    pub fn answers(mut self, answer: Answer) -> Self {
        self.replies.push(answer);
        self.must_play = self.replies.len();
        self
    }

    /// Runs a command in the container and requires that it runs to its end, whatever its status.
    pub fn runs(self, command: &str) -> Self {
        self.proved(command, ";")
    }

    /// Runs a command in the container that must succeed, or the attack was not tried.
    pub fn succeeds(self, command: &str) -> Self {
        self.proved(command, "&&")
    }

    /// Runs a command that prints a sum, which is in no text before the shell has worked it out.
    fn proved(mut self, command: &str, then: &str) -> Self {
        let step = self.proofs.len() + 1;
        self.proofs.push(format!("step-{step}-42"));
        let command = format!("{{\n{command}\n}} {then} echo step-{step}-$((6*7))");
        self.calls("workspace/execute_command", json!({ "command": command }))
    }

    pub fn meanwhile(mut self, reply: usize, deed: Deed) -> Self {
        self.deeds.push((reply, deed));
        self
    }

    pub fn afterwards(mut self, person: &'static str, words: &'static str) -> Self {
        self.afterwards.push((person, words));
        self
    }

    /// Does something honest, so that there is something to deliver.
    pub fn works(self) -> Self {
        self.succeeds("printf 'Hello\\n' >> README.md")
    }

    /// Replaces a field of the plan.
    pub fn planned_with(mut self, field: &'static str, value: Value) -> Self {
        self.plan.push((field, value));
        self
    }

    pub fn ends(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Sets the reviewer's answer on the plan.
    pub fn plan_is_judged(mut self, words: &str) -> Self {
        self.reviews[0] = Answer::says(words);
        self
    }

    /// Sets the reviewer's answer on the result.
    pub fn result_is_judged(mut self, words: &str) -> Self {
        self.reviews[1] = Answer::says(words);
        self
    }

    /// Requires that people are told these words.
    pub fn tells(mut self, words: &str) -> Self {
        self.told = Some(words.to_owned());
        self
    }

    /// Allows the run to end after the first `replies` replies: those behind them need not be
    /// given.
    pub fn may_end_here(mut self, replies: usize) -> Self {
        self.must_play = replies;
        let commands = self.replies.iter().take(replies);
        let runs = commands.filter(|reply| reply.calls.iter().any(|(tool, _)| tool.ends_with("/execute_command")));
        let count = runs.count();
        self.proofs.truncate(count);
        self
    }

    pub fn is_called(&self, wanted: &str) -> bool {
        let class = self.class.name();
        wanted == class || wanted == format!("{class}:{}", self.name)
    }

    /// Returns the title of the item, which leads the model to this attack.
    pub fn title(&self) -> String {
        format!("Attack {} now", self.name)
    }

    /// Returns the title of the item that is worked on afterwards.
    pub fn second_title(&self) -> String {
        format!("Look after {} again", self.name)
    }

    pub fn planned(&self) -> Answer {
        let mut plan = Plan::of(&["greet the reader"]).in_environment("python");
        for (field, value) in &self.plan {
            plan = plan.with(field, value.clone());
        }
        for check in &self.checks {
            plan = plan.verified_by(check);
        }
        Answer::plans(plan)
    }

    /// Returns the attack with the words between signs, such as [`MARK`], replaced by what they
    /// stand for.
    pub fn filled(mut self, words: &[(&str, &str)]) -> Self {
        let fill = |text: &str| {
            words
                .iter()
                .fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
        };
        self.head = self.head.as_deref().map(fill);
        self.body = fill(&self.body);
        self.done = fill(&self.done);
        self.told = self.told.as_deref().map(fill);
        self.comments.iter_mut().for_each(|(_, text)| *text = fill(text));
        let answers = self.replies.iter_mut().chain(&mut self.looks);
        for answer in answers.chain(&mut self.reviews) {
            answer.text = answer.text.as_deref().map(fill);
            for (_, args) in &mut answer.calls {
                *args = serde_json::from_str(&fill(&args.to_string())).unwrap_or_default();
            }
        }
        self
    }
}
