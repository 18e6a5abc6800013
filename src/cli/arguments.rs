//! Command-line definitions and help texts; what the commands do is in the files beside this one.

mod times; // times with their units
mod code; // the code index of a folder
mod reports; // what was done, and what it came to

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use chrono::TimeDelta;
use clap::Args;
use clap::Parser;
use clap::Subcommand;
use clap_complete::Shell;

use crate::approval::digest::Beginning;
use crate::cli::exit;
use crate::task::command;
pub use code::{IndexCommand, Search};
pub use reports::{Evaluations, Logs, Stats, Status};

const EXIT_CODES: &str = "\
Exit codes:
   0  success; for `run` also: another run is active, nothing was done
   1  the task failed, or a check found something bad
   2  a policy refused the task
   3  the model's replies stayed unreadable
  64  wrong usage
  78  wrong configuration
 130  ended by a second signal, or at the end of the grace period; `run --task` by the first signal";

const EXAMPLES: &str = "\
Examples:
  coding-agent run                                    one round, for cron
  coding-agent run --task \"Fix the failing test\"      work on this folder, without a forge
  coding-agent run --task \"...\" --dry-run             only show the changes
  coding-agent serve                                  work until stopped
  coding-agent doctor                                 is everything there?
  coding-agent logs github:owner/repo#12 --follow     watch a task";

const CONFIG_HELP: &str =
    "Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or /etc/coding-agent/config.yaml]";

const TASK_HELP: &str = "E.g. github:owner/repo#12, gitlab:group/project#34, 'gitlab:group/project!34', local:<id>";

const RUN_HELP: &str = "\
Find labelled items, work on them until none is left, and end.

This is what cron calls. A second `run` on the same state folder ends at once.

With --task it works on a folder of this machine instead: on a copy of it, in a container. The changes \
are shown and, unless --dry-run is given, applied to the folder. Only the changes go to stdout, as a patch. \
No configuration file is needed for that: the model is taken from OPENAI_API_KEY, OPENAI_BASE_URL, \
OLLAMA_HOST, LMSTUDIO_BASE_URL or ANTHROPIC_API_KEY, the first that is set. A config.yaml in the folder \
that is worked on counts only if --config names it.";

const PAUSE_HELP: &str = "After `pause --all` no new task is begun either, until `resume --all`.";

const INDEX_HELP: &str = "\
Bring the code index of a folder up to date.

Functions, classes, sections and keys of all files that git does not ignore, committed or not. Nothing in the \
folder is changed; the index lies in the state folder. `coding-agent search` does this by itself.";

const MCP_HELP: &str = "\
Evaluate documents for other programs, as an MCP server on stdin and stdout.

Its tools evaluate_document and evaluate_documents ask the reviewer that the configuration names whether a \
plan or another document is ready, and answer with a score from 0 to 10 and what stands in the way. \
search_code, ingest_code and prune_code search the code index of a folder, and say what is in it. Put \
`coding-agent mcp` into the MCP configuration of the program that writes the documents.";

/// Label an issue on GitHub or GitLab, get a verified pull request.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(
    name = "coding-agent",
    version,
    after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
    max_term_width = 100
)]
pub struct Arguments {
    /// The configuration file.
    #[arg(long, global = true, value_name = "PATH", help = CONFIG_HELP)]
    pub config: Option<PathBuf>,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Find labelled items, work on them until none is left, and end
    #[command(long_about = RUN_HELP, after_help = EXIT_CODES)]
    Run(Run),
    /// Find and work on labelled items until stopped
    Serve,
    /// Only find labelled items and queue them, until stopped
    Produce,
    /// Only work on what has been found, until stopped
    Consume,
    /// Serve the dashboard and the API until stopped; nothing is worked on
    Dashboard {
        /// Address and port, instead of http.listen [default: 127.0.0.1:8420]
        #[arg(long, value_name = "ADDRESS")]
        listen: Option<SocketAddr>,
    },
    /// Set a task aside at its next safe point, or with --all every task
    #[command(after_help = PAUSE_HELP)]
    Pause(Which),
    /// Let a paused task go on, or with --all every task that --all paused
    Resume(Which),
    /// End a task for good; what was done stays on a branch
    Stop {
        #[arg(help = TASK_HELP)]
        task: String,
    },
    /// Allow a plan or result that waits for approval
    Approve {
        #[arg(help = TASK_HELP)]
        task: String,
        /// The beginning of the digest that the question names, 8 to 64 digits; without it, what
        /// waits now
        digest: Option<Beginning>,
    },
    /// Refuse a plan or result that waits for approval
    Deny {
        #[arg(help = TASK_HELP)]
        task: String,
        /// Why
        reason: Option<String>,
    },
    /// Let results within the configured scope pass without a person, for a time
    AutoApprove {
        #[command(subcommand)]
        command: AutoApprove,
    },
    /// Let a task use more tokens, and go on if it waits for that
    Budget {
        #[arg(help = TASK_HELP)]
        task: String,
        /// Tokens from now on, such as 500k or 2M
        #[arg(value_parser = |text: &str| command::tokens(text).ok_or("write a number such as 500000, 500k or 2M"))]
        tokens: u64,
    },
    /// Erase everything that is stored of a finished task
    Forget {
        #[arg(help = TASK_HELP)]
        task: String,
    },
    /// Show what is queued, active and finished
    Status(Status),
    /// Show what happened in a task
    Logs(Logs),
    /// Show figures over many runs: success, duration, tokens, refusals, repairs
    Stats(Stats),
    /// Bring the code index of a folder up to date
    #[command(long_about = INDEX_HELP, args_conflicts_with_subcommands = false)]
    Index {
        /// The folder [default: the current one]
        #[arg(long, value_name = "DIR", global = true)]
        root: Option<PathBuf>,

        #[command(subcommand)]
        command: Option<IndexCommand>,
    },
    /// Find the places of a folder that fit a question best
    Search(Search),
    /// Evaluate documents for other programs, as an MCP server on stdin and stdout
    #[command(long_about = MCP_HELP)]
    Mcp,
    /// Show documents that other programs had evaluated
    Evaluations(Evaluations),
    /// Check everything a run needs, and say how to fix what is missing
    #[command(after_help = EXIT_CODES)]
    Doctor(Doctor),
    /// Check or describe the configuration file
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Move the store to a database that several machines share
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Print a completion script for a shell
    ///
    /// For bash, in ~/.bashrc: source <(coding-agent completions bash)
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages of all commands into a folder
    ///
    /// Where they are found: coding-agent manual /usr/local/share/man/man1
    Manual {
        /// The folder; it is made where it is missing
        folder: PathBuf,
    },
    /// Print the version, as --version does
    #[command(hide = true)]
    Version,
    /// Run an MCP server that ends with this program (used by the program itself)
    #[command(hide = true)]
    McpGuard {
        /// Mode mask of the server, in octal digits
        #[arg(long, value_parser = |digits: &str| u32::from_str_radix(digits, 8))]
        mask: Option<u32>,
        /// File that the server reads as its stdin
        #[arg(long)]
        input: Option<PathBuf>,
        /// Program and arguments
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Run {
    /// Work on this instead of labelled items; `-` reads it from stdin
    #[arg(long, value_name = "TEXT", help_heading = "Local task")]
    pub task: Option<String>,

    /// Folder to work on [default: the current one]
    #[arg(long, value_name = "DIR", requires = "task", help_heading = "Local task")]
    pub root: Option<PathBuf>,

    /// Show the changes and leave the folder as it is
    #[arg(long, requires = "task", help_heading = "Local task")]
    pub dry_run: bool,

    /// Execution environment, instead of the one the plan selects
    #[arg(long, value_name = "NAME", requires = "task", help_heading = "Local task")]
    pub environment: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(required = true, multiple = false)]
pub struct Which {
    #[arg(help = TASK_HELP)]
    pub task: Option<String>,

    /// All tasks
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum AutoApprove {
    /// Switch it on, for a time
    On {
        /// How long, such as 30m or 2h; without it as long as the configuration allows
        #[arg(long, value_name = "TIME", value_parser = times::time_to_live)]
        ttl: Option<TimeDelta>,
    },
    /// Switch it off, at once
    Off,
    /// Print whether it is on
    Status,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Doctor {
    /// Also ask the model for a reply, and send it a prompt as long as its window to see whether
    /// all of it arrives; with a paid model this costs as much as that prompt
    #[arg(long)]
    pub model: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Report everything that is wrong in the file, with line and column
    Check,
    /// Print the file's JSON Schema, for editors
    Schema,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum StoreCommand {
    /// Copy the store in the file to a PostgreSQL database, and compare the two
    ///
    /// Stop all workers first. Broken off, it goes on where it was at the next call. The file is
    /// left as it was.
    Migrate(MoveStore),
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct MoveStore {
    /// Address of the database, without a password [default: `store.url`]
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,

    /// File with the password of its user [default: `store.password_file`]
    #[arg(long, value_name = "PATH")]
    pub password_file: Option<PathBuf>,
}

/// Parses the command line. Help, the version and what is wrong are errors that print themselves.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(arguments)
}

/// Returns the exit code of a command line that was not parsed.
pub fn exit_code(error: &clap::Error) -> u8 {
    if error.use_stderr() { exit::USAGE } else { exit::SUCCESS }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn read(line: &str) -> Result<Arguments, u8> {
        parse(line.split_whitespace().map(OsString::from)).map_err(|error| exit_code(&error))
    }

    fn command(line: &str) -> Command {
        read(line).unwrap().command
    }

    fn help(name: &str) -> String {
        let mut root = Arguments::command().term_width(100);
        root.build();
        root.find_subcommand_mut(name).unwrap().render_long_help().to_string()
    }

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_local_task_has_its_own_options() {
        let expected = Run {
            task: Some("Greet".to_owned()),
            root: Some(PathBuf::from("there")),
            dry_run: true,
            environment: Some("go".to_owned()),
        };
        let line = "coding-agent run --task Greet --root there --dry-run --environment go";
        assert_eq!(command(line), Command::Run(expected));
        assert_eq!(read("coding-agent run --dry-run"), Err(exit::USAGE));
    }

    #[test]
    fn the_configuration_can_be_named_before_and_after_the_command() {
        for line in [
            "coding-agent --config a.yaml serve",
            "coding-agent serve --config a.yaml",
        ] {
            assert_eq!(read(line).unwrap().config, Some(PathBuf::from("a.yaml")));
        }
    }

    #[test]
    fn the_guard_takes_the_rest_of_the_line_as_it_is() {
        let expected = ["npx", "-y", "server", "--config", "x"].map(OsString::from).to_vec();
        let line = "coding-agent mcp-guard --mask 22 -- npx -y server --config x";
        let guard = Command::McpGuard {
            mask: Some(0o22),
            input: None,
            command: expected,
        };
        assert_eq!(command(line), guard);
    }

    #[test]
    fn wrong_usage_is_64_and_asking_for_help_is_success() {
        for line in [
            "coding-agent",
            "coding-agent fly",
            "coding-agent logs",
            "coding-agent status --json --quiet",
        ] {
            assert_eq!(read(line), Err(exit::USAGE), "{line}");
        }
        for line in [
            "coding-agent --help",
            "coding-agent --version",
            "coding-agent run --help",
            "coding-agent help",
            "coding-agent help status",
            "coding-agent config help check",
        ] {
            assert_eq!(read(line), Err(0), "{line}");
        }
    }

    #[test]
    fn the_help_reads_well() {
        let help = Arguments::command().term_width(100).render_help().to_string();
        insta::assert_snapshot!(help, @r#"
        Label an issue on GitHub or GitLab, get a verified pull request

        Usage: coding-agent [OPTIONS] <COMMAND>

        Commands:
          run           Find labelled items, work on them until none is left, and end
          serve         Find and work on labelled items until stopped
          produce       Only find labelled items and queue them, until stopped
          consume       Only work on what has been found, until stopped
          dashboard     Serve the dashboard and the API until stopped; nothing is worked on
          pause         Set a task aside at its next safe point, or with --all every task
          resume        Let a paused task go on, or with --all every task that --all paused
          stop          End a task for good; what was done stays on a branch
          approve       Allow a plan or result that waits for approval
          deny          Refuse a plan or result that waits for approval
          auto-approve  Let results within the configured scope pass without a person, for a time
          budget        Let a task use more tokens, and go on if it waits for that
          forget        Erase everything that is stored of a finished task
          status        Show what is queued, active and finished
          logs          Show what happened in a task
          stats         Show figures over many runs: success, duration, tokens, refusals, repairs
          index         Bring the code index of a folder up to date
          search        Find the places of a folder that fit a question best
          mcp           Evaluate documents for other programs, as an MCP server on stdin and stdout
          evaluations   Show documents that other programs had evaluated
          doctor        Check everything a run needs, and say how to fix what is missing
          config        Check or describe the configuration file
          store         Move the store to a database that several machines share
          completions   Print a completion script for a shell
          manual        Write the manual pages of all commands into a folder
          help          Print this message or the help of the given subcommand(s)

        Options:
              --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                               /etc/coding-agent/config.yaml]
          -h, --help           Print help
          -V, --version        Print version

        Examples:
          coding-agent run                                    one round, for cron
          coding-agent run --task "Fix the failing test"      work on this folder, without a forge
          coding-agent run --task "..." --dry-run             only show the changes
          coding-agent serve                                  work until stopped
          coding-agent doctor                                 is everything there?
          coding-agent logs github:owner/repo#12 --follow     watch a task

        Exit codes:
           0  success; for `run` also: another run is active, nothing was done
           1  the task failed, or a check found something bad
           2  a policy refused the task
           3  the model's replies stayed unreadable
          64  wrong usage
          78  wrong configuration
         130  ended by a second signal, or at the end of the grace period; `run --task` by the first signal
        "#);
    }

    #[test]
    fn the_help_of_pause_alone_says_that_no_new_task_is_begun() {
        let words = "no new task is begun";
        assert!(help("pause").contains(words), "{}", help("pause"));
        assert!(!help("resume").contains(words), "{}", help("resume"));
    }

    #[test]
    fn the_help_of_run_explains_the_local_task() {
        insta::assert_snapshot!(help("run"), @"
        Find labelled items, work on them until none is left, and end.

        This is what cron calls. A second `run` on the same state folder ends at once.

        With --task it works on a folder of this machine instead: on a copy of it, in a container. The
        changes are shown and, unless --dry-run is given, applied to the folder. Only the changes go to
        stdout, as a patch. No configuration file is needed for that: the model is taken from
        OPENAI_API_KEY, OPENAI_BASE_URL, OLLAMA_HOST, LMSTUDIO_BASE_URL or ANTHROPIC_API_KEY, the first that
        is set. A config.yaml in the folder that is worked on counts only if --config names it.

        Usage: coding-agent run [OPTIONS]

        Options:
              --config <PATH>
                  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                  /etc/coding-agent/config.yaml]

          -h, --help
                  Print help (see a summary with '-h')

        Local task:
              --task <TEXT>
                  Work on this instead of labelled items; `-` reads it from stdin

              --root <DIR>
                  Folder to work on [default: the current one]

              --dry-run
                  Show the changes and leave the folder as it is

              --environment <NAME>
                  Execution environment, instead of the one the plan selects

        Exit codes:
           0  success; for `run` also: another run is active, nothing was done
           1  the task failed, or a check found something bad
           2  a policy refused the task
           3  the model's replies stayed unreadable
          64  wrong usage
          78  wrong configuration
         130  ended by a second signal, or at the end of the grace period; `run --task` by the first signal
        ");
    }
}
