//! The requests to a fake forge, and the faults that it is to have. Both forges are asked and told
//! the same way: they deref to this.
//!
//! Every request is kept with its answer. How requests are named is said in `fault`.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::Method;

use crate::fake::fault::Disturbance;
use crate::fake::fault::Quirk;
use crate::fake::fault::Route;

pub use crate::fake::fault::Fault;

/// A request, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Path and query, without the prefix of the API.
    pub path: String,
    /// The status of the answer; `None` if the connection was dropped instead.
    pub status: Option<u16>,
    /// Whether the request belongs to the git protocol, and not to the API.
    pub is_git: bool,
    /// The request's place among all requests, in the order they came in; they are kept in the
    /// order they were answered.
    pub arrival: usize,
}

#[derive(Debug, Default)]
pub struct Traffic {
    requests: Mutex<Vec<Request>>,
    unknown: Mutex<Vec<String>>,
    disturbances: Mutex<Vec<Disturbance>>,
    quirks: Mutex<Vec<Quirk>>,
    deeds: Mutex<Vec<Deed>>,
    arrived: AtomicUsize,
    hanging: AtomicUsize,
    /// How often hanging requests were cut off.
    cuts: AtomicUsize,
    clock: AtomicI64,
}

/// Something that happens once, after a request to a route was worked on and before it is answered.
struct Deed {
    route: Route,
    act: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Deed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "after {:?}", self.route)
    }
}

impl Traffic {
    /// Has something happen once, after the next request to a route and before it is answered.
    pub fn after(&self, route: &str, act: impl FnOnce() + Send + 'static) {
        let deed = Deed {
            route: Route::new(route),
            act: Box::new(act),
        };
        self.deeds.lock().expect("no panic holds it").push(deed);
    }

    /// Does what waited for a request, and wakes the disturbances that did.
    pub fn has_been_worked_on(&self, method: &Method, path: &str) {
        let mut disturbances = self.disturbances.lock().expect("no panic holds it");
        disturbances
            .iter_mut()
            .for_each(|disturbance| disturbance.notices(method, path));
        drop(disturbances);
        let mut deeds = self.deeds.lock().expect("no panic holds it");
        let (due, waiting): (Vec<_>, Vec<_>) = deeds.drain(..).partition(|deed| deed.route.matches(method, path));
        *deeds = waiting;
        drop(deeds);
        for deed in due {
            (deed.act)();
        }
    }

    /// Counts a request that comes in, and returns its place in the order.
    pub fn arrive(&self) -> usize {
        self.arrived.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns how many requests came in until now.
    pub fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    pub fn record(&self, request: Request) {
        self.requests.lock().expect("no panic holds it").push(request);
    }

    pub fn record_unknown(&self, request: String) {
        self.unknown.lock().expect("no panic holds it").push(request);
    }

    /// Returns how many requests came in, those of the git protocol too, and how many of them were
    /// answered or dropped.
    pub fn counts(&self) -> (usize, usize) {
        (self.arrived(), self.requests.lock().expect("no panic holds it").len())
    }

    /// Returns all requests until now.
    pub fn all_requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic holds it").clone()
    }

    /// Returns the requests to the API until now.
    pub fn requests(&self) -> Vec<Request> {
        let mut requests = self.all_requests();
        requests.retain(|request| !request.is_git);
        requests
    }

    /// Returns the requests of the git protocol until now.
    pub fn git_requests(&self) -> Vec<Request> {
        let mut requests = self.all_requests();
        requests.retain(|request| request.is_git);
        requests
    }

    /// Counts the requests to a route.
    pub fn count(&self, route: &str) -> usize {
        self.all_requests().iter().filter(|request| request.is(route)).count()
    }

    /// Returns the requests that the fake does not know, so that a test can fail on them.
    pub fn unknown_requests(&self) -> Vec<String> {
        self.unknown.lock().expect("no panic holds it").clone()
    }

    /// Sets the forge's clock to so many minutes after this machine's: the dates of its answers go
    /// by it.
    pub fn clock_is_ahead(&self, minutes: i64) {
        self.clock.store(minutes, Ordering::SeqCst);
    }

    /// Returns the date of an answer that is given now.
    pub fn date(&self) -> String {
        let ahead = chrono::TimeDelta::minutes(self.clock.load(Ordering::SeqCst));
        let now = chrono::Utc::now() + ahead;
        now.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// Adds a disturbance.
    pub fn disturb(&self, disturbance: Disturbance) {
        self.disturbances.lock().expect("no panic holds it").push(disturbance);
    }

    /// Ends all disturbances.
    pub fn is_well_again(&self) {
        self.disturbances.lock().expect("no panic holds it").clear();
    }

    /// Lets `spared` requests to a route by, and the next `times` go wrong in any way there is.
    pub fn misbehaves(&self, route: &str, spared: usize, fault: Fault, times: usize) {
        self.disturb(Disturbance::of(route, fault).sparing(spared).times(times));
    }

    /// Refuses the next requests to a route.
    pub fn fails_next(&self, route: &str, status: u16, times: usize) {
        self.misbehaves(route, 0, Fault::Fails(status), times);
    }

    /// Does what the next requests to a route ask, and says that it failed.
    pub fn fails_after_work(&self, route: &str, status: u16, times: usize) {
        self.misbehaves(route, 0, Fault::FailsAfterWork(status), times);
    }

    /// Breaks the connection off at the next requests to a route.
    pub fn drops_connection(&self, route: &str, times: usize) {
        self.misbehaves(route, 0, Fault::Drops, times);
    }

    /// Does what the next requests to a route ask, and breaks the connection off.
    pub fn drops_connection_after_work(&self, route: &str, times: usize) {
        self.misbehaves(route, 0, Fault::DropsAfterWork, times);
    }

    /// Answers every request to a route late.
    pub fn slow(&self, route: &str, delay: Duration) {
        self.disturb(Disturbance::of(route, Fault::Waits(delay)).always());
    }

    /// Lets `spared` requests to a route by, and leaves the next one without an answer, before or
    /// after its work is done.
    pub fn hangs(&self, route: &str, spared: usize, is_done: bool) {
        let fault = if is_done { Fault::HangsAfterWork } else { Fault::Hangs };
        self.misbehaves(route, spared, fault, 1);
    }

    /// Gives the fake a quirk from now on.
    pub fn behaves(&self, quirk: Quirk) {
        self.quirks.lock().expect("no panic holds it").push(quirk);
    }

    pub fn has(&self, quirk: Quirk) -> bool {
        self.quirks.lock().expect("no panic holds it").contains(&quirk)
    }

    /// Returns the requests that are left hanging.
    pub fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    /// Returns how often hanging requests were cut off: a request hangs until this changes.
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }

    pub fn cut_off(&self) {
        self.hanging.store(0, Ordering::SeqCst);
        self.cuts.fetch_add(1, Ordering::SeqCst);
    }

    pub fn record_hanging(&self) {
        self.hanging.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the fault that is next for this request, and uses it up.
    pub fn fault(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut disturbances = self.disturbances.lock().expect("no panic holds it");
        disturbances
            .iter_mut()
            .find(|disturbance| disturbance.concerns(method, path))?
            .strikes()
    }
}

impl Request {
    /// Tells whether the request went to a route.
    pub fn is(&self, route: &str) -> bool {
        Route::new(route).matches(&self.method, &self.path)
    }

    /// Says whether a request to a route came in at that place of the order or later, and was
    /// answered well.
    pub fn was_answered(&self, route: &str, since: usize) -> bool {
        self.arrival >= since && matches!(self.status, Some(200 | 304)) && self.is(route)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{} {} {status}", self.method, self.path),
            None => write!(f, "{} {} dropped", self.method, self.path),
        }
    }
}
