//! Figures of the forges: what was asked of them, and whether they can still be searched.

use prometheus::{IntCounterVec, IntGaugeVec, Registry};

use super::{Made, counter, gauge};
use crate::service::Service;

/// The meters of forges.
pub(super) struct ForgeMeters {
    requests: IntCounterVec,
    left: IntGaugeVec,
    searches: IntCounterVec,
    last_good_search: IntGaugeVec,
}

impl ForgeMeters {
    pub(super) fn new(registry: &Registry) -> Made<Self> {
        Ok(Self {
            requests: counter(
                registry,
                "coding_agent_forge_requests_total",
                "Requests that this process sent to a forge, repeats included.",
                &["forge"],
            )?,
            left: gauge(
                registry,
                "coding_agent_forge_requests_left",
                "Requests that a forge still takes until its limit is set anew, by its kinds of requests.",
                &["forge", "kind"],
            )?,
            searches: counter(
                registry,
                "coding_agent_forge_searches_total",
                "Searches of a forge by this process, by outcome.",
                &["forge", "outcome"],
            )?,
            last_good_search: gauge(
                registry,
                "coding_agent_forge_last_good_search_timestamp_seconds",
                "Time of this process's last search of a forge that did not fail.",
                &["forge"],
            )?,
        })
    }

    /// Takes over what the service has counted.
    pub(super) fn look(&self, service: &Service) {
        for (forge, traffic) in service.forge_traffic() {
            let counter = self.requests.with_label_values(&[forge.as_str()]);
            counter.inc_by(traffic.requests.saturating_sub(counter.get()));
            for (kind, left) in traffic.left {
                let gauge = self.left.with_label_values(&[forge.as_str(), kind.as_str()]);
                gauge.set(i64::try_from(left).unwrap_or(i64::MAX));
            }
        }
        for (forge, searches) in service.forge_searches() {
            // All from the beginning: an increase is only seen of a figure that was there.
            let outcomes = [
                ("ok", searches.complete),
                ("incomplete", searches.incomplete),
                ("failed", searches.failed),
            ];
            for (outcome, count) in outcomes {
                let counter = self.searches.with_label_values(&[forge.as_str(), outcome]);
                counter.inc_by(count.saturating_sub(counter.get()));
            }
            if let Some(at) = searches.last_good {
                let gauge = self.last_good_search.with_label_values(&[forge.as_str()]);
                gauge.set(at.timestamp());
            }
        }
    }
}
