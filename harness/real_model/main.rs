//! Works on tasks with a real model on a real server, and looks at what passes between the two.
//! `make test-model` runs it.
//!
//! Scripted models prove what the program makes of a reply; they cannot prove that a real server
//! takes the requests, counts as it is believed to count, and refuses in the words that are
//! listened for. So the real program, with real containers and the fake forge of the tests, is put
//! before llama.cpp's own server with the smallest model there is, and before Ollama where
//! `OLLAMA_HOST` names one. Such a model gets nothing done. What must be right whatever it says:
//! every request is taken, every reply read or its failure told, the counts are the server's, too
//! long and too slow are noticed, and each task has an honest end.
//!
//! `make test-model ONLY="task window"` plays only these.

mod server; // the servers with a model
mod relay; // what passes between program and server
mod site; // the program, configured for them
mod judge; // what must be so, whatever the model says
mod cases; // what is tried

use std::process::ExitCode;
use std::time::Instant;

use cases::Case;
use coding_agent_harness::fake; // the forge
use coding_agent_harness::run;
use server::Server;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    run("test-model", try_all(&wanted), "cases went wrong")
}

/// Plays the cases against each server that is there, and returns how many went wrong.
async fn try_all(wanted: &[String]) -> anyhow::Result<usize> {
    let begun = Instant::now();
    let all = cases::all();
    for name in wanted {
        let names: Vec<&str> = all.iter().map(|case| case.name).collect();
        let is_known = names.contains(&name.as_str());
        anyhow::ensure!(is_known, "there is no case '{name}'; there are: {}", names.join(", "));
    }
    let is_wanted = |case: &&Case| wanted.is_empty() || wanted.iter().any(|name| name == case.name);
    let mut servers = vec![Server::llama().await?];
    match Server::ollama().await? {
        Some(server) => servers.push(server),
        None => println!("Ollama: NOT TRIED, since OLLAMA_HOST is not set."),
    }
    let mut wrong = 0;
    for server in &servers {
        println!("\n{}", server.describe());
        for case in all.iter().filter(is_wanted).filter(|case| case.is_for(server)) {
            let begun = Instant::now();
            let ended = (case.play)(server).await;
            let seconds = begun.elapsed().as_secs();
            match ended {
                Ok(told) => println!("ok    {:<12} {seconds:>3} s  {told}", case.name),
                Err(error) => {
                    wrong += 1;
                    println!("WRONG {:<12} {seconds:>3} s  {error:#}", case.name);
                }
            }
        }
    }
    println!("\n{} s in all", begun.elapsed().as_secs());
    Ok(wrong)
}
