//! The effects on a fake GitLab of labels that are renamed or deleted, and of boxes in a text that
//! are ticked.

use crate::fake::gitlab::state::State;
use crate::fake::gitlab::state::now;
use crate::fake::history::What;

/// Returns GitLab's notes about the boxes that were ticked or cleared, where the same item stands
/// in the same place.
pub fn ticked(before: &str, after: &str) -> Vec<String> {
    fn boxes(text: &str) -> Vec<(bool, &str)> {
        let item = |line| {
            let (sign, words) = str::strip_prefix(line, "- [")?.split_once("] ")?;
            Some((sign != " ", words))
        };
        text.lines().filter_map(item).collect()
    }
    let pairs = boxes(before).into_iter().zip(boxes(after));
    let changed = pairs.filter(|((was, old), (is, new))| old == new && was != is);
    let note = |(is_ticked, words): (bool, &str)| {
        let how = if is_ticked { "completed" } else { "incomplete" };
        format!("marked the checklist item **{words}** as {how}")
    };
    changed.map(|(_, new)| note(new)).collect()
}

impl State {
    /// Gives a label another name, on every item that has it. The history names it by its new name
    /// from then on.
    pub fn rename_label(&mut self, project: &str, from: &str, to: &str) {
        let Some(project) = self.project_mut(project) else {
            return;
        };
        let renamed = project.labels.iter_mut().filter(|label| label.name == from);
        renamed.for_each(|label| {
            to.clone_into(&mut label.name);
            label.updated = now();
        });
        let items = project.issues.values_mut().chain(project.merge_requests.values_mut());
        for item in items {
            let labels = item.labels.iter_mut().filter(|label| *label == from);
            labels.for_each(|label| to.clone_into(label));
            for happening in &mut item.history {
                if let What::Labeled(name) | What::Unlabeled(name) = &mut happening.what
                    && name == from
                {
                    to.clone_into(name);
                }
            }
        }
    }

    /// Deletes a label, and takes it off every item. What the history says of it names no label any
    /// more.
    pub fn delete_label(&mut self, project: &str, name: &str) {
        let gone = format!("{name} (deleted {})", self.next_id());
        self.rename_label(project, name, &gone);
        let Some(project) = self.project_mut(project) else {
            return;
        };
        project.labels.retain(|label| label.name != gone);
        let items = project.issues.values_mut().chain(project.merge_requests.values_mut());
        items.for_each(|item| item.labels.retain(|label| *label != gone));
    }
}
