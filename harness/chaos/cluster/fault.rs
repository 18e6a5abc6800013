//! The faults that happen in a cluster.

use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::time::sleep;

use super::Cluster;

/// The time in which the runs of a dead process have to be taken over at the latest.
const SOON: Duration = Duration::from_secs(20);
/// The time in which the runs of a machine that has fallen silent have to be taken over at the
/// latest: a lease, and the time that the database needs to miss the machine.
const LATER: Duration = Duration::from_secs(150);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The program is ended with KILL.
    Worker,
    /// The machine loses its power; its connections are closed.
    Host,
    /// The machine is gone, and its connections are never closed.
    Vanished,
    /// The database crashes, and is away for so long.
    Database(Duration),
    /// The way to the database is cut for so long.
    Link(Duration),
    /// All ways are cut until others have taken over.
    CutOff,
    /// The engine is ended with KILL, and is away for so long.
    Engine(Duration),
    /// A container is killed.
    Container,
}

impl Fault {
    pub const NAMES: [&'static str; 8] = [
        "worker",
        "host",
        "vanished",
        "database",
        "link",
        "cut-off",
        "engine",
        "container",
    ];

    /// Chooses the fault of a round. Those that last a minute come once in so many rounds.
    pub fn choose(random: &mut Rng, round: usize) -> Self {
        let short = |random: &mut Rng, most| Duration::from_millis(random.u64(100..most));
        match round % 50 {
            17 => return Self::Vanished,
            42 => return Self::CutOff,
            _ => {}
        }
        match random.u8(0..100) {
            0..35 => Self::Worker,
            35..50 => Self::Host,
            50..65 => Self::Database(short(random, 6_000)),
            65..80 => Self::Link(short(random, 9_000)),
            80..90 => Self::Engine(short(random, 3_000)),
            _ => Self::Container,
        }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[match self {
            Self::Worker => 0,
            Self::Host => 1,
            Self::Vanished => 2,
            Self::Database(_) => 3,
            Self::Link(_) => 4,
            Self::CutOff => 5,
            Self::Engine(_) => 6,
            Self::Container => 7,
        }]
    }

    pub fn describe(name: &str) -> &'static str {
        match name {
            "worker" => "KILL of the program",
            "host" => "loss of a machine's power",
            "vanished" => "a machine falls silent for ever",
            "database" => "the database crashes and comes back",
            "link" => "a machine does not reach the database",
            "cut-off" => "a machine reaches nothing until others have its runs",
            "engine" => "KILL of a Docker engine",
            _ => "a container is killed",
        }
    }

    /// Makes the fault happen on this machine; on return it is over.
    pub async fn strike(self, cluster: &mut Cluster, machine: usize, random: &mut Rng) -> anyhow::Result<()> {
        let name = cluster.machines[machine].name.clone();
        let held = cluster.leases.of(&name).await?;
        let begun = Instant::now();
        match self {
            Self::Worker => {
                cluster.machines[machine].kill_worker().await?;
                cluster.expect_take_over(self, &name, held, begun, SOON).await;
                cluster.machines[machine].start_worker()?;
            }
            Self::Host => {
                drop(cluster.machines[machine].switch_off().await?);
                cluster.expect_take_over(self, &name, held, begun, SOON).await;
                cluster.machines[machine].switch_on().await?;
                cluster.machines[machine].start_worker()?;
            }
            Self::Vanished => {
                cluster.machines[machine].links()?.cut(true);
                let links = cluster.machines[machine].switch_off().await?;
                cluster.expect_take_over(self, &name, held, begun, LATER).await;
                drop(links);
                cluster.machines[machine].switch_on().await?;
                cluster.machines[machine].start_worker()?;
            }
            Self::CutOff => {
                cluster.machines[machine].links()?.cut(true);
                cluster.expect_take_over(self, &name, held, begun, LATER).await;
                cluster.machines[machine].links()?.mend(true);
            }
            Self::Link(time) => {
                cluster.machines[machine].links()?.cut(false);
                sleep(time).await;
                cluster.machines[machine].links()?.mend(random.bool());
            }
            Self::Database(time) => {
                cluster.database.crash()?;
                sleep(time).await;
                cluster.database.come_back()?;
                cluster.came_back = Some(Instant::now());
            }
            Self::Engine(time) => {
                cluster.machines[machine].kill_engine().await?;
                sleep(time).await;
                cluster.machines[machine].restart_engine().await?;
            }
            Self::Container => _ = cluster.machines[machine].kill_container().await?,
        }
        Ok(())
    }
}
