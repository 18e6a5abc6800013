//! A Kubernetes cluster as an engine: a pod for each run, with its services as containers of the
//! same pod, so that they share a loopback. It is the only place that knows kube.
//!
//! Everything is in one namespace, carries the installation's label, and belongs to one object of
//! the installation, with which it goes. Every call has a time-out. What a process says and how it
//! ended comes in frames over a stream that may be cut at any time ([`stream`]). The network policy
//! is tried before a run depends on it ([`trial`]). Images are pulled by the nodes, and no set-up
//! is kept.

mod failure; // how a call failed, and who mends it
mod names; // labels and names
mod pod; // describes pods
mod standing; // judges how a pod stands
mod stream; // a process over a stream that may be cut
mod verdict; // what came of trying the network policy
mod cluster; // the connection to the API server
mod rights; // what the program may do there
mod owner; // what everything belongs to, and the network policy
mod lives; // pods are found, taken and removed
mod starting; // pods come
mod processes; // processes in pods
mod trial; // whether the network policy holds
mod driver; // all of it, as every kind of engine is used

pub(super) use cluster::Cluster;
