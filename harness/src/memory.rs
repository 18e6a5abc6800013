//! The memory of a process, as the kernel counts it, and whether it stays within a bound while the
//! process works on.

/// Returns the bytes that a line of a process' status tells: `VmRSS` for all that is resident,
/// `RssAnon` for that without the pages of files, such as the program's own, and `VmHWM` for the
/// highest `VmRSS` so far. `None` if the process has ended.
pub fn bytes(process: u32, key: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| *name == key)?;
    let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The tasks that one process must have worked on before its memory can be flat: until then it
/// fills what it keeps. What is in use no longer grows after some 160 tasks (docs/reliability.md).
pub const SETTLED_AFTER: usize = 300;

/// The tasks that follow before growth is judged. Over fewer a slow leak hides behind what the runs
/// hold that happen to be at work.
pub const JUDGED_OVER: usize = 150;

/// How much its own memory may grow after that. What is kept of two forges is bounded at 2 MB each,
/// so whatever has settled cannot come to more.
pub const ALLOWANCE: f64 = 4.0;

/// A process' own memory (`RssAnon`) at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The number of the process, of those that worked one after the other.
    pub process: usize,
    /// The tasks that it has finished.
    pub tasks: usize,
    pub megabytes: f64,
}

/// Whether the memory of a process is flat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Course {
    /// It grew by so many megabytes from the first sample to the second, and no more than it may.
    Flat(Sample, Sample),
    /// It grew by more than [`ALLOWANCE`].
    Grows(Sample, Sample),
    /// The last process has worked on too few tasks, this many.
    Unknown(usize),
}

/// Compares the memory of the last process at its end with that after it had settled.
///
/// The middle of a shorter life will not do for the beginning: it lies before the caches are full,
/// and a bounded cache and an endless one grow alike until then.
pub fn course(samples: &[Sample]) -> Course {
    let Some(end) = samples.last() else {
        return Course::Unknown(0);
    };
    let is_settled = |sample: &&Sample| sample.process == end.process && sample.tasks >= SETTLED_AFTER;
    let Some(settled) = samples.iter().find(is_settled) else {
        return Course::Unknown(end.tasks);
    };
    if end.tasks - settled.tasks < JUDGED_OVER {
        return Course::Unknown(end.tasks);
    }
    if end.megabytes - settled.megabytes > ALLOWANCE {
        return Course::Grows(*settled, *end);
    }
    Course::Flat(*settled, *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(process: usize, of_it: &[(usize, f64)]) -> Vec<Sample> {
        let sample = |&(tasks, megabytes): &(usize, f64)| Sample {
            process,
            tasks,
            megabytes,
        };
        of_it.iter().map(sample).collect()
    }

    /// The first as measured (docs/reliability.md), the second as it should be.
    #[test]
    fn memory_that_goes_on_growing_is_not_flat() {
        let growing = [
            (50, 21.0),
            (150, 29.9),
            (300, 32.9),
            (400, 34.3),
            (450, 36.6),
            (500, 38.3),
        ];
        let growing = samples(0, &growing);
        assert_eq!(course(&growing), Course::Grows(growing[2], growing[5]));
        let steady = [
            (50, 21.0),
            (150, 29.9),
            (300, 32.9),
            (400, 34.3),
            (450, 33.5),
            (500, 34.0),
        ];
        let steady = samples(0, &steady);
        assert_eq!(course(&steady), Course::Flat(steady[2], steady[5]));
        let shrinking = samples(0, &[(300, 50.0), (450, 40.0)]);
        assert_eq!(course(&shrinking), Course::Flat(shrinking[0], shrinking[1]));
    }

    #[test]
    fn the_allowance_is_the_last_that_passes() {
        let grown = |megabytes: f64| samples(0, &[(300, 40.0), (450, 40.0 + megabytes)]);
        let just = grown(ALLOWANCE);
        assert_eq!(course(&just), Course::Flat(just[0], just[1]));
        let more = grown(ALLOWANCE + 0.1);
        assert_eq!(course(&more), Course::Grows(more[0], more[1]));
    }

    #[test]
    fn a_process_that_has_not_settled_is_not_judged() {
        assert_eq!(course(&[]), Course::Unknown(0));
        let young = samples(0, &[(6, 20.0), (54, 35.0)]);
        assert_eq!(course(&young), Course::Unknown(54));
        let short = samples(0, &[(300, 20.0), (449, 90.0)]);
        assert_eq!(course(&short), Course::Unknown(449));
        // What an earlier process had is no measure for a later one.
        let mut killed = samples(0, &[(300, 20.0), (460, 20.5)]);
        killed.extend(samples(1, &[(10, 15.0), (60, 30.0)]));
        assert_eq!(course(&killed), Course::Unknown(60));
    }
}
