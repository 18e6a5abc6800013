//! OPS: a command of the configured list is run, and no other.

use std::time::Duration;

use crate::chat::phrases::Phrase;
use crate::chat::services::ChatServices;
use crate::config::chat::OpsCommand;
use crate::messenger::place::Incoming;
use crate::routing::text;
use crate::store::StoreError;
use crate::tool::program::Program;

/// Name of the folder below the state's in which commands get folders of their own.
const FOLDER: &str = "operations";
/// Most bytes of the output that are said.
const LONGEST_OUTPUT: usize = 2_000;

/// Runs the command that a request names; returns what the person is told. Where a model worded the
/// request, the name stands in `own`, the person's own words, as well, also between backticks, as
/// people write names: a model finds it there, and chooses none. Once begun for a message, a
/// command is not run again for it, whatever came of it.
pub(in crate::chat) async fn operate(
    services: &ChatServices,
    incoming: &Incoming,
    own: &str,
    request: &str,
    is_japanese: bool,
) -> Result<String, StoreError> {
    let commands = &services.service.config().chat.ops;
    let list: Vec<String> = commands
        .iter()
        .map(|(name, command)| format!("- `{name}` {}", command.description))
        .collect();
    let list = list.join("\n");
    let mut words = request.split_whitespace();
    let Some(name) = words.next() else {
        return Ok(Phrase::OpsList(&list).in_words(is_japanese));
    };
    // A name with anything behind it is no name: arguments are never taken.
    let command = commands.get(name).filter(|_| words.next().is_none());
    let own = text::folded(&text::own_text(own));
    let command = command.filter(|_| text::holds(&own, name));
    let Some(command) = command else {
        return Ok(Phrase::OpsUnknown(&list).in_words(is_japanese));
    };
    if !services.first_time(incoming, name).await? {
        return Ok(Phrase::OpsInterrupted(name).in_words(is_japanese));
    }
    let program = program(services, command);
    let said = match program.answer(&services.service.clean("")).await {
        Ok(output) => {
            let output = services.service.clean_cut(output.trim(), LONGEST_OUTPUT);
            format!("`{name}`\n```\n{}\n```", output.replace("```", "ʼʼʼ"))
        }
        Err(error) => Phrase::CannotNow(&error.to_string()).in_words(is_japanese),
    };
    Ok(said)
}

fn program(services: &ChatServices, command: &OpsCommand) -> Program {
    let settings = services.service.settings();
    Program::new(
        command.command.clone(),
        command.env.clone(),
        Duration::from_secs(command.timeout_seconds),
        &settings.program,
        &settings.state_dir.join(FOLDER),
    )
}
