//! Gives contents to the forge's Git LFS server, before a push of the pointers to them.

use http::header::{ACCEPT, CONTENT_TYPE};

use crate::lfs::Pointer;
use crate::repository::git::address::{Address, Login};
use crate::repository::git::lock;
use crate::repository::mirror::Mirror;
use crate::repository::reading::large_files::LargeFile;
use crate::repository::remote::lfs::server::{AT_A_TIME, LfsError, Server};
use crate::repository::remote::lfs::wire::{Actions, MEDIA_TYPE, Object, Operation};
use crate::repository::{CommitId, RepositoryError};

impl Mirror {
    /// Gives the forge the contents of all large files that `commit` adds, unless it has them. A
    /// pointer whose content is nowhere is refused: nobody could check the commit out.
    pub(in crate::repository) async fn upload_contents(
        &self,
        address: &Address,
        login: Option<&Login>,
        commit: &CommitId,
    ) -> Result<(), RepositoryError> {
        let added = self.new_large_files(commit).await?;
        if added.is_empty() {
            return Ok(());
        }
        let server = Server::of(address, login, self.config())?;
        let failed = |error: LfsError| {
            let what = format!("uploading {} to Git LFS", named(&added));
            match error {
                LfsError::Away(reason) => RepositoryError::Unavailable { what, reason },
                LfsError::Refused(reason) => RepositoryError::Refused {
                    what,
                    reason: format!(
                        "{reason}; see that the repository has Git LFS and that the token's account may write to it"
                    ),
                },
            }
        };
        for part in added.chunks(AT_A_TIME) {
            let pointers: Vec<Pointer> = part.iter().map(|file| file.pointer.clone()).collect();
            let answer = server.batch(Operation::Upload, &pointers).await.map_err(failed)?;
            for file in part {
                let object = answer.objects.iter().find(|object| object.oid == file.pointer.digest());
                let Some(object) = object else {
                    return Err(failed(LfsError::Refused("the server does not speak of it".to_owned())));
                };
                if let Some(error) = &object.error {
                    let reason = format!("the server says {}: {}", error.code, error.message.escape_debug());
                    return Err(failed(LfsError::Refused(reason)));
                }
                if let Some(actions) = &object.actions {
                    self.upload(&server, file, actions, &failed).await?;
                }
            }
        }
        Ok(())
    }

    async fn upload(
        &self,
        server: &Server,
        file: &LargeFile,
        actions: &Actions,
        failed: &(dyn Fn(LfsError) -> RepositoryError + Sync),
    ) -> Result<(), RepositoryError> {
        // Without an action to upload the server has the content.
        let Some(action) = &actions.upload else { return Ok(()) };
        let Some(path) = self.content(&file.pointer).await else {
            return Err(RepositoryError::Unacceptable(format!(
                "{} is a pointer of Git LFS to a content that is neither on the forge nor on this machine",
                file.path
            )));
        };
        let content = tokio::fs::File::open(&path).await;
        let content = content.map_err(|error| lock::at(&path, &error))?;
        let sent = server.put(action, file.pointer.size(), content);
        sent.await.map_err(failed)?;
        let Some(verify) = &actions.verify else { return Ok(()) };
        let body = serde_json::to_vec(&Object::of(&file.pointer)).unwrap_or_default();
        let verified = server.post(verify, |request| {
            request
                .header(ACCEPT, MEDIA_TYPE)
                .header(CONTENT_TYPE, MEDIA_TYPE)
                .body(body)
        });
        verified.await.map_err(failed)
    }
}

/// Names the first few files.
fn named(files: &[LargeFile]) -> String {
    const MOST: usize = 5;
    let mut names: Vec<String> = files
        .iter()
        .take(MOST)
        .map(|file| format!("`{}`", file.path.escape_debug()))
        .collect();
    if files.len() > MOST {
        names.push(format!("{} more", files.len() - MOST));
    }
    names.join(", ")
}
