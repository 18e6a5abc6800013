//! Random histories: whatever workers do and whenever they are killed, a run is in one pair of
//! hands.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::Value;

use super::{TTL, admit, place};
use crate::store::{Lease, StoreError};
use crate::task::state::State;

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Claim(usize),
    Release(usize),
    Drop(usize),
    Finish(usize),
    Kill(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_usize).prop_map(Step::Claim),
        1 => (0..8_usize).prop_map(Step::Release),
        1 => (0..8_usize).prop_map(Step::Drop),
        1 => (0..8_usize).prop_map(Step::Finish),
        1 => (0..3_usize).prop_map(Step::Kill),
    ];
    proptest::collection::vec(step, 1..40)
}

/// The leases that are in hands, and those whose worker was killed while it held them.
#[derive(Default)]
struct Hands {
    living: Vec<(usize, Lease)>,
    zombies: Vec<Lease>,
}

async fn history(steps: Vec<Step>) {
    let place = place();
    let mut stores = [place.open().await, place.open().await, place.open().await];
    for number in 0..4 {
        admit(&stores[0], number).await;
    }
    let mut hands = Hands::default();
    for step in steps {
        match step {
            Step::Claim(worker) => {
                if let Some((lease, run)) = stores[worker].claim(TTL).await.unwrap() {
                    assert!(
                        hands.living.iter().all(|(_, held)| held.run != run.id),
                        "two leases on {}",
                        run.id
                    );
                    for zombie in hands.zombies.iter().filter(|zombie| zombie.run == run.id) {
                        let saved = stores[worker].save(zombie, State::Failed, &Value::Null).await;
                        assert!(matches!(saved, Err(StoreError::LeaseLost(_))));
                    }
                    hands.living.push((worker, lease));
                }
            }
            Step::Release(at) if at < hands.living.len() => {
                let (worker, lease) = hands.living.remove(at);
                stores[worker].release(&lease, None).await.unwrap();
            }
            Step::Drop(at) if at < hands.living.len() => drop(hands.living.remove(at)),
            Step::Finish(at) if at < hands.living.len() => {
                let (worker, lease) = hands.living.remove(at);
                stores[worker].save(&lease, State::Done, &Value::Null).await.unwrap();
            }
            Step::Kill(worker) => {
                let fresh = place.open().await;
                place.kill(std::mem::replace(&mut stores[worker], fresh)).await;
                let (dead, living) = hands.living.into_iter().partition(|(owner, _)| *owner == worker);
                let dead: Vec<(usize, Lease)> = dead;
                hands.living = living;
                hands.zombies.extend(dead.into_iter().map(|(_, lease)| lease));
            }
            Step::Release(_) | Step::Drop(_) | Step::Finish(_) => {}
        }
        let mut owners = HashMap::new();
        for (worker, lease) in &hands.living {
            assert!(owners.insert(lease.run, worker).is_none());
            stores[*worker].heartbeat(lease, TTL).await.unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_history_gives_two_leases_on_one_run_or_takes_one_from_the_living(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(history(steps));
    }
}
