//! Single labels on items, and the labels of a repository.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::json;

use super::client::{encoded, path};
use super::installations::Rights;
use super::{Address, GitHub, wire};
use crate::forge::failure::Failure;
use crate::forge::labels::Look;
use crate::forge::retry::Repeat;

impl GitHub {
    pub(super) async fn put_label(&self, address: Address<'_>, label: &str) -> Result<(), Failure> {
        self.make_label(address.repository, label).await?;
        let at = path(address.repository, &format!("/issues/{}/labels", address.number));
        let body = json!({ "labels": [label] });
        let rights = Rights::Repository(address.repository);
        self.client
            .order(rights, Method::POST, &at, Some(&body), Repeat::Always)
            .await?;
        Ok(())
    }

    pub(super) async fn take_label(&self, address: Address<'_>, label: &str) -> Result<(), Failure> {
        let at = path(
            address.repository,
            &format!("/issues/{}/labels/{}", address.number, encoded(label)),
        );
        let rights = Rights::Repository(address.repository);
        let taken = self
            .client
            .order(rights, Method::DELETE, &at, None, Repeat::Always)
            .await;
        match taken {
            // The words for a label that is not on the item; a missing item is just "Not Found".
            Err(failure) if failure.says(StatusCode::NOT_FOUND, "label does not exist") => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Ok(()),
        }
    }

    /// Makes the label if the repository does not have it. GitHub would make it by itself on first
    /// use, but grey and without a word; one list of the labels serves all of them for a while.
    async fn make_label(&self, repository: &str, label: &str) -> Result<(), Failure> {
        let known = self.label_names(repository).await?;
        if known.contains(&label.to_lowercase()) {
            return Ok(());
        }
        let look = Look::of(label, &self.labels);
        let body = json!({ "name": label, "color": look.hex(), "description": look.description });
        let at = path(repository, "/labels");
        let rights = Rights::Repository(repository);
        match self
            .client
            .order(rights, Method::POST, &at, Some(&body), Repeat::Always)
            .await
        {
            Err(failure) if failure.says(StatusCode::UNPROCESSABLE_ENTITY, "already_exists") => {}
            Err(failure) => return Err(failure),
            Ok(_) => {}
        }
        let mut names = BTreeSet::clone(&known);
        names.insert(label.to_lowercase());
        self.known_labels.learn(repository, names);
        Ok(())
    }

    pub(super) async fn label_names(&self, repository: &str) -> Result<Arc<BTreeSet<String>>, Failure> {
        if let Some(known) = self.known_labels.fact(repository) {
            return Ok(known);
        }
        let rights = Rights::Repository(repository);
        let labels: Vec<wire::Label> = self
            .client
            .list(rights, &path(repository, "/labels?per_page=100"))
            .await?;
        let names = labels.into_iter().map(|label| label.name.to_lowercase()).collect();
        Ok(self.known_labels.learn(repository, names))
    }
}
