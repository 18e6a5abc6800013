//! How often somebody may show a wrong token: a few times a minute, by address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens from one address within [`WINDOW`].
const MOST: u32 = 10;
const WINDOW: Duration = Duration::from_mins(1);
/// Addresses that are remembered; the oldest give way.
const MOST_ADDRESSES: usize = 1_024;

/// The wrong tokens of late, by address.
#[derive(Default)]
pub(super) struct Attempts {
    wrong: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

impl Attempts {
    /// Tells whether another token is looked at.
    pub(super) fn may_try(&self, peer: IpAddr) -> bool {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let found = wrong.get(&peer);
        found.is_none_or(|(since, count)| since.elapsed() > WINDOW || *count < MOST)
    }

    /// Counts a wrong token.
    pub(super) fn was_wrong(&self, peer: IpAddr) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.len() >= MOST_ADDRESSES && !wrong.contains_key(&peer) {
            wrong.retain(|_, (since, _)| since.elapsed() <= WINDOW);
            let oldest = wrong.iter().min_by_key(|(_, (since, _))| *since).map(|(peer, _)| *peer);
            if let Some(oldest) = oldest.filter(|_| wrong.len() >= MOST_ADDRESSES) {
                wrong.remove(&oldest);
            }
        }
        let entry = wrong.entry(peer).or_insert((Instant::now(), 0));
        if entry.0.elapsed() > WINDOW {
            *entry = (Instant::now(), 0);
        }
        entry.1 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_address_is_heard_no_more_after_some_wrong_tokens_and_memory_is_bounded() {
        let attempts = Attempts::default();
        let address = |number: u32| IpAddr::from(Ipv4Addr::from_bits(number));
        for _ in 0..MOST {
            assert!(attempts.may_try(address(1)));
            attempts.was_wrong(address(1));
        }
        assert!(!attempts.may_try(address(1)) && attempts.may_try(address(2)));
        for number in 2..10_000 {
            attempts.was_wrong(address(number));
        }
        assert!(attempts.wrong.lock().unwrap().len() <= MOST_ADDRESSES);
    }
}
