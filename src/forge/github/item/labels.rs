//! Single labels on items, and the labels of a repository.

use async_trait::async_trait;
use http::{Method, StatusCode};
use serde_json::json;

use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded, path};
use crate::forge::github::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::Repeat;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::LabelApi;
use crate::forge::settings::label_style::LabelStyle;

#[async_trait]
impl LabelApi for Api {
    fn label_key(label: &str) -> String {
        label.to_lowercase()
    }

    async fn label_names(&self, repository: &str) -> Result<Vec<String>, Failure> {
        let at = path(repository, "/labels?per_page=100");
        let labels: Vec<schema::Label> = self.client.list(TokenScope::Repository(repository), &at).await?;
        Ok(labels.into_iter().map(|label| label.name).collect())
    }

    async fn make_label(&self, repository: &str, label: &str, look: LabelStyle) -> Result<(), Failure> {
        let body = json!({ "name": label, "color": look.hex(), "description": look.description });
        let at = path(repository, "/labels");
        let scope = TokenScope::Repository(repository);
        let made = self
            .client
            .order(scope, Method::POST, &at, Some(&body), Repeat::Always)
            .await;
        match made {
            Err(failure) if failure.says(StatusCode::UNPROCESSABLE_ENTITY, "already_exists") => Ok(()),
            made => made.map(|_| ()),
        }
    }

    async fn put_label(&self, address: ItemAddress<'_>, label: &str) -> Result<(), Failure> {
        let at = path(address.repository, &format!("/issues/{}/labels", address.number));
        let body = json!({ "labels": [label] });
        let scope = TokenScope::Repository(address.repository);
        let put = self
            .client
            .order(scope, Method::POST, &at, Some(&body), Repeat::Always)
            .await;
        put.map(|_| ())
    }

    async fn take_label(&self, address: ItemAddress<'_>, label: &str) -> Result<(), Failure> {
        let at = path(
            address.repository,
            &format!("/issues/{}/labels/{}", address.number, encoded(label)),
        );
        let scope = TokenScope::Repository(address.repository);
        let taken = self
            .client
            .order(scope, Method::DELETE, &at, None, Repeat::Always)
            .await;
        match taken {
            // The words for a label that is not on the item; a missing item is just "Not Found".
            Err(failure) if failure.says(StatusCode::NOT_FOUND, "label does not exist") => Ok(()),
            taken => taken.map(|_| ()),
        }
    }
}
