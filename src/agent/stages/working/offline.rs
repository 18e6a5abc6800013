//! Tells a model that wants something from the network which it cannot get what there is instead.
//!
//! Small models install what they do not need: one that asked for pytest three times, in a project
//! whose tests need none, was ended for it.

use crate::agent::dialogue;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::open;
use crate::agent::workspace::project_tests;
use crate::agent::workspace::snapshots;
use crate::llm::chat::Chat;
use crate::repository::CommitId;

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
    let test_command = test_command(run).await?;
    let output = open::execute(run, INSTALLED).await?;
    // The last line says how the command ended.
    let listed = output.text.rsplit_once('\n').map_or("", |(listed, _)| listed);
    let text = prompt::offline(listed, test_command.as_deref(), LONGEST);
    dialogue::tell(&run.claim, chat, &text);
    Ok(())
}

/// Returns the command that tests the project, or what the model has made of it.
async fn test_command(run: &mut Run) -> Result<Option<String>, Interruption> {
    // The mirror has no work but what was saved.
    snapshots::snapshot_now(run).await?;
    let project = run.workspace.opened()?.project.clone();
    let mirror = project.mirror();
    let work = mirror.kept_wip(&run.claim.lease.run.to_string()).await?;
    let commits: Vec<&CommitId> = std::iter::once(project.base()).chain(&work).collect();
    let detected = project_tests::commands(mirror, &run.claim, &commits).await?;
    Ok(detected.commands.into_iter().next())
}
