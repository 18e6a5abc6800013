//! Checks of the section on approvals.

use std::path::{Component, Path};

use super::check_positive;
use crate::config::Config;
use crate::config::fault::Faults;

/// One day, in minutes: automatic approval is for the time that somebody has an eye on it.
const LONGEST_MINUTES: u32 = 24 * 60;

pub(super) fn check(config: &Config, faults: &mut Faults) {
    let approval = &config.approval;
    if let Some(limit) = approval.cost_limit_usd {
        let key = "approval.cost_limit_usd";
        if !(limit.is_finite() && limit > 0.0) {
            faults.at(key, "must be a number above 0");
        } else if config.prices().is_empty() {
            faults.at(key, "needs prices; give budget.prices, or prices of the models");
        }
    }
    if approval.plan == Some(true) && !config.planning.enabled {
        let reason = "there is no plan to wait with where planning.enabled is false; set one of them otherwise";
        faults.at("approval.plan", reason);
    }
    let auto = &approval.auto_approve;
    check_positive("approval.auto_approve.ttl_minutes", auto.ttl_minutes.into(), faults);
    if auto.ttl_minutes > LONGEST_MINUTES {
        let reason = format!("must be at most {LONGEST_MINUTES}");
        faults.at("approval.auto_approve.ttl_minutes", reason);
    }
    for prefix in auto.allowed_paths_prefix.iter().filter(|prefix| !is_from_top(prefix)) {
        let reason =
            format!("'{prefix}' must be a path from the top of the repository, such as docs/, and without . and ..");
        faults.at("approval.auto_approve.allowed_paths_prefix", reason);
    }
    for tool in &auto.tools {
        let names = tool.split_once('/');
        if names.is_none_or(|(server, tool)| server.is_empty() || tool.is_empty()) {
            let reason = format!("'{tool}' must name a server and its tool, such as time/now");
            faults.at("approval.auto_approve.tools", reason);
        }
    }
}

/// The empty prefix is refused as well: it would allow every path.
fn is_from_top(prefix: &str) -> bool {
    let mut parts = Path::new(prefix).components();
    !prefix.is_empty() && !prefix.starts_with("./") && parts.all(|part| matches!(part, Component::Normal(_)))
}
