//! What people say takes effect: words reach the model before its next call, orders change the run.

use super::answers;
use super::budget::Allowance;
use super::order::{self, Heard, Order, Origin};
use super::prompt;
use super::run::Run;
use super::setback::Setback;
use super::thread::Thread;
use crate::forge::Comment;
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::markdown::compose::Page;
use crate::secret::Clean;
use crate::task::command::Command;

impl Run {
    /// Takes the comments that begin the task as heard, and listens to the thread from here on.
    /// Returns what the model is to read of them: commands to the program are left out, and those
    /// that are still to be obeyed are left to the ear with the words below them.
    pub(super) async fn begin_to_listen(&mut self, comments: Vec<Comment>) -> Vec<Comment> {
        let mut ear = self.ear.lock().await;
        let mut has_commands = false;
        let mut for_model = Vec::new();
        for comment in &comments {
            if ear.is_new_command(comment, &self.record.heard) {
                has_commands = true;
                continue;
            }
            let heard = Heard::of(comment);
            self.record.heard.insert(heard.key, heard.fingerprint);
            for_model.extend(order::for_model(comment));
        }
        ear.open(self.record.heard.clone());
        if !has_commands {
            ear.has_looked();
        }
        for_model
    }

    /// Looks at once at all places where people can say something.
    pub(super) async fn listen_now(&self) {
        self.near_ear.lock().await.look().await;
        self.ear.lock().await.look_at_thread().await;
    }

    /// Looks if nobody did for as long as a look is good for.
    pub(super) async fn listen_when_due(&self) {
        self.ear.lock().await.look_when_due().await;
    }

    /// Tells whether people wrote something that the model has not read, looking once more.
    pub(super) async fn has_news(&self) -> bool {
        self.ear.lock().await.look_at_comments().await;
        self.mailbox.has_words()
    }

    /// Obeys what was ordered and gives what was said to the model, each once. Returns the message
    /// with the words, if there were any.
    pub(super) async fn hear(&mut self, chat: &mut Chat) -> Result<Option<Clean>, Setback> {
        let mail = self.mailbox.take();
        for order in mail.orders {
            self.obey(order).await?;
        }
        if mail.words.is_empty() {
            return Ok(None);
        }
        let text = prompt::words(&prompt::fence(self.lease.run), &mail.words);
        let text = self.workshop.redactor.clean(&text);
        chat.send_user_message(&text);
        // Saved with the conversation that holds them.
        for words in mail.words {
            self.record.heard.insert(words.heard.key, words.heard.fingerprint);
        }
        Ok(Some(text))
    }

    /// Takes what is said while the task is planned into the task, for the planner and for the
    /// work.
    pub(super) async fn hear_while_planning(&mut self, chat: &mut Chat) -> Result<(), Setback> {
        if let Some(text) = self.hear(chat).await? {
            self.record.task_text.push('\n');
            self.record.task_text.push_str(text.as_str());
        }
        Ok(())
    }

    /// Follows an order that leaves the run at work.
    async fn obey(&mut self, order: Order) -> Result<(), Setback> {
        let answer = match &order.command {
            Command::Budget(tokens) => {
                self.allow(*tokens);
                answers::allowed(*tokens)
            }
            Command::Resume => answers::NOT_PAUSED.into(),
            Command::Approve(_) | Command::Deny(_) => answers::NOTHING_TO_APPROVE.into(),
            Command::Help | Command::Unknown(_) | Command::Stop | Command::Pause => answers::help(&order.command),
        };
        self.answer(&order, &answer).await
    }

    /// Lets the budgets count from here, with so many tokens.
    pub(super) fn allow(&mut self, tokens: u64) {
        let spent = self.spent();
        self.record.allowance = Some(Allowance { tokens, spent });
    }

    /// Answers an order below the item, and remembers that it was obeyed.
    pub(super) async fn answer(&mut self, order: &Order, page: &Page) -> Result<(), Setback> {
        if let Origin::Comment(heard) | Origin::AboveWords(heard) = order.origin
            && matches!(self.thread, Thread::Item { .. })
        {
            self.say(&format!("reply-{}", heard.key), page).await?;
        }
        self.has_obeyed(order).await
    }

    /// Remembers that an order was obeyed; a crash before repeats it, which changes nothing.
    pub(super) async fn has_obeyed(&mut self, order: &Order) -> Result<(), Setback> {
        self.note(Fact::Ordered {
            by: order.by.clone(),
            command: order.command.to_string(),
        });
        match order.origin {
            Origin::Comment(heard) | Origin::AboveWords(heard) => {
                self.record.heard.insert(heard.key, heard.fingerprint);
                self.save().await
            }
            Origin::Request(request) => {
                self.save().await?;
                Ok(self.workshop.store.answered(request).await?)
            }
        }
    }
}
