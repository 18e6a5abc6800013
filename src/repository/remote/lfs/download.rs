//! Fetches contents from the forge's Git LFS server.

use std::time::Duration;

use futures_util::TryStreamExt;
use reqwest::StatusCode;
use tokio::time::Instant;
use tokio_util::io::StreamReader;

use crate::lfs::Pointer;
use crate::plain::counted;
use crate::repository::RepositoryError;
use crate::repository::git::address::Login;
use crate::repository::mirror::Mirror;
use crate::repository::reading::contents::ContentError;
use crate::repository::remote::lfs::server::{AT_A_TIME, LfsError, Server};
use crate::repository::remote::lfs::wire::{Action, Answered, Operation};

/// How often a content is fetched that did not come whole.
const ATTEMPTS: usize = 3;
/// Contents of this many times what one commit may need are kept for later runs.
const KEPT_COMMITS: u64 = 2;

/// A content that is not here, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfetched {
    pub pointer: Pointer,
    pub reason: String,
}

impl Mirror {
    /// Fetches the contents of `pointers` that are not here, the smallest first, as many as
    /// `git.lfs` allows. Returns those that are not here then. Only where the server cannot be
    /// reached at all is that an error: a single content that cannot be had must not stop a run
    /// that may not need it.
    pub async fn fetch_contents(
        &self,
        login: Option<&Login>,
        pointers: &[Pointer],
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Vec<Unfetched>, RepositoryError> {
        let limits = &self.config().lfs;
        let mut wanted = pointers.to_vec();
        wanted.sort_by_key(|pointer| (pointer.size(), pointer.digest().to_owned()));
        wanted.dedup();
        let (mut bytes, mut chosen, mut unfetched) = (0_u64, Vec::new(), Vec::new());
        for pointer in wanted {
            bytes = bytes.saturating_add(pointer.size());
            let over = if !limits.enabled {
                "`git.lfs.enabled` is false"
            } else if chosen.len() >= limits.max_files {
                "over the limit of `git.lfs.max_files`"
            } else if bytes > limits.max_bytes {
                "over the limit of `git.lfs.max_bytes`"
            } else {
                chosen.push(pointer);
                continue;
            };
            unfetched.push(Unfetched {
                pointer,
                reason: over.to_owned(),
            });
        }
        for pointer in &chosen {
            self.use_content(pointer).await;
        }
        let missing = self.missing_contents(&chosen).await;
        if !missing.is_empty() {
            let bytes: u64 = missing.iter().map(Pointer::size).sum();
            progress(format!(
                "fetching {} of Git LFS ({} MB)",
                counted(missing.len(), "file"),
                bytes.div_ceil(1_000_000)
            ));
            let server = Server::of(self.own_address()?, login, self.config())?;
            let end = Instant::now() + Duration::from_secs(self.config().timeout_seconds);
            for part in missing.chunks(AT_A_TIME) {
                unfetched.extend(self.fetch_part(&server, part, end).await?);
            }
        }
        self.prune_contents(limits.max_bytes.saturating_mul(KEPT_COMMITS)).await;
        Ok(unfetched)
    }

    /// Fetches a part of the contents; none is begun after `end`.
    async fn fetch_part(
        &self,
        server: &Server,
        part: &[Pointer],
        end: Instant,
    ) -> Result<Vec<Unfetched>, RepositoryError> {
        let away = |reason: String| RepositoryError::Unavailable {
            what: format!("asking the Git LFS server of {}", self.path().display()),
            reason,
        };
        let answer = match server.batch(Operation::Download, part).await {
            Ok(answer) => answer,
            Err(LfsError::Away(reason)) => return Err(away(reason)),
            Err(LfsError::Refused(reason)) => {
                let reason = format!("the server refuses: {reason}");
                let all = part.iter().cloned();
                let all = all.map(|pointer| Unfetched {
                    pointer,
                    reason: reason.clone(),
                });
                return Ok(all.collect());
            }
        };
        let mut unfetched = Vec::new();
        for pointer in part {
            let named = answer.objects.iter().find(|object| object.oid == pointer.digest());
            let fetched = match named.map(download) {
                Some(Ok(_)) if Instant::now() > end => Err(ContentError::Wrong(
                    "over the limit of `git.timeout_seconds`".to_owned(),
                )),
                Some(Ok(action)) => self.fetch_content(server, pointer, action).await,
                Some(Err(reason)) => Err(ContentError::Wrong(reason)),
                None => Err(ContentError::Wrong("the server does not speak of it".to_owned())),
            };
            match fetched {
                Ok(()) => {}
                Err(ContentError::Own(error)) => return Err(error),
                Err(ContentError::Wrong(reason) | ContentError::Broken(reason)) => unfetched.push(Unfetched {
                    pointer: pointer.clone(),
                    reason,
                }),
            }
        }
        Ok(unfetched)
    }

    async fn fetch_content(&self, server: &Server, pointer: &Pointer, action: &Action) -> Result<(), ContentError> {
        let mut last = ContentError::Broken(String::new());
        for _ in 0..ATTEMPTS {
            let response = match server.get(action).await {
                Ok(response) if response.status() == StatusCode::OK => response,
                Ok(response) => return Err(ContentError::Wrong(format!("the server answers {}", response.status()))),
                Err(LfsError::Refused(reason)) => return Err(ContentError::Wrong(reason)),
                Err(LfsError::Away(reason)) => {
                    last = ContentError::Broken(reason);
                    continue;
                }
            };
            let stream = response.bytes_stream().map_err(std::io::Error::other);
            let kept = self.keep_content(pointer, StreamReader::new(stream), server.patience());
            match kept.await {
                Err(ContentError::Broken(reason)) => last = ContentError::Broken(reason),
                kept => return kept,
            }
        }
        Err(last)
    }
}

fn download(object: &Answered) -> Result<&Action, String> {
    if let Some(error) = &object.error {
        return Err(format!(
            "the server says {}: {}",
            error.code,
            error.message.escape_debug()
        ));
    }
    let actions = object.actions.as_ref();
    let action = actions.and_then(|actions| actions.download.as_ref());
    action.ok_or_else(|| "the server gives no address for it".to_owned())
}
