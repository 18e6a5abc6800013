//! Single labels on items, and the labels of a project.

use std::collections::BTreeSet;
use std::sync::Arc;

use gitlab::api::projects::issues::EditIssue;
use gitlab::api::projects::labels::{CreateLabel, Labels};
use gitlab::api::projects::merge_requests::EditMergeRequest;
use http::StatusCode;

use super::{Address, GitLab, Kind, wire};
use crate::forge::failure::Failure;
use crate::forge::labels::Look;
use crate::forge::retry::once;

impl GitLab {
    pub(super) async fn put_label(&self, address: Address<'_>, label: &str) -> Result<(), Failure> {
        self.make_label(address.project, label).await?;
        match address.kind {
            Kind::Issue => {
                let mut edit = EditIssue::builder();
                self.client
                    .order(
                        edit.project(address.project)
                            .issue(address.iid)
                            .add_label(label)
                            .build(),
                    )
                    .await
            }
            Kind::MergeRequest => {
                let mut edit = EditMergeRequest::builder();
                self.client
                    .order(
                        edit.project(address.project)
                            .merge_request(address.iid)
                            .add_label(label)
                            .build(),
                    )
                    .await
            }
        }
    }

    pub(super) async fn take_label(&self, address: Address<'_>, label: &str) -> Result<(), Failure> {
        match address.kind {
            Kind::Issue => {
                let mut edit = EditIssue::builder();
                self.client
                    .order(
                        edit.project(address.project)
                            .issue(address.iid)
                            .remove_label(label)
                            .build(),
                    )
                    .await
            }
            Kind::MergeRequest => {
                let mut edit = EditMergeRequest::builder();
                self.client
                    .order(
                        edit.project(address.project)
                            .merge_request(address.iid)
                            .remove_label(label)
                            .build(),
                    )
                    .await
            }
        }
    }

    /// Makes the label if neither the project nor its groups have it. GitLab would make it by
    /// itself on first use, but blue and without a word; one list of the labels serves all of them
    /// for a while.
    async fn make_label(&self, project: &str, label: &str) -> Result<(), Failure> {
        let known = self.label_names(project).await?;
        if known.contains(label) {
            return Ok(());
        }
        let look = Look::of(label, &self.labels);
        let make = || async {
            let mut new = CreateLabel::builder();
            let new = new
                .project(project)
                .name(label)
                .color(look.colour)
                .description(look.description);
            match self.client.order(new.build()).await {
                // 409 in the project, 400 for one in a group above.
                Err(failure) if failure.says(StatusCode::CONFLICT, "already exists") => Ok(()),
                Err(failure) if failure.says(StatusCode::BAD_REQUEST, "already exists") => Ok(()),
                made => made,
            }
        };
        once(false, || async { Ok(None) }, make).await?;
        let mut names = BTreeSet::clone(&known);
        names.insert(label.to_owned());
        self.known_labels.learn(project, names);
        Ok(())
    }

    pub(super) async fn label_names(&self, project: &str) -> Result<Arc<BTreeSet<String>>, Failure> {
        if let Some(known) = self.known_labels.fact(project) {
            return Ok(known);
        }
        let labels: Vec<wire::Label> = self.client.list(Labels::builder().project(project).build()).await?;
        let names = labels.into_iter().map(|label| label.name).collect();
        Ok(self.known_labels.learn(project, names))
    }
}
