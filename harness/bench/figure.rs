//! One measured thing: its values, what they are held against, and the targets they should meet.

use serde::Serialize;

/// A measurement, and how it is judged.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Short and stable: scripts may look for it in the report.
    pub name: &'static str,
    pub unit: &'static str,
    pub whose: Whose,
    pub samples: usize,
    pub least: f64,
    pub median: f64,
    pub p95: f64,
    /// Median of what cannot be avoided, measured in the same run.
    pub floor: Option<f64>,
    /// Median of the ratios of neighbours, which is steadier than the ratio of the medians.
    pub ratio: Option<f64>,
    /// Median of what the peer needs for the same, measured in the same run.
    pub peer: Option<f64>,
    /// How many times as much that is: the median of the ratios of neighbours.
    pub gain: Option<f64>,
    /// The most that the median should be.
    pub target: Option<f64>,
    /// The most that the ratio should be.
    pub target_ratio: Option<f64>,
    /// The least that the gain should be.
    pub target_gain: Option<f64>,
    /// The single values, in the order in which they were measured.
    pub values: Vec<f64>,
}

/// The thing that was measured: the program, or something it is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    Program,
    Floor,
    Peer,
}

impl Figure {
    /// Returns the figure of some values of the program; there must be one at least.
    pub fn of(name: &'static str, unit: &'static str, values: &[f64]) -> anyhow::Result<Self> {
        anyhow::ensure!(!values.is_empty(), "nothing was measured for '{name}'");
        let sorted = sorted(values);
        Ok(Self {
            name,
            unit,
            whose: Whose::Program,
            samples: values.len(),
            least: sorted[0],
            median: quantile(&sorted, 50),
            p95: quantile(&sorted, 95),
            floor: None,
            ratio: None,
            peer: None,
            gain: None,
            target: None,
            target_ratio: None,
            target_gain: None,
            values: values.to_vec(),
        })
    }

    /// Says that something else than the program was measured.
    pub fn by(mut self, whose: Whose) -> Self {
        self.whose = whose;
        self
    }

    /// Holds each value against the one of the floor that was measured beside it.
    pub fn over(mut self, floor: &[f64]) -> Self {
        self.floor = Some(median(floor));
        self.ratio = Some(median_ratio(&self.values, floor));
        self
    }

    /// Holds each value against the one of the peer that was measured beside it.
    pub fn beside(mut self, peer: &[f64]) -> Self {
        self.peer = Some(median(peer));
        // Of nothing there are no multiples.
        self.gain = Some(median_ratio(peer, &self.values)).filter(|gain| gain.is_finite());
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

    /// The peer should need this many times as much.
    pub fn at_least_gaining(mut self, target: f64) -> Self {
        self.target_gain = Some(target);
        self
    }

    /// Returns how much of each target is used up, with what the target is for: 1 is just met, more
    /// is a miss.
    pub fn used(&self) -> Vec<(&'static str, f64)> {
        let shares = [
            self.target.map(|target| ("median", self.median / target)),
            self.target_ratio
                .zip(self.ratio)
                .map(|(target, ratio)| ("ratio", ratio / target)),
            self.target_gain
                .zip(self.gain)
                .map(|(target, gain)| ("gain", target / gain)),
        ];
        shares.into_iter().flatten().collect()
    }

    /// Tells whether the targets are met; `None` where there is none.
    pub fn is_met(&self) -> Option<bool> {
        let used = self.used();
        (!used.is_empty()).then(|| used.iter().all(|(_, share)| *share <= 1.0))
    }
}

fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 50)
}

fn median_ratio(values: &[f64], others: &[f64]) -> f64 {
    let ratios: Vec<f64> = values.iter().zip(others).map(|(value, other)| value / other).collect();
    median(&ratios)
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
