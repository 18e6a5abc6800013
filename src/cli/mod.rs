//! The command line: reads what was asked, hands it on, and says how it went. The only place that prints.

pub mod arguments;
pub mod completions;
pub mod exit;
pub mod session;
pub mod configuration;
pub mod doctor;
pub mod local;
pub mod logs;
pub mod progress;
pub mod status;
pub mod work;

use std::process::ExitCode;

use arguments::Command;

/// Runs the program; the whole of `main`.
pub fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(code) => return code.into(),
    };
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
        Command::Serve => session::on_runtime(work::serve(config)),
        Command::Produce => session::on_runtime(work::produce(config)),
        Command::Consume => session::on_runtime(work::consume(config)),
        Command::Status(status) => session::on_runtime(status::show(config, &status)),
        Command::Logs(logs) => session::on_runtime(logs::show(config, &logs)),
        Command::Doctor(asked) => session::on_runtime(doctor::examine(config, &asked)),
        Command::Config { command } => configuration::run(config, &command),
        Command::Completions { shell } => match completions::write(shell, &mut std::io::stdout()) {
            Ok(()) => exit::SUCCESS.into(),
            Err(_) => exit::FAILED.into(),
        },
        Command::McpGuard { command } => crate::tool::guard::run(&command),
    }
}
