//! Records what a run's containers were refused, for the journal, the model and people; and their
//! traffic, for the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::flow::{Counted, Traffic};
use crate::egress::{Destination, Refusal};

/// Maximum number of destinations kept; later refusals of new ones are not recorded.
const MOST: usize = 100;

/// Name under which the hosts beyond [`MOST`] are counted together.
const OTHERS: &str = "others";

/// Minimum time between two reports of traffic to the same host.
const PAUSE: Duration = Duration::from_mins(1);

/// The distinct refusals of one run, and its traffic by host and port.
pub struct Ledger {
    pages: Mutex<Pages>,
    /// Called for the first refusal of each destination, and for traffic at most once per
    /// [`PAUSE`].
    note: Box<dyn Fn(News<'_>) + Send + Sync>,
}

/// An event for the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News<'a> {
    Refused(&'a Refusal),
    /// Connections to an allowed host that ended since the last report.
    Allowed {
        host: String,
        port: u16,
        traffic: Traffic,
    },
}

#[derive(Default)]
struct Pages {
    all: BTreeSet<Refusal>,
    /// Refused since [`Ledger::take_recent`] was last called, for the first time or again.
    recent: BTreeSet<Refusal>,
    /// Traffic that was not reported yet, by host and port.
    traffic: BTreeMap<(String, u16), Tally>,
    /// True after [`Ledger::close`]: each connection is then reported when it ends.
    is_closed: bool,
}

/// Traffic to one host that was not reported yet.
#[derive(Default)]
struct Tally {
    since: Traffic,
    told_at: Option<Instant>,
}

impl Ledger {
    /// Returns a ledger with the refusals that an earlier process recorded; they are not reported
    /// again.
    pub fn new(known: impl IntoIterator<Item = Refusal>, note: impl Fn(News<'_>) + Send + Sync + 'static) -> Self {
        let pages = Pages {
            all: known.into_iter().collect(),
            ..Pages::default()
        };
        Self {
            pages: Mutex::new(pages),
            note: Box::new(note),
        }
    }

    pub(super) fn add(&self, refusal: &Refusal) {
        let mut pages = self.pages();
        let is_known = pages.all.contains(refusal);
        if !is_known && pages.all.len() >= MOST {
            return;
        }
        pages.recent.insert(refusal.clone());
        if !is_known {
            pages.all.insert(refusal.clone());
            (self.note)(News::Refused(refusal));
        }
    }

    /// Returns `stream` with its bytes counted as traffic to `destination`.
    pub(super) fn counted<S>(
        self: &Arc<Self>,
        stream: S,
        destination: &Destination,
    ) -> Counted<S, impl Fn(Traffic) + Send + Unpin + 'static> {
        let (ledger, host, port) = (Arc::clone(self), destination.host.to_string(), destination.port);
        Counted::new(stream, move |traffic| ledger.went_out((host.clone(), port), traffic))
    }

    fn went_out(&self, host: (String, u16), traffic: Traffic) {
        let mut pages = self.pages();
        let is_closed = pages.is_closed;
        let is_one_more = !pages.traffic.contains_key(&host) && pages.traffic.len() >= MOST;
        let host = if is_one_more { (OTHERS.to_owned(), 0) } else { host };
        let tally = pages.traffic.entry(host.clone()).or_default();
        tally.since.add(traffic);
        if is_closed || tally.told_at.is_none_or(|told_at| told_at.elapsed() >= PAUSE) {
            tally.told_at = Some(Instant::now());
            self.tell(&host, std::mem::take(&mut tally.since));
        }
    }

    /// Reports the traffic that was not reported yet, and from now on each connection when it ends.
    pub fn close(&self) {
        let mut pages = self.pages();
        pages.is_closed = true;
        for (host, tally) in &mut pages.traffic {
            let since = std::mem::take(&mut tally.since);
            if since != Traffic::default() {
                self.tell(host, since);
            }
        }
    }

    fn tell(&self, (host, port): &(String, u16), traffic: Traffic) {
        (self.note)(News::Allowed {
            host: host.clone(),
            port: *port,
            traffic,
        });
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all refusals of the run.
    pub fn all(&self) -> BTreeSet<Refusal> {
        self.pages().all.clone()
    }

    /// Takes the refusals since this was last called.
    pub fn take_recent(&self) -> BTreeSet<Refusal> {
        std::mem::take(&mut self.pages().recent)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::egress::{Destination, Policy};

    fn refusal(number: usize) -> Refusal {
        let destination = Destination::parse(&format!("host-{number}.example:443"), None).unwrap();
        Policy::default().judge(destination).unwrap_err()
    }

    #[test]
    fn each_is_noted_once_and_told_as_often_as_it_happens() {
        let noted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&noted);
        let ledger = Ledger::new([refusal(0)], move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        for _ in 0..2 {
            ledger.add(&refusal(0));
            ledger.add(&refusal(1));
            ledger.add(&refusal(1));
            assert_eq!(ledger.take_recent(), BTreeSet::from([refusal(0), refusal(1)]));
        }
        assert_eq!(noted.load(Ordering::Relaxed), 1);
        for number in 0..1_000 {
            ledger.add(&refusal(number));
        }
        assert_eq!(noted.load(Ordering::Relaxed), MOST - 1);
        assert_eq!(ledger.take_recent().len(), MOST);
    }

    #[test]
    fn traffic_is_told_of_at_once_then_together_and_at_the_end() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&told);
        let ledger = Ledger::new([], move |news| {
            if let News::Allowed { host, port, traffic } = news {
                notes
                    .lock()
                    .unwrap()
                    .push((host, port, traffic.connections, traffic.sent));
            }
        });
        let traffic = |sent| Traffic {
            connections: 1,
            sent,
            received: 0,
        };
        let host = |number: usize| (format!("host-{number}.example"), 443);
        for sent in [1, 2, 3] {
            ledger.went_out(host(0), traffic(sent));
        }
        ledger.close();
        ledger.went_out(host(0), traffic(4));
        let name = || "host-0.example".to_owned();
        let expected = [(name(), 443, 1, 1), (name(), 443, 2, 5), (name(), 443, 1, 4)];
        assert_eq!(*told.lock().unwrap(), expected);
        for number in 0..1_000 {
            ledger.went_out(host(number), traffic(1));
        }
        assert_eq!(ledger.pages().traffic.len(), MOST + 1);
    }
}
