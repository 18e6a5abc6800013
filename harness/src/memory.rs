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
/// fills what it keeps. The pages of the forges reach their bound between the 144th and the 169th
/// task (docs/reliability.md).
pub const SETTLED_AFTER: usize = 150;

/// The tasks that follow before growth is judged. Over fewer a slow leak hides behind what the runs
/// hold that happen to be at work.
pub const JUDGED_OVER: usize = 70;

/// How much its own memory may grow after that. What is kept of two forges is bounded at 2 MB each,
/// so whatever has settled cannot come to more; measured were 1.4 MB with this bound, and 5.3 MB
/// with one that was never reached.
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
/// The middle of its life will not do for the beginning: with 250 tasks it lies before the caches
/// are full, and a bounded cache and an endless one grow alike until then (6.3 and 7.4 MB).
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

    /// Both as measured, in docs/reliability.md.
    #[test]
    fn a_bounded_cache_is_flat_and_an_endless_one_is_not() {
        let endless = [
            (9, 24.3),
            (59, 35.9),
            (109, 42.5),
            (159, 46.1),
            (209, 48.9),
            (259, 51.4),
        ];
        let endless = samples(3, &endless);
        assert_eq!(course(&endless), Course::Grows(endless[3], endless[5]));
        let bounded = [
            (25, 25.8),
            (96, 37.4),
            (144, 43.7),
            (169, 45.4),
            (193, 46.3),
            (216, 46.2),
            (240, 46.8),
        ];
        let bounded = samples(3, &bounded);
        assert_eq!(course(&bounded), Course::Flat(bounded[3], bounded[6]));
        let shrinking = samples(0, &[(150, 50.0), (220, 40.0)]);
        assert_eq!(course(&shrinking), Course::Flat(shrinking[0], shrinking[1]));
    }

    #[test]
    fn the_allowance_is_the_last_that_passes() {
        let grown = |megabytes: f64| samples(0, &[(150, 40.0), (250, 40.0 + megabytes)]);
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
        let short = samples(0, &[(150, 20.0), (219, 90.0)]);
        assert_eq!(course(&short), Course::Unknown(219));
        // What an earlier process had is no measure for a later one.
        let mut killed = samples(0, &[(150, 20.0), (240, 20.5)]);
        killed.extend(samples(1, &[(10, 15.0), (60, 30.0)]));
        assert_eq!(course(&killed), Course::Unknown(60));
    }
}
