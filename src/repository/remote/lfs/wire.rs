//! The bodies of the protocol: <https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md>.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::lfs::Pointer;

pub(super) const MEDIA_TYPE: &str = "application/vnd.git-lfs+json";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Operation {
    Download,
    Upload,
}

#[derive(Debug, Serialize)]
pub(super) struct Batch {
    operation: Operation,
    transfers: [&'static str; 1],
    hash_algo: &'static str,
    objects: Vec<Object>,
}

#[derive(Debug, Serialize)]
pub(super) struct Object {
    oid: String,
    size: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    /// The transfer adapter; `basic` if left out.
    pub(super) transfer: Option<String>,
    pub(super) objects: Vec<Answered>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Answered {
    pub(super) oid: String,
    pub(super) actions: Option<Actions>,
    pub(super) error: Option<ObjectError>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Actions {
    pub(super) download: Option<Action>,
    pub(super) upload: Option<Action>,
    pub(super) verify: Option<Action>,
}

/// A request that the server asks the client to make.
#[derive(Debug, Deserialize)]
pub(super) struct Action {
    pub(super) href: String,
    #[serde(default)]
    pub(super) header: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ObjectError {
    pub(super) code: u16,
    #[serde(default)]
    pub(super) message: String,
}

/// The body of an answer that refuses a request.
#[derive(Debug, Deserialize)]
pub(super) struct Complaint {
    pub(super) message: String,
}

impl Batch {
    pub(super) fn of(operation: Operation, pointers: &[Pointer]) -> Self {
        Self {
            operation,
            transfers: ["basic"],
            hash_algo: "sha256",
            objects: pointers.iter().map(Object::of).collect(),
        }
    }
}

impl Object {
    pub(super) fn of(pointer: &Pointer) -> Self {
        Self {
            oid: pointer.digest().to_owned(),
            size: pointer.size(),
        }
    }
}
