//! Requests to a forge: how they fail and are sent again, how long a list may be, and answers that
//! the forge only confirms.

pub(crate) mod failure;
pub(crate) mod retry;
pub(crate) mod list_limit;
pub(crate) mod validators;
pub(crate) mod cache;
pub(crate) mod clock;
pub(crate) mod clone_address;
pub(crate) mod meter;

pub use meter::Traffic;
pub use validators::KnownAnswer;
