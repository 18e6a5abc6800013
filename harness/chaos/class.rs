//! The rounds that are played. Every choice is made here, from the seed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;

use crate::fake::model::Trouble as ModelTrouble;
use crate::fake::traffic::Fault as Trouble;
use crate::fault::{Fault, Moment};
use crate::job::Kind;
use crate::site::{Gate, Needs};

/// How far an undisturbed task of each sort gets; a boundary behind its end is not reached, and
/// counted as missed.
const FORGE_REQUESTS: usize = 34;
const MODEL_REQUESTS: usize = 5;
const FACTS: usize = 20;
/// The facts of a reviewed and approved task, counted from the program's very first one, that come
/// between its first plan and the approval of its result. Their number is not a multiple of the
/// four sorts of task, so that each sort is killed at each of them in turn.
const GATED_FACTS: RangeInclusive<usize> = 9..=85;
/// About as long as a task takes.
const DURATION: u64 = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Boundary,
    Random,
    Pause,
    Gate,
    Forge,
    Model,
    Hang,
    Docker,
    Engine,
    Container,
    Disk,
    Clock,
}

/// A round that is to be played.
#[derive(Debug, Clone)]
pub struct Plan {
    pub class: Class,
    pub number: usize,
    pub kind: Kind,
    pub needs: Needs,
    pub faults: Vec<(Moment, Fault)>,
}

impl Class {
    pub const ALL: [Self; 12] = [
        Self::Boundary,
        Self::Random,
        Self::Pause,
        Self::Gate,
        Self::Forge,
        Self::Model,
        Self::Hang,
        Self::Docker,
        Self::Engine,
        Self::Container,
        Self::Disk,
        Self::Clock,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Boundary => "kill",
            Self::Random => "random",
            Self::Pause => "pause",
            Self::Gate => "gate",
            Self::Forge => "forge",
            Self::Model => "model",
            Self::Hang => "hang",
            Self::Engine => "engine",
            Self::Docker => "docker",
            Self::Container => "container",
            Self::Disk => "disk",
            Self::Clock => "clock",
        }
    }

    /// Returns the class in words for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Boundary => "KILL at a step boundary",
            Self::Random => "KILL at one to three random moments",
            Self::Pause => "KILL around a pause",
            Self::Gate => "KILL at each fact between plan, reviews and approvals",
            Self::Forge => "the forge fails, limits, is late or drops",
            Self::Model => "the model fails, limits, breaks off or babbles",
            Self::Hang => "the forge or the model never answers",
            Self::Engine => "the Docker engine is restarted, and containers end",
            Self::Docker => "the Docker engine goes away",
            Self::Container => "the container is killed",
            Self::Disk => "the disk is full",
            Self::Clock => "the clock jumps",
        }
    }

    /// Returns how many of 100 rounds with KILL are of this class; the other classes come on top.
    fn share(self) -> usize {
        match self {
            Self::Boundary => 60,
            Self::Random => 25,
            Self::Pause => 15,
            Self::Gate => 40,
            Self::Forge | Self::Model | Self::Docker | Self::Engine | Self::Container | Self::Disk | Self::Clock => 8,
            Self::Hang => 4,
        }
    }

    /// Says whether it harms others on the machine: then it is played only when asked for by name.
    fn is_harmful(self) -> bool {
        self == Self::Engine
    }

    fn needs(self, random: &mut Rng) -> Needs {
        Needs {
            proxy: self == Self::Docker,
            disk: self == Self::Disk,
            clock: self == Self::Clock,
            impatient: matches!(self, Self::Model | Self::Hang),
            native: random.bool(),
            consumers: 1,
            warm: 0,
            gate: (self == Self::Gate).then(|| Gate {
                is_automatic: random.bool(),
            }),
        }
    }

    fn faults(self, random: &mut Rng, boundary: Moment) -> Vec<(Moment, Fault)> {
        match self {
            Self::Boundary | Self::Gate => {
                let mut faults = vec![(boundary, Fault::Kill)];
                // What takes a task up again can be ended as well.
                if random.u8(0..4) == 0 {
                    faults.push((any(random), Fault::Kill));
                }
                faults
            }
            Self::Random => (0..random.usize(1..=3))
                .map(|_| (moment(random), Fault::Kill))
                .collect(),
            Self::Pause => {
                let pause = if random.bool() {
                    Fault::PauseComment
                } else {
                    Fault::PauseFile
                };
                let mut faults = vec![(Moment::ModelAsked(random.usize(1..=3)), pause)];
                faults.insert(random.usize(0..=1), (any(random), Fault::Kill));
                if random.bool() {
                    faults.push((any(random), Fault::Kill));
                }
                faults
            }
            Self::Forge => (0..random.usize(1..=2)).map(|_| (any(random), forge(random))).collect(),
            Self::Model => (0..random.usize(1..=2)).map(|_| (any(random), model(random))).collect(),
            Self::Hang => with_kill(random, |random| match random.u8(0..3) {
                0 => Fault::Model(ModelTrouble::Hangs(Duration::from_mins(1)), 1),
                1 => Fault::Forge(Trouble::Hangs, 1),
                _ => Fault::Forge(Trouble::HangsAfterWork, 1),
            }),
            Self::Engine => with_kill(random, |_| Fault::EngineRestarted),
            Self::Docker => with_kill(random, |random| {
                Fault::DockerGone(Duration::from_millis(random.u64(500..6000)))
            }),
            Self::Container => with_kill(random, |_| Fault::ContainerKilled),
            Self::Disk => with_kill(random, |random| {
                Fault::DiskFull(Duration::from_millis(random.u64(200..4000)))
            }),
            Self::Clock => {
                let jump = |random: &mut Rng| {
                    let size = [60, 1800, 7200, 90_000, 40 * 86_400][random.usize(0..5)];
                    Fault::ClockSet(if random.bool() { size } else { -size })
                };
                let mut faults = with_kill(random, jump);
                if random.bool() {
                    faults.push((any(random), jump(random)));
                }
                faults
            }
        }
    }
}

/// The fault once, and in one of four rounds a KILL behind it.
fn with_kill(random: &mut Rng, fault: impl Fn(&mut Rng) -> Fault) -> Vec<(Moment, Fault)> {
    let mut faults = vec![(any(random), fault(random))];
    if random.u8(0..4) == 0 {
        faults.push((any(random), Fault::Kill));
    }
    faults
}

fn forge(random: &mut Rng) -> Fault {
    let times = random.usize(1..=6);
    match random.u8(0..8) {
        0 => Fault::Forge(Trouble::Fails(500), times),
        1 => Fault::Forge(Trouble::Fails(502), times),
        2 => Fault::Forge(Trouble::Fails(429), times),
        3 => Fault::Forge(Trouble::FailsAfterWork(503), times),
        4 => Fault::Forge(Trouble::Waits(Duration::from_secs(random.u64(1..8))), times),
        5 => Fault::Forge(Trouble::Drops, times),
        6 => Fault::Forge(Trouble::DropsAfterWork, times),
        _ => Fault::ForgeLimited(Duration::from_secs(random.u64(1..5))),
    }
}

fn model(random: &mut Rng) -> Fault {
    let times = random.usize(1..=6);
    match random.u8(0..8) {
        0 => Fault::Model(ModelTrouble::Fails(500), times),
        1 => Fault::Model(ModelTrouble::Fails(503), times),
        2 => Fault::Model(ModelTrouble::Limited(random.u64(1..4)), times),
        3 => Fault::Model(ModelTrouble::Limited(3_600), 1),
        4 => Fault::Model(ModelTrouble::BreaksOff, times),
        5 => Fault::Model(ModelTrouble::Garbage, times),
        // The sixth in a row ends the run.
        6 => Fault::Model(ModelTrouble::Babbles, times.min(2)),
        _ => Fault::Model(ModelTrouble::Hangs(Duration::from_secs(random.u64(1..8))), 1),
    }
}

fn moment(random: &mut Rng) -> Moment {
    Moment::After(Duration::from_millis(random.u64(0..DURATION)))
}

/// A boundary or a moment that is likely to come.
fn any(random: &mut Rng) -> Moment {
    match random.u8(0..6) {
        0 => Moment::ForgeAsked(random.usize(1..FORGE_REQUESTS / 2)),
        1 => Moment::ForgeAnswered(random.usize(1..FORGE_REQUESTS / 2)),
        2 => Moment::ModelAsked(random.usize(1..=MODEL_REQUESTS / 2)),
        3 => Moment::ModelAnswered(random.usize(1..=MODEL_REQUESTS / 2)),
        4 => Moment::Fact(random.usize(1..FACTS / 2)),
        _ => Moment::After(Duration::from_millis(random.u64(0..DURATION / 2))),
    }
}

/// Returns every boundary of every sort of task.
fn boundaries() -> Vec<(Kind, Moment)> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        for count in 1..=FORGE_REQUESTS {
            all.extend([(kind, Moment::ForgeAsked(count)), (kind, Moment::ForgeAnswered(count))]);
        }
        for count in 1..=MODEL_REQUESTS {
            all.extend([(kind, Moment::ModelAsked(count)), (kind, Moment::ModelAnswered(count))]);
        }
        all.extend((1..=FACTS).map(|count| (kind, Moment::Fact(count))));
    }
    all
}

/// Returns the fact at which the round with this number is killed: one after the other, beginning
/// at any, with the next sort of task each time.
fn gate(seed: u64, number: usize) -> (Kind, Moment) {
    let (first, count) = (*GATED_FACTS.start(), GATED_FACTS.count());
    let place = Rng::with_seed(seed).usize(0..count) + number;
    (Kind::ALL[place % 4], Moment::FactInAll(first + place % count))
}

/// Seeds that differ in a few bits would make much the same choices.
fn mixed(seed: u64, class: Class, number: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, class.name(), number).hash(&mut hasher);
    hasher.finish()
}

/// Returns the rounds to be played: about `rounds` with KILL, and some of every other class.
/// `wanted` names classes, or single rounds such as `clock:3`.
pub fn plans(rounds: usize, seed: u64, wanted: &[String]) -> anyhow::Result<Vec<Plan>> {
    for name in wanted {
        let class = name.split(':').next().unwrap_or_default();
        anyhow::ensure!(
            Class::ALL.iter().any(|known| known.name() == class),
            "there is no class '{class}'; there are: {}",
            Class::ALL.map(Class::name).join(", ")
        );
    }
    let mut order = boundaries();
    Rng::with_seed(seed).shuffle(&mut order);
    let mut plans = Vec::new();
    let is_named = |class: Class| wanted.iter().any(|name| name.split(':').next() == Some(class.name()));
    for class in Class::ALL
        .into_iter()
        .filter(|class| !class.is_harmful() || is_named(*class))
    {
        for number in 1..=(rounds * class.share()).div_ceil(100) {
            // Each round has numbers of its own, so that one can be played alone.
            let mut random = Rng::with_seed(mixed(seed, class, number));
            let (kind, boundary) = match class {
                Class::Gate => gate(seed, number),
                _ => order[(number - 1) % order.len()],
            };
            let kind = if matches!(class, Class::Boundary | Class::Gate) {
                kind
            } else {
                Kind::ALL[random.usize(0..4)]
            };
            plans.push(Plan {
                class,
                number,
                kind,
                needs: class.needs(&mut random),
                faults: class.faults(&mut random, boundary),
            });
        }
    }
    if !wanted.is_empty() {
        let is_wanted = |plan: &Plan| {
            let (class, round) = (plan.class.name(), format!("{}:{}", plan.class.name(), plan.number));
            wanted.iter().any(|wanted| *wanted == class || *wanted == round)
        };
        plans.retain(is_wanted);
    }
    Ok(plans)
}
