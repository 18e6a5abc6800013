//! Where tests are run: a container without a network for each language, with a folder for each
//! question. Nothing of a task runs on the machine itself.
//!
//! A container that has ended, and an engine that does not answer, say nothing about a result: the
//! tests run once more in a new container before that is an error.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::task::{Files, Language, Task};

/// The longest time that tests may take. A wrong mend may run for ever.
const PATIENCE: &str = "120";
/// The longest life of a container, in seconds, should nobody remove it.
const LIFE: &str = "21600";
/// The longest time for anything that is asked of the engine.
const ENGINE: Duration = Duration::from_mins(5);
/// The user that tests run as. The container's own process is another's, so that whatever tests
/// leave running can be ended without it.
const USER: &str = "--user=1000:1000";

pub struct Bench {
    language: Language,
    container: String,
}

/// How tests went.
#[derive(Debug)]
pub struct Tested {
    pub passed: bool,
    #[cfg_attr(not(test), expect(dead_code, reason = "what a test of ours shows when it fails"))]
    pub output: String,
}

/// The end of one command of the engine's client, with its output.
struct Said {
    succeeded: bool,
    stdout: String,
    stderr: String,
}

impl Bench {
    pub async fn start(language: Language) -> anyhow::Result<Self> {
        let image = format!("coding-agent-executor-{}:latest", language.environment());
        let arguments = [
            "run",
            "--detach",
            "--rm",
            "--init",
            "--network=none",
            "--entrypoint=",
            "--memory=2g",
            "--pids-limit=512",
            "--label=coding-agent.solve-rate=1",
            "--user=0:0",
            "--cap-drop=ALL",
            &image,
            "sleep",
            LIFE,
        ];
        let started = docker(&arguments, None).await?;
        anyhow::ensure!(
            started.succeeded,
            "no container of {image} can be started (`make images` builds it): {}",
            started.stderr
        );
        Ok(Self {
            language,
            container: started.stdout.lines().last().unwrap_or_default().trim().to_owned(),
        })
    }

    /// Lays files into a folder of their own, and runs a command there.
    pub async fn test(&mut self, files: &Files, command: &str) -> anyhow::Result<Tested> {
        let tar = packed(files)?;
        if let Ok(Ok(tested)) = self.run(tar.clone(), command).await {
            return Ok(tested);
        }
        self.begin_anew().await?;
        match self.run(tar, command).await? {
            Ok(tested) => Ok(tested),
            // The tests themselves bring their shell down wherever they run.
            Err(output) if self.is_there().await => Ok(Tested { passed: false, output }),
            Err(output) => anyhow::bail!(
                "tests in {} have no result, in a new container neither: {output}",
                self.language.name()
            ),
        }
    }

    /// Returns what is wrong with a task's hidden tests: they fail on its files, and pass on the
    /// mended ones.
    pub async fn flaw_of(&mut self, task: &Task) -> anyhow::Result<Option<&'static str>> {
        let command = task.language.hidden_command();
        if self.test(&task.with(&[&task.hidden]), command).await?.passed {
            return Ok(Some("its tests do not notice the fault"));
        }
        let mended = task.with(&[&task.mend, &task.hidden]);
        let is_sound = self.test(&mended, command).await?.passed;
        Ok((!is_sound).then_some("its tests fail on the mended program as well"))
    }

    /// Runs the tests; `Ok(Err(output))` where they have no result.
    async fn run(&self, tar: Vec<u8>, command: &str) -> anyhow::Result<Result<Tested, String>> {
        let folder = format!("/tmp/{}", uuid::Uuid::new_v4());
        // Engines give the statuses of commands to faults of their own, so the result is a line
        // that no test can guess.
        let mark = format!("tested-{}", uuid::Uuid::new_v4());
        let script = format!(
            "mkdir {folder} && cd {folder} && tar -x || exit 1; \
             timeout --kill-after=5 {PATIENCE} sh -c '{}' </dev/null; status=$?; \
             cd /; kill -9 -1 2>/dev/null; echo; echo {mark} $status; rm -rf {folder}",
            command.replace('\'', "'\\''")
        );
        let mut arguments = vec![
            "exec",
            "--interactive",
            USER,
            "--env=HOME=/tmp",
            "--env=GOFLAGS=-mod=mod",
        ];
        arguments.extend([self.container.as_str(), "sh", "-c", script.as_str()]);
        let said = docker(&arguments, Some(tar)).await?;
        let status = said.stdout.lines().find_map(|line| line.strip_prefix(&mark));
        let output = [said.stdout.as_str(), said.stderr.as_str()].concat();
        Ok(match status {
            Some(status) => Ok(Tested {
                passed: status.trim() == "0",
                output: output.replace(&mark, "status"),
            }),
            None => Err(output),
        })
    }

    async fn is_there(&self) -> bool {
        let said = docker(&["exec", USER, &self.container, "true"], None).await;
        said.is_ok_and(|said| said.succeeded)
    }

    async fn begin_anew(&mut self) -> anyhow::Result<()> {
        // It has mostly ended by itself.
        let _ = docker(&["rm", "--force", &self.container], None).await;
        *self = Self::start(self.language).await?;
        Ok(())
    }

    /// Removes the container.
    pub async fn end(self) -> anyhow::Result<()> {
        docker(&["rm", "--force", &self.container], None).await.map(drop)
    }
}

fn packed(files: &Files) -> anyhow::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len().try_into()?);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content.as_slice())?;
    }
    Ok(tar.into_inner()?)
}

async fn docker(arguments: &[&str], input: Option<Vec<u8>>) -> anyhow::Result<Said> {
    let mut child = Command::new("docker")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("docker cannot be started")?;
    let mut stdin = child.stdin.take().context("docker has no stdin")?;
    let writing = async move {
        // A command that ends early does not read it all.
        let _ = stdin.write_all(&input.unwrap_or_default()).await;
    };
    let both = async { tokio::join!(writing, child.wait_with_output()).1 };
    let output = tokio::time::timeout(ENGINE, both)
        .await
        .context("the engine does not answer")??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Said {
        succeeded: output.status.success(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        vec![("a.txt".to_owned(), b"\n  one\n\n".to_vec())]
    }

    #[tokio::test]
    async fn a_bench_that_is_gone_is_no_failed_test() {
        let mut bench = Bench::start(Language::Python).await.unwrap();
        let first = bench.container.clone();
        docker(&["rm", "--force", &first], None).await.unwrap();
        let tested = bench.test(&files(), "test \"$(wc -c <a.txt)\" = 8").await.unwrap();
        assert!(tested.passed, "{}", tested.output);
        assert_ne!(bench.container, first);
        bench.end().await.unwrap();
    }

    #[tokio::test]
    async fn tests_that_fail_or_leave_processes_behind_do_no_harm_to_the_next() {
        let mut bench = Bench::start(Language::Python).await.unwrap();
        let first = bench.container.clone();
        let failed = bench.test(&files(), "sleep 600 & exit 3").await.unwrap();
        assert!(!failed.passed);
        let next = bench
            .test(&files(), "! grep -q ^sleep.600 /proc/[0-9]*/cmdline")
            .await
            .unwrap();
        assert!(next.passed, "{}", next.output);
        assert_eq!(bench.container, first);
        bench.end().await.unwrap();
    }

    #[tokio::test]
    async fn files_that_cannot_be_laid_out_are_a_failed_test() {
        let mut bench = Bench::start(Language::Python).await.unwrap();
        let both = vec![("a".to_owned(), Vec::new()), ("a/b".to_owned(), Vec::new())];
        assert!(!bench.test(&both, "true").await.unwrap().passed);
        bench.end().await.unwrap();
    }
}
