//! Destination of a run's reports: the item's comments and labels, or the terminal.

use std::sync::Arc;

use crate::forge::Forge;
use crate::secret::Clean;
use crate::task::labels::Labels;

/// Destination of a run's reports.
#[derive(Clone)]
pub enum ReportTarget {
    Item {
        forge: Arc<dyn Forge>,
        labels: Labels,
    },
    /// `show` prints the current activity. The result is printed by the command at the end.
    Terminal {
        show: Arc<dyn Fn(&Clean) + Send + Sync>,
    },
}
