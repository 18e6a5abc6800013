//! The measurement: each task with each worker, one after another, within the time of the whole.
//! Outcomes that are in the book already are not measured again.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use coding_agent::plain::counted;
use coding_agent_harness::peer::Peer;

use crate::bench::Bench;
use crate::book::Book;
use crate::outcome::{End, Outcome, Worker};
use crate::server::Server;
use crate::setting::{Anew, Setting};
use crate::task::{Language, Task};
use crate::workers::{Job, floor, peer, program};

pub struct Measurement<'a> {
    pub server: &'a Server,
    pub peer: Option<&'a Peer>,
    pub setting: &'a Setting,
    /// The end of the whole, if it has one.
    pub until: Option<Instant>,
    /// The outcomes that were taken out of the book, to be measured anew.
    taken_out: Anew,
    benches: HashMap<Language, Bench>,
}

/// How a measurement came out, besides the outcomes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Tasks of others whose tests do not tell the faulty program from the mended one.
    pub left_out: Vec<String>,
    /// Tasks and workers that the time of the measurement did not suffice for.
    pub not_measured: Vec<(String, Worker)>,
}

impl<'a> Measurement<'a> {
    pub fn new(server: &'a Server, peer: Option<&'a Peer>, setting: &'a Setting, until: Option<Instant>) -> Self {
        Self {
            server,
            peer,
            setting,
            until,
            taken_out: Anew::Nothing,
            benches: HashMap::new(),
        }
    }

    /// Returns the workers with their settings.
    pub fn workers(&self) -> Vec<(Worker, Setting)> {
        let limits = self.setting.limits;
        let mut workers = vec![
            (Worker::Program, self.setting.clone()),
            (Worker::Floor, Setting::baseline(limits, "")),
        ];
        workers.extend(
            self.peer
                .map(|peer| (Worker::Peer, Setting::baseline(limits, &peer.version))),
        );
        workers
    }

    /// Takes out of the book what is to be measured anew, of these tasks alone.
    pub fn forget(&mut self, tasks: &[Task], anew: Anew, book: &mut Book) -> anyhow::Result<()> {
        self.taken_out = anew;
        let workers = self.workers();
        let is_wanted = |worker: Worker| match anew {
            Anew::Nothing => false,
            Anew::Program => worker == Worker::Program,
            Anew::All => true,
        };
        book.forget(|outcome| {
            let is_own = workers.contains(&(outcome.worker, outcome.setting.clone()));
            is_own && is_wanted(outcome.worker) && tasks.iter().any(|task| task.name == outcome.task)
        })
    }

    /// Works on all tasks that are not in the book yet.
    pub async fn take(&mut self, tasks: &[Task], book: &mut Book) -> anyhow::Result<Ended> {
        let measured = self.take_all(tasks, book).await;
        for bench in std::mem::take(&mut self.benches).into_values() {
            bench.end().await?;
        }
        measured
    }

    /// The peer comes last: where the time does not suffice, tasks that the program and the floor
    /// were both given say more than fewer tasks of all three.
    async fn take_all(&mut self, tasks: &[Task], book: &mut Book) -> anyhow::Result<Ended> {
        let mut ended = Ended::default();
        // The tests of the tasks that ship are proven by tests of this project.
        let mut proven: HashSet<&str> = HashSet::new();
        let (peers, own): (Vec<_>, Vec<_>) = self
            .workers()
            .into_iter()
            .partition(|(worker, _)| *worker == Worker::Peer);
        let each = |workers: Vec<(Worker, Setting)>| {
            tasks
                .iter()
                .flat_map(move |task| workers.clone().into_iter().map(move |worker| (task, worker)))
        };
        for (task, (worker, setting)) in each(own).chain(each(peers)) {
            if book.has(&task.name, worker, &setting) || ended.left_out.contains(&task.name) {
                continue;
            }
            if self.is_over() {
                ended.not_measured.push((task.name.clone(), worker));
                continue;
            }
            if task.is_borrowed() && proven.insert(&task.name) {
                let bench = bench(&mut self.benches, task.language).await?;
                if let Some(flaw) = bench.flaw_of(task).await? {
                    println!("{}: left out, since {flaw}", task.name);
                    ended.left_out.push(task.name.clone());
                    continue;
                }
            }
            let outcome = self.outcome(task, worker, &setting).await?;
            if self.is_over() && is_interrupted(&outcome) {
                ended.not_measured.push((task.name.clone(), worker));
                continue;
            }
            if outcome.end == End::Failed {
                // A model that is gone is the fault of no task.
                self.server.ensure_there(self.taken_out).await?;
            }
            tell(&outcome);
            book.add(outcome)?;
        }
        Ok(ended)
    }

    async fn outcome(&mut self, task: &Task, worker: Worker, setting: &Setting) -> anyhow::Result<Outcome> {
        let job = Job {
            server: self.server,
            task,
            limits: setting.limits,
            until: self.until,
        };
        let peer = self.peer;
        let bench = bench(&mut self.benches, task.language).await?;
        match (worker, peer) {
            (Worker::Floor, _) => floor::work(&job, bench, setting).await,
            (Worker::Peer, Some(peer)) => peer::work(peer, &job, bench, setting).await,
            (Worker::Program | Worker::Peer, _) => program::work(&job, bench, setting).await,
        }
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Tells of each task whether its hidden tests fail before the mend and pass with it. No model is
/// asked.
pub async fn prove(tasks: &[Task]) -> anyhow::Result<()> {
    let mut benches = HashMap::new();
    let mut flawed = 0;
    for task in tasks {
        let bench = bench(&mut benches, task.language).await?;
        if let Some(flaw) = bench.flaw_of(task).await? {
            println!("{}: {flaw}", task.name);
            flawed += 1;
        }
    }
    for bench in benches.into_values() {
        bench.end().await?;
    }
    let sound = tasks.len() - flawed;
    println!("{sound} of {} tasks can be solved and are not", tasks.len());
    Ok(())
}

async fn bench(benches: &mut HashMap<Language, Bench>, language: Language) -> anyhow::Result<&mut Bench> {
    Ok(match benches.entry(language) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(Bench::start(language).await?),
    })
}

/// Tells whether the end of the whole measurement may have been the end of this work: whoever works
/// is ended then, or gets no reply any more.
fn is_interrupted(outcome: &Outcome) -> bool {
    outcome.end == End::Failed && !outcome.solved
}

fn tell(outcome: &Outcome) {
    let solved = if outcome.solved { "solved" } else { "not solved" };
    let took = Duration::from_secs_f64(outcome.seconds);
    println!(
        "{}, {:?}: {solved}, {:?}, {}, {} s",
        outcome.task,
        outcome.worker,
        outcome.end,
        counted(outcome.turns, "turn"),
        took.as_secs()
    );
}
