//! Tells a model that wants something from the network which it cannot get what there is instead.
//!
//! Small models install what they do not need: one that asked for pytest three times, in a project
//! whose tests need none, was ended for it.

use crate::agent::dialogue;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::open;
use crate::agent::workspace::project_tests::{self, NamedTests};
use crate::llm::chat::Chat;

/// A command that lists the container's programs and libraries in a few lines.
const INSTALLED: &str = r#"{
for name in python3 node npm go cargo java mvn gradle make gcc ruby php; do command -v "$name" >/dev/null && printf '%s ' "$name"; done; echo
timeout 20 python3 -m pip list --format=freeze --disable-pip-version-check | cut -d= -f1 | head -n 80 | paste -sd' ' -
if [ -d node_modules ]; then ls node_modules | head -n 80 | paste -sd' ' -; fi
} 2>/dev/null; true"#;

/// Longest list of what is installed, in bytes.
const LONGEST: usize = 1_500;

/// Tells the model what is installed, and how the project is tested.
pub(crate) async fn advise(run: &mut Run, chat: &mut Chat) -> Result<(), Interruption> {
    let test_command = match project_tests::named(&run.claim) {
        NamedTests::Off => None,
        NamedTests::Command(command) => Some(command),
        NamedTests::Unnamed => {
            let workspace = run.workspace.opened()?.project.clone();
            let detected = project_tests::detected(workspace.mirror(), workspace.base()).await?;
            detected.commands.into_iter().next()
        }
    };
    let output = open::execute(run, INSTALLED).await?;
    // The last line says how the command ended.
    let listed = output.text.rsplit_once('\n').map_or("", |(listed, _)| listed);
    let text = prompt::offline(listed, test_command.as_deref(), LONGEST);
    dialogue::tell(&run.claim, chat, &text);
    Ok(())
}
