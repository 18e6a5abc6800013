//! Contents of large files, from and to the forge's Git LFS server.
//!
//! The worker speaks the protocol itself, so that no filter of a repository runs on it. The server
//! is the one that belongs to the repository's address: what a commit's `.lfsconfig` names is not
//! asked, because whoever may write a commit would decide where the credentials go.

mod wire; // the bodies of the protocol
mod server; // requests, and which addresses they may go to
mod download;
mod upload;

pub use download::Unfetched;
