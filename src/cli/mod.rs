//! The command line: parses the arguments, calls the service, and prints the outcome. Nothing else
//! prints, except for `tool::guard`, which is a process of its own.

pub mod exit; // what the exit code tells scripts
pub mod arguments; // definitions and help texts
pub mod session; // what commands share: output, configuration, an open service
pub mod progress; // progress of a local task
pub mod names; // what a static program says of how names are looked up
pub mod commands; // one file for each command, or for commands that are alike

use std::path::Path;
use std::process::ExitCode;

use arguments::{Arguments, Command, Which};
use commands::reports::{evaluations, logs, stats, status};
use commands::{auto_approve, code, configuration, dashboard, doctor, forget, local, mcp, order, shipped, store, work};

use crate::process::arenas;
use crate::task::command::Command as Order;

/// Runs the program; the whole of `main`.
pub fn main() -> ExitCode {
    match arguments::parse(std::env::args_os()) {
        Ok(arguments) => session::printed(run(arguments)),
        Err(error) => session::printed(session::answer(&error)),
    }
}

fn run(arguments: Arguments) -> ExitCode {
    let config = arguments.config.as_deref();
    match arguments.command {
        Command::Run(run) => match run.task {
            Some(text) => session::on_runtime(local::run(
                config,
                local::Task {
                    text,
                    root: run.root,
                    dry_run: run.dry_run,
                    environment: run.environment,
                },
            )),
            None => session::on_runtime(work::run(config)),
        },
        Command::Serve => serve(config),
        Command::Produce => session::on_runtime(work::produce(config)),
        Command::Consume => session::on_runtime(work::consume(config)),
        Command::Dashboard { listen } => session::on_runtime(dashboard::show(config, listen)),
        Command::Pause(Which { task: Some(task), .. }) => order(config, &task, Order::Pause),
        Command::Resume(Which { task: Some(task), .. }) => order(config, &task, Order::Resume),
        Command::Pause(Which { task: None, .. }) => session::on_runtime(order::all(config, true)),
        Command::Resume(Which { task: None, .. }) => session::on_runtime(order::all(config, false)),
        Command::Stop { task } => order(config, &task, Order::Stop),
        Command::Approve { task, digest } => order(config, &task, Order::Approve(digest)),
        Command::Deny { task, reason } => order(config, &task, Order::deny(&reason.unwrap_or_default())),
        Command::AutoApprove { command } => session::on_runtime(auto_approve::switch(config, command)),
        Command::Budget { task, tokens } => order(config, &task, Order::Budget(tokens)),
        Command::Forget { task } => session::on_runtime(forget::run(config, &task)),
        Command::Status(status) => session::on_runtime(status::show(config, &status)),
        Command::Stats(asked) => session::on_runtime(async move { stats::show(config, &asked).await }),
        Command::Logs(logs) => session::on_runtime(logs::show(config, &logs)),
        Command::Doctor(asked) => session::on_runtime(doctor::examine(config, &asked)),
        Command::Config { command } => configuration::run(config, &command),
        Command::Completions { shell } => {
            session::write(&shipped::completions(shell));
            exit::SUCCESS.into()
        }
        Command::Manual { folder } => shipped::manual(&folder),
        Command::Version => {
            session::print(concat!("coding-agent ", env!("CARGO_PKG_VERSION")));
            exit::SUCCESS.into()
        }
        Command::McpGuard { mask, input, command } => crate::tool::guard::run(&command, mask, input.as_deref()),
        Command::Evaluations(asked) => session::on_runtime(async move { evaluations::show(config, &asked).await }),
        Command::Index { root, command } => {
            session::on_runtime(async move { code::index(config, root, command).await })
        }
        Command::Search(asked) => session::on_runtime(async move { code::search(config, asked).await }),
        Command::Store { command } => session::on_runtime(async move { store::run(config, &command).await }),
        Command::Mcp => session::on_runtime(mcp::serve(config)),
    }
}

/// Runs the service: the one command that goes on long enough to mind what the allocator keeps.
fn serve(config: Option<&Path>) -> ExitCode {
    if cfg!(target_env = "gnu") && session::environment(arenas::VARIABLE).is_none() {
        let error = arenas::restart_with_few();
        session::complain(format_args!("the service will need more memory than it must: {error}"));
    }
    session::on_runtime(work::serve(config))
}

fn order(config: Option<&Path>, task: &str, order: Order) -> ExitCode {
    let (config, task) = (config.map(Path::to_owned), task.to_owned());
    session::on_runtime(async move { Box::pin(order::tell(config.as_deref(), &task, &order)).await })
}
