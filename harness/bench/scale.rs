//! How much is measured: everything, or just enough to see that the bench works.

/// The extent of one run of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Full,
    /// Few turns and short watches: what it says of times is not worth keeping.
    Short,
}

impl Scale {
    /// Returns the full extent of something, or the short one.
    pub fn of<T>(self, full: T, short: T) -> T {
        match self {
            Self::Full => full,
            Self::Short => short,
        }
    }
}
