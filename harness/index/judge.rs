//! How good a list of files is, by the files that are right.

/// The score over many lists of results.
#[derive(Debug, Default, Clone)]
pub struct Score {
    ranks: Vec<Option<usize>>,
}

impl Score {
    /// Counts a list: the place of the first file that is right.
    pub fn take(&mut self, list: &[String], right: &[String]) {
        self.take_place(list.iter().position(|path| right.contains(path)));
    }

    /// Counts a list by the place of the first that is right, from 0.
    pub fn take_place(&mut self, place: Option<usize>) {
        self.ranks.push(place);
    }

    /// Returns the number of lists.
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the share of lists whose first right one is among so many.
    pub fn within(&self, places: usize) -> f64 {
        let hits = self
            .ranks
            .iter()
            .filter(|rank| rank.is_some_and(|rank| rank < places))
            .count();
        share(hits, self.ranks.len())
    }

    /// Returns the mean of the inverse of the place.
    pub fn mrr(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "places of a list")]
        let sum: f64 = self.ranks.iter().flatten().map(|rank| 1.0 / (*rank + 1) as f64).sum();
        #[expect(clippy::cast_precision_loss, reason = "a count of lists")]
        let count = self.ranks.len().max(1) as f64;
        sum / count
    }

    pub fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} |",
            self.count(),
            self.within(1),
            self.within(3),
            self.within(5),
            self.within(10),
            self.mrr()
        )
    }
}

/// The head of the table that the rows belong to.
pub const HEAD: &str = "| | questions | R@1 | R@3 | R@5 | R@10 | MRR |\n|---|---:|---:|---:|---:|---:|---:|";

#[expect(clippy::cast_precision_loss, reason = "counts")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
