//! The gate of a container's network access: open always, or only while set-up commands run.

use std::sync::Arc;

use tokio::sync::watch;

use crate::egress::{Permit, Refusal};

/// The gate of one container's way out. Clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Number of [`HeldOpen`] guards; an always open gate counts one more.
    open: Arc<watch::Sender<usize>>,
}

/// A guard that keeps the gate open until it is dropped.
#[derive(Debug)]
pub struct HeldOpen(Gate);

/// Proof that the gate was open when a connection was requested.
#[derive(Debug, Clone)]
pub(super) struct Pass(watch::Receiver<usize>);

impl Gate {
    /// Returns a gate that never closes.
    pub fn always_open() -> Self {
        Self::held_by(1)
    }

    /// Returns a gate that is open only while a [`HeldOpen`] exists.
    pub fn closed() -> Self {
        Self::held_by(0)
    }

    fn held_by(count: usize) -> Self {
        Self {
            open: Arc::new(watch::Sender::new(count)),
        }
    }

    /// Opens the gate until the guard is dropped. Connections that are still open then are cut off.
    pub fn hold_open(&self) -> HeldOpen {
        self.open.send_modify(|holders| *holders += 1);
        HeldOpen(self.clone())
    }

    /// Admits one connection to an allowed destination, or refuses it if the gate is closed.
    pub(super) fn pass(&self, permit: &Permit) -> Result<Pass, Refusal> {
        let receiver = self.open.subscribe();
        let is_open = *receiver.borrow() > 0;
        if is_open {
            Ok(Pass(receiver))
        } else {
            Err(permit.after_set_up())
        }
    }
}

impl Drop for HeldOpen {
    fn drop(&mut self) {
        self.0.open.send_modify(|holders| *holders = holders.saturating_sub(1));
    }
}

impl Pass {
    /// Waits until the gate is closed.
    pub(super) async fn withdrawn(&self) {
        let mut receiver = self.0.clone();
        // An error means that the gate was dropped, and with it the way out.
        let _ = receiver.wait_for(|holders| *holders == 0).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::{Destination, Policy};

    fn permit() -> Permit {
        let policy = Policy::of_readable(&["a.example".to_owned()], &[]);
        policy
            .judge(Destination::parse("a.example:443", None).unwrap())
            .unwrap()
    }

    #[tokio::test]
    async fn a_pass_lasts_as_long_as_somebody_holds_the_gate_open() {
        let gate = Gate::closed();
        assert_eq!(gate.pass(&permit()).unwrap_err(), permit().after_set_up());
        let (first, second) = (gate.hold_open(), gate.hold_open());
        let pass = gate.pass(&permit()).unwrap();
        drop(first);
        assert!(futures_util::FutureExt::now_or_never(pass.withdrawn()).is_none());
        drop(second);
        pass.withdrawn().await;
        assert!(gate.pass(&permit()).is_err());
        assert!(Gate::always_open().pass(&permit()).is_ok());
    }
}
