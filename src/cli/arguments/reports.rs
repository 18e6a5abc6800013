//! Arguments of the commands that show what was done, and what it came to.

use chrono::TimeDelta;
use clap::Args;

use super::{TASK_HELP, times};

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Status {
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Print nothing; the exit code is 0 if the service works, else 1
    #[arg(long, conflicts_with = "json")]
    pub quiet: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Evaluations {
    /// Show one with the whole review: the end of its id, as the list has it
    pub id: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Logs {
    #[arg(help = TASK_HELP)]
    pub task: String,

    /// Go on until the run ends
    #[arg(long, short)]
    pub follow: bool,

    /// Print the journal's lines as they are (JSON)
    #[arg(long)]
    pub raw: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Stats {
    /// Only runs that ended in the last hours, days or weeks, such as 12h, 30d or 2w
    #[arg(long, value_name = "PERIOD", value_parser = times::period)]
    pub since: Option<TimeDelta>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
