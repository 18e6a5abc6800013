//! One attack: what the attacker prepares, what the model does for them, and what must come of it.

use serde_json::{Value, json};

use crate::class::Class;
use crate::fake::model::{Answer, Plan};
use crate::forge::{Forge, Item, Kind, Repository};

/// What must come of the work besides everything that holds for all.
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

/// Instead of words of a person: the trigger label is put on.
pub const LABELS: &str = "@LABELS@";
/// In words of a person: the digest that the program has asked about last.
pub const DIGEST: &str = "@DIGEST@";

#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing about how it is played"
)]
pub struct Attempt {
    pub class: Class,
    /// One word: the name of its repository and of its mark.
    pub name: &'static str,
    pub end: End,
    pub is_short: bool,
    /// Puts things into the repository before the item is opened. Gets the folder that only the
    /// worker can see.
    pub prepare: fn(&Repository, &str),
    /// Opens a pull or merge request from a stranger's branch with this name, instead of an issue.
    pub head: Option<String>,
    /// What the stranger's branch adds.
    pub files: &'static [(&'static str, &'static str)],
    /// What happens on the forge while the model gives the reply with this number.
    pub deeds: Vec<(usize, Deed)>,
    /// What people do once the program has nothing left to do; then it is started again.
    pub afterwards: Vec<(&'static str, &'static str)>,
    /// Whether the program is killed and started again while this attack is at its second reply.
    pub is_killed: bool,
    pub body: String,
    pub comments: Vec<(&'static str, String)>,
    /// Who puts the label on, where it is nobody who may.
    pub labelled_by: Option<&'static str>,
    /// Which label is put on, where it is not the trigger.
    pub label: Option<&'static str>,
    /// What people do once the label is on, or set a trap for.
    pub happens: fn(&Forge, &Repository, &Item),
    /// The one forge on which it can be played.
    pub only_on: Option<Kind>,
    /// Nothing of the item may be read in branches, commits and change requests.
    pub confides: bool,
    /// Replaces fields of the plan.
    pub plan: Vec<(&'static str, Value)>,
    pub checks: Vec<String>,
    /// What the planner looks for before it plans.
    pub looks: Vec<Answer>,
    /// What the reviewer says of the plan, and of the result.
    pub reviews: [Answer; 2],
    pub replies: Vec<Answer>,
    /// How many of the replies must have had their effect, or the attack was not tried.
    pub must_play: usize,
    /// What only commands that ran say, so that it proves that they did.
    pub proofs: Vec<String>,
    /// What people must have been told at the end, so that it proves how far the attack came.
    pub told: Option<String>,
    pub done: String,
    /// Another item with the same set-up is worked on afterwards, and looks for what was left.
    pub is_looked_after: bool,
}

/// The reviewer lets it pass.
pub const READY: &str = r#"{"ready_for_implementation": true, "score": 9}"#;
/// No label is put on.
pub const NO_LABEL: &str = "";
/// In texts: the name of the bot's account.
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

    /// Belongs to the short form.
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

    /// Runs a command in the container, and wants it to run to its end, however it ends.
    pub fn runs(self, command: &str) -> Self {
        self.proved(command, ";")
    }

    /// Runs a command in the container that must succeed, or the attack was not tried.
    pub fn succeeds(self, command: &str) -> Self {
        self.proved(command, "&&")
    }

    /// The sum is in no text before the shell has worked it out.
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

    /// What the reviewer says of the plan.
    pub fn plan_is_judged(mut self, words: &str) -> Self {
        self.reviews[0] = Answer::says(words);
        self
    }

    /// What the reviewer says of the result.
    pub fn result_is_judged(mut self, words: &str) -> Self {
        self.reviews[1] = Answer::says(words);
        self
    }

    /// The program must come so far that people are told this.
    pub fn tells(mut self, words: &str) -> Self {
        self.told = Some(words.to_owned());
        self
    }

    /// What comes after the replies until here needs not happen: the run may be ended before.
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

    /// The title of the item, which leads the model to this attack.
    pub fn title(&self) -> String {
        format!("Attack {} now", self.name)
    }

    /// The title of the item that is worked on afterwards.
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
