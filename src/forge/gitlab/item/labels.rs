//! Single labels on items, and the labels of a project.

use async_trait::async_trait;
use gitlab::api::projects::labels::{CreateLabel, Labels};
use http::StatusCode;

use crate::forge::gitlab::http::endpoints::Below;
use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::once;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::LabelApi;
use crate::forge::settings::label_style::LabelStyle;

#[async_trait]
impl LabelApi for Api {
    fn label_key(label: &str) -> String {
        label.to_owned()
    }

    async fn label_names(&self, repository: &str) -> Result<Vec<String>, Failure> {
        let labels = Labels::builder().project(repository).build();
        let labels: Vec<schema::Label> = self.client.list(labels).await?;
        Ok(labels.into_iter().map(|label| label.name).collect())
    }

    async fn make_label(&self, repository: &str, label: &str, look: LabelStyle) -> Result<(), Failure> {
        let make = || async {
            let mut new = CreateLabel::builder();
            let new = new
                .project(repository)
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
        once(false, || async { Ok(None) }, make).await
    }

    async fn put_label(&self, address: ItemAddress<'_>, label: &str) -> Result<(), Failure> {
        let edit = Below::put(address, "").with("add_labels", label);
        self.client.order(edit.build()).await
    }

    async fn take_label(&self, address: ItemAddress<'_>, label: &str) -> Result<(), Failure> {
        let edit = Below::put(address, "").with("remove_labels", label);
        self.client.order(edit.build()).await
    }
}
