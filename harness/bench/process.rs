//! The resources that a process has used: processor time and memory, as the kernel counts them.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::memory;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use wait4::Wait4;

/// The first argument that makes this program a meter.
pub const METER: &str = "meter";

/// The time between two looks at a process' peak. The kernel keeps the peak, so only what comes
/// after the last look is missed.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The resources that one process has used from its start to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Used {
    pub code: Option<i32>,
    pub wall: Duration,
    pub processor: Duration,
    pub peak_bytes: u64,
}

/// Runs `command` below a meter and returns what it has used. What it prints is shown when it
/// fails.
pub fn used(command: &Command) -> anyhow::Result<Used> {
    let mut meter = Command::new(std::env::current_exe()?);
    meter.arg(METER).arg(command.get_program()).args(command.get_args());
    meter.env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            meter.env(name, value);
        }
    }
    if let Some(folder) = command.get_current_dir() {
        meter.current_dir(folder);
    }
    let output = meter.stdin(Stdio::null()).output()?;
    let used: Used = serde_json::from_slice(&output.stdout).context("the meter did not say what it measured")?;
    anyhow::ensure!(
        used.code == Some(0),
        "the program ended with {:?}: {}",
        used.code,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(used)
}

/// Runs the meter: a small process between the bench and the program. The kernel counts the memory
/// of the process that starts another as that one's own first peak, and the bench is larger than
/// what it measures.
pub fn meter(command: &[String]) -> ExitCode {
    match metered(command) {
        Ok(used) => {
            println!("{}", serde_json::to_string(&used).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn metered(command: &[String]) -> anyhow::Result<Used> {
    let (program, arguments) = command.split_first().context("there is nothing to measure")?;
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("{program} cannot be started"))?;
    let ended = child.wait4()?;
    Ok(Used {
        code: ended.status.code(),
        wall: begun.elapsed(),
        processor: ended.rusage.utime + ended.rusage.stime,
        peak_bytes: ended.rusage.maxrss,
    })
}

/// Watches the peak of a process' memory until it has ended; its children do not count.
pub fn peak_bytes(process: u32) -> JoinHandle<u64> {
    tokio::spawn(async move {
        let mut peak = 0;
        while let Some(bytes) = memory::bytes(process, "VmHWM") {
            peak = bytes;
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        peak
    })
}

/// Returns the processor time that a process and all of its threads have used so far.
pub fn processor_now(process: u32) -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before may hold anything, brackets too. Behind it `utime` is the 12th field and
    // `stime` the 13th.
    let fields = text.rsplit_once(')').map(|(_, fields)| fields.split_whitespace());
    let ticks = fields.into_iter().flatten().skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<_, _>>().context("the kernel tells no times")?;
    // A hundredth of a second on every Linux that programs are built for.
    Ok(Duration::from_millis(ticks * 10))
}

/// Returns the memory that a process has now.
pub fn resident_now(process: u32) -> anyhow::Result<u64> {
    memory::bytes(process, "VmRSS").context("the process has ended")
}

/// Returns the memory that a process has now and that is its own: without the files it has open,
/// its own text among them.
pub fn own_now(process: u32) -> anyhow::Result<u64> {
    memory::bytes(process, "RssAnon").context("the process has ended")
}
