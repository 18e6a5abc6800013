//! The events that start work on an item besides the label.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::task::labels::Labels;

/// The events that start work on an item besides the label, which always does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Trigger {
    /// Name of the label that a person puts on to start a run; another way to write
    /// `labels.trigger`.
    pub label: Option<String>,
    /// Whether a run also starts where somebody who may put the label on mentions the bot's account
    /// in a comment, or in the text of an item that they open.
    pub mention: bool,
    /// Whether a run also starts where somebody who may put the label on assigns the item to the
    /// bot's account.
    pub assignment: bool,
}

impl Trigger {
    /// Tells whether anything but the label starts work.
    pub fn is_more_than_label(&self) -> bool {
        self.mention || self.assignment
    }

    /// Writes the label's name to `labels`, unless another name was chosen there.
    pub(crate) fn name_label(&self, labels: &mut Labels) {
        if let Some(label) = &self.label
            && labels.trigger == Labels::default().trigger
        {
            labels.trigger.clone_from(label);
        }
    }
}
