//! One measured thing: its values, the floor it is held against, and the target it should meet.

use serde::Serialize;

/// What was measured, and how it is judged.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Short and stable: scripts may look for it in the report.
    pub name: &'static str,
    pub unit: &'static str,
    pub samples: usize,
    pub least: f64,
    pub median: f64,
    pub p95: f64,
    /// Median of what cannot be avoided, measured in the same run.
    pub floor: Option<f64>,
    /// Median of the ratios of neighbours, which is steadier than the ratio of the medians.
    pub ratio: Option<f64>,
    /// What the median should be at most.
    pub target: Option<f64>,
    /// What the ratio should be at most.
    pub target_ratio: Option<f64>,
}

impl Figure {
    /// Returns the figure of some values; there must be one at least.
    pub fn of(name: &'static str, unit: &'static str, values: &[f64]) -> anyhow::Result<Self> {
        anyhow::ensure!(!values.is_empty(), "nothing was measured for '{name}'");
        let sorted = sorted(values);
        Ok(Self {
            name,
            unit,
            samples: values.len(),
            least: sorted[0],
            median: quantile(&sorted, 50),
            p95: quantile(&sorted, 95),
            floor: None,
            ratio: None,
            target: None,
            target_ratio: None,
        })
    }

    /// Holds each value against the one of the floor that was measured beside it.
    pub fn over(mut self, values: &[f64], floor: &[f64]) -> Self {
        let ratios: Vec<f64> = values.iter().zip(floor).map(|(value, least)| value / least).collect();
        self.floor = Some(quantile(&sorted(floor), 50));
        self.ratio = Some(quantile(&sorted(&ratios), 50));
        self
    }

    pub fn at_most(mut self, target: f64) -> Self {
        self.target = Some(target);
        self
    }

    pub fn at_most_times(mut self, target: f64) -> Self {
        self.target_ratio = Some(target);
        self
    }

    /// Tells whether the targets are met; `None` where there is none.
    pub fn is_met(&self) -> Option<bool> {
        let kept = |target: Option<f64>, value: Option<f64>| Some(value? <= target?);
        let (value, ratio) = (
            kept(self.target, Some(self.median)),
            kept(self.target_ratio, self.ratio),
        );
        match (value, ratio) {
            (None, None) => None,
            (value, ratio) => Some(value.unwrap_or(true) && ratio.unwrap_or(true)),
        }
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The smallest value that this many percent of the values do not exceed.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}
