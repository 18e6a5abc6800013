//! The beginning of the conversation of the work: its system prompt, and the last line of its first
//! message.

use crate::agent::dialogue::ReplyForm;
use crate::agent::prompt::{self, WorkPrompt};
use crate::agent::record::Record;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::project_rules;
use crate::agent::stages::working::first_sight::FirstSight;
use crate::agent::workspace::open;
use crate::conversation::decode::files;

/// Returns the last line of the first message. A small model keeps to what it reads last.
pub(super) fn last_line(record: &Record, form: ReplyForm) -> String {
    let branch = record.head_branch();
    match form {
        ReplyForm::Native | ReplyForm::Json => format!("The branch `{branch}` is checked out. Begin."),
        ReplyForm::Files => files::FORM.to_owned(),
    }
}

/// Returns the system prompt of the work.
pub(super) fn system_prompt(run: &Run, native: bool, seen: &FirstSight) -> Result<String, Interruption> {
    let (name, environment) = open::environment(&run.claim)?;
    let Some(opened) = &run.workspace.open else {
        return Err(Interruption::failed("the workspace is not open"));
    };
    prompt::work(
        &run.claim.services.settings.system_prompt,
        &WorkPrompt {
            native,
            whole_files: ReplyForm::of(&run.claim) == ReplyForm::Files,
            sees_all: seen.is_all,
            fence: &prompt::fence(run.claim.lease.run),
            environment: &name,
            libraries: &environment.libraries,
            network: &prompt::network(&run.claim.services.containers.config, &environment),
            rules: &project_rules::rules_prompt(&run.claim),
            tools: &opened.specs,
            server_prompts: &opened.toolbox.system_prompts(),
        },
    )
    .map_err(|error| Interruption::failed(format!("the system prompt: {error:#}")))
}
