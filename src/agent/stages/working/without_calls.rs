//! A conversation that was begun with native calls and goes on without: the server takes none.
//!
//! Its calls so far are sent as JSON text, but the system prompt it was begun with says neither how
//! such a reply is written nor which tools there are, and what is stored is never rewritten. So the
//! change is recorded, and another system prompt is sent in the place of the stored one (see
//! [`open_chat`](super::open_chat)). A message with the tools would be lost in a summary.

use crate::agent::dialogue::{self, ReplyForm};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::conversation::decode::files;
use crate::llm::chat::Chat;

const NO_CALLS: &str =
    "Native tool calls are not possible any more. From now on write your replies as the system prompt says.";

/// Has the conversation go on without native calls. One without a reply is not stored, and begins
/// again.
pub(super) async fn go_on(run: &mut Run, chat: &mut Chat) -> Result<(), Interruption> {
    run.claim.record.worked.native = Some(false);
    if !dialogue::is_begun(chat) {
        return Ok(());
    }
    run.claim.record.worked.is_switched = true;
    let words = match ReplyForm::of(&run.claim) {
        ReplyForm::Native | ReplyForm::Json => NO_CALLS.to_owned(),
        ReplyForm::Files => format!("{NO_CALLS}\n{}", files::FORM),
    };
    dialogue::tell(&run.claim, chat, &words);
    dialogue::save(&mut run.claim, chat).await
}
