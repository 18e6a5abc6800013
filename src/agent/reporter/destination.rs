//! Where people are told: the item's comments and labels, or the terminal.

use std::sync::Arc;

use crate::forge::Forge;
use crate::secret::Clean;
use crate::task::labels::Labels;

/// The place a run reports to.
#[derive(Clone)]
pub enum ReportTarget {
    Item {
        forge: Arc<dyn Forge>,
        labels: Labels,
    },
    /// Is told what is going on at this moment. What came of it is for the command to say, at the
    /// end.
    Terminal {
        show: Arc<dyn Fn(&Clean) + Send + Sync>,
    },
}
