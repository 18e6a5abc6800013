//! Several machines with one store on a server, while machines, engines, the database and the ways
//! between them fail.
//!
//! A machine is a set of namespaces with a Docker engine of its own; it reaches forges, model and
//! database through ways that can be cut. A round is a task and a fault; many tasks are under way
//! at once, so each fault strikes others' tasks too. Afterwards every task has to be done once.

mod links; // the ways of a machine, which can be cut
mod machine; // namespaces, an engine and the program
mod leases; // who works on what, and how soon others take over
mod fault; // what goes wrong
mod report; // the table and the file

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::containers::IMAGE;
use coding_agent_harness::postgres::Postgres;
use fastrand::Rng;
use sqlx::postgres::PgPoolOptions;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use url::Url;

use crate::job::{Job, Kind};
use crate::judge;
use crate::site::{Needs, Site};
use crate::store::Store;
use fault::Fault;
use leases::{Held, Leases, TakenOver};
use links::Target;
use machine::{DATABASE_PORT, Machine};

const CONSUMERS: usize = 4;

/// The longest time in which no task may come to its end.
const PATIENCE: Duration = Duration::from_mins(5);

/// How often programs may end by themselves.
const MOST_RESTARTS: usize = 60;

/// After the database has come back, for so long nobody is taken for dead.
const GRACE: Duration = Duration::from_secs(11);

/// The requests that the fake GitHub answers: more than the tasks need.
const REQUESTS: u64 = 10_000_000;

/// How slowly the model answers, in milliseconds.
const THINKING: u64 = 150;

/// The machines, and what they share.
pub struct Cluster {
    machines: Vec<Machine>,
    database: Postgres,
    leases: Leases,
    store: Store,
    taken_over: Vec<(Fault, TakenOver)>,
    wrong: Vec<String>,
    /// How often a program was started again that had ended by itself.
    restarts: usize,
    /// When the database last came back.
    came_back: Option<Instant>,
}

/// Plays `rounds` rounds on `count` machines; returns how many things are wrong afterwards.
pub async fn cluster(count: usize, rounds: usize, seed: u64) -> anyhow::Result<usize> {
    anyhow::ensure!(
        count >= 2,
        "CLUSTER={count}: others can take over only where there are two machines"
    );
    anyhow::ensure!(
        rustix::process::geteuid().is_root(),
        "machines are made of namespaces, which needs root: run this as root"
    );
    let begun = Instant::now();
    let mut random = Rng::with_seed(seed);
    let site = Site::new(Needs {
        native: true,
        consumers: CONSUMERS,
        ..Needs::default()
    })
    .await?;
    site.pace.store(THINKING, Ordering::Relaxed);
    site.github.rate_limited(REQUESTS, Duration::from_hours(24));
    let mut cluster = Cluster::start(&site, count).await?;
    let mut faults = Vec::new();
    let mut jobs = Vec::new();
    let played = async {
        cluster.play(&site, rounds, &mut random, &mut jobs, &mut faults).await?;
        cluster.judge(&site, &jobs).await
    };
    if let Err(error) = played.await {
        cluster.wrong.push(format!("{error:#}"));
    }
    report::show(&cluster, rounds, seed, begun.elapsed(), &faults)?;
    let wrong = std::mem::take(&mut cluster.wrong);
    if !wrong.is_empty() {
        for machine in &mut cluster.machines {
            println!("kept in {}", machine.installation.keep("").display());
        }
        println!("kept in {}", site.keep(&wrong.join("\n")).display());
    }
    Ok(wrong.len())
}

impl Cluster {
    /// Starts the database and the machines, and the program on each.
    async fn start(site: &Site, count: usize) -> anyhow::Result<Self> {
        let database = Postgres::start()?.context("PostgreSQL is missing: scripts/setup test-postgres installs it")?;
        let image = site.folder().join("image.tar");
        let saved = Command::new("docker")
            .args(["save", IMAGE, "--output"])
            .arg(&image)
            .status()
            .await?;
        anyhow::ensure!(
            saved.success(),
            "{IMAGE} cannot be read: scripts/setup images python builds it"
        );
        let mut ports = vec![(
            DATABASE_PORT,
            Target::Database(PathBuf::from(database.folder()?).join(".s.PGSQL.5432")),
        )];
        for address in [
            site.github.api_url(),
            site.gitlab.api_url(),
            site.model.openai_address(),
        ] {
            let port = Url::parse(&address)?.port().context("a fake has a port")?;
            ports.push((port, Target::Server));
        }
        let mut machines = Vec::new();
        for number in 1..=count {
            let name = format!("machine-{number}");
            machines.push(Machine::new(&name, site.config()?, ports.clone(), &image).await?);
        }
        std::fs::remove_file(image)?;
        // The first one makes the tables.
        for machine in &mut machines {
            machine.start_worker()?;
        }
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .connect(&database.address)
            .await?;
        let has_tables = async {
            while sqlx::query("SELECT 1 FROM facts").execute(&pool).await.is_err() {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(Duration::from_mins(1), has_tables)
            .await
            .context("the program makes no tables")?;
        Ok(Self {
            machines,
            leases: Leases(pool.clone()),
            store: Store::on_server(pool),
            database,
            taken_over: Vec::new(),
            wrong: Vec::new(),
            restarts: 0,
            came_back: None,
        })
    }

    async fn play(
        &mut self,
        site: &Site,
        rounds: usize,
        random: &mut Rng,
        jobs: &mut Vec<Job>,
        faults: &mut Vec<(Fault, Duration)>,
    ) -> anyhow::Result<()> {
        let open_at_once = 2 * self.machines.len();
        let (mut finished, mut changed) = (0, Instant::now());
        while finished < rounds {
            self.restart_ended()?;
            // The database may be on its way back.
            let now = self.settle().await.unwrap_or(finished);
            if now > finished {
                (finished, changed) = (now, Instant::now());
            }
            anyhow::ensure!(
                changed.elapsed() < PATIENCE,
                "no task ended for {} s",
                PATIENCE.as_secs()
            );
            if jobs.len() >= rounds || jobs.len() >= finished + open_at_once {
                sleep(Duration::from_millis(100)).await;
                continue;
            }
            let kind = Kind::ALL[random.usize(0..4)];
            jobs.push(Job::open(site, kind, &format!("room-{:03}", jobs.len())));
            sleep(Duration::from_millis(random.u64(100..2_500))).await;
            let fault = Fault::choose(random, jobs.len());
            let machine = random.usize(0..self.machines.len());
            let begun = Instant::now();
            let struck = fault.strike(self, machine, random).await;
            struck.with_context(|| format!("{fault:?} on {}", self.machines[machine].name))?;
            faults.push((fault, begun.elapsed()));
            eprintln!(
                "chaos: {}/{rounds} {} on {}, {:.1} s; {finished} finished",
                jobs.len(),
                fault.name(),
                self.machines[machine].name,
                begun.elapsed().as_secs_f64()
            );
        }
        Ok(())
    }

    /// Starts programs again that have ended by themselves, as a service manager does: one that is
    /// started while the database is away ends and says so.
    fn restart_ended(&mut self) -> anyhow::Result<()> {
        for machine in &mut self.machines {
            if let Some(ended) = machine.ended()? {
                eprintln!(
                    "chaos: the program on {} ended by itself ({ended}); it is started again",
                    machine.name
                );
                self.restarts += 1;
                machine.start_worker()?;
            }
        }
        let most = MOST_RESTARTS;
        anyhow::ensure!(
            self.restarts <= most,
            "programs ended by themselves more than {most} times"
        );
        Ok(())
    }

    /// Lets pass what runs wait for, and returns how many are finished.
    async fn settle(&self) -> anyhow::Result<usize> {
        let runs = self.store.runs().await?;
        self.store.make_everything_due().await?;
        Ok(runs.iter().filter(|run| run.is_finished).count())
    }

    /// Notes down how soon others take over what a machine held.
    async fn expect_take_over(&mut self, fault: Fault, from: &str, held: Vec<Held>, begun: Instant, longest: Duration) {
        let (mut taken, left) = self.leases.taken_over(from, held, begun, longest).await;
        for taken in &mut taken {
            taken.is_in_grace = self.came_back.is_some_and(|came_back| begun - came_back < GRACE);
        }
        self.taken_over.extend(taken.into_iter().map(|taken| (fault, taken)));
        for left in left {
            self.wrong.push(format!(
                "{}: nobody took it over from {from} within {} s ({})",
                left.task,
                longest.as_secs(),
                fault.name()
            ));
        }
    }

    /// Ends everything in order, and looks whether it is as it must be.
    async fn judge(&mut self, site: &Site, jobs: &[Job]) -> anyhow::Result<()> {
        for machine in &mut self.machines {
            machine.stop_worker().await?;
            // One start more sweeps the containers that could not be removed while an engine was
            // away.
            let mut last = machine.start(&["run"])?;
            let ended = timeout(PATIENCE, last.wait()).await;
            ended.context("the last start did not end")??;
        }
        for job in jobs {
            self.wrong.extend(judge::task(site, job, &self.store, false).await?);
        }
        self.late_writers(jobs).await?;
        self.wrong.extend(judge::leftovers(site).await?);
        for machine in &self.machines {
            let containers = machine.containers().await?;
            let left = judge::left_behind(&machine.installation, &containers).await;
            self.wrong
                .extend(left.into_iter().map(|text| format!("{}: {text}", machine.name)));
        }
        Ok(())
    }

    /// A machine that has lost a run to another must write nothing more of it to a forge, unless it
    /// claims the run again.
    async fn late_writers(&mut self, jobs: &[Job]) -> anyhow::Result<()> {
        let claimed = self.leases.claimed().await?;
        for (fault, taken) in &self.taken_over {
            let claims = claimed.get(&taken.run).map(Vec::as_slice).unwrap_or_default();
            let is_again = claims.iter().filter(|machine| **machine == taken.from).count() > 1;
            let (Some(machine), Some(job)) = (
                self.machines.iter().find(|machine| machine.name == taken.from),
                jobs.iter().find(|job| job.task() == taken.task),
            ) else {
                continue;
            };
            if is_again {
                continue;
            }
            for (at, line) in machine.written.since(taken.at, &job.path()) {
                self.wrong.push(format!(
                    "{}: {} wrote {:.1} s after it had lost it ({}): {line}",
                    taken.task,
                    taken.from,
                    (at - taken.at).as_secs_f64(),
                    fault.name()
                ));
            }
        }
        Ok(())
    }
}
