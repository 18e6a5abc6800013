//! A container from nothing to running.

use super::EnvironmentError;
use super::container::{self, Container};
use super::docker::{Docker, Start};
use super::specification::{self, companion_name, container_name};

impl Docker {
    /// Creates a container with all limits and the executor as `/usr/local/bin/coding-agent-executor`, and starts it.
    /// `/workspace/project` exists and belongs to its user. Removes older containers of the same run first.
    pub async fn start(&self, start: &Start<'_>) -> Result<Container, EnvironmentError> {
        let said = self.said_by(start.image).await?;
        let furnished = self.furnished(start.image, &said, start.executor).await?;
        let order = self.order(start, &said);
        let companions: Vec<String> = order
            .services
            .iter()
            .map(|service| companion_name(start.run, service))
            .collect();
        let mut body = specification::container(self.config(), self.facts(), &order)?;
        let name = container_name(start.run);
        container::remove_all(&self.engine, [&name].into_iter().chain(&companions)).await?;
        let mut place = furnished.as_ref().and_then(|furnished| self.place(start, furnished));
        let mut kept = match (&place, start.set_up) {
            (Some(place), Some((_, wanted))) => self.kept(place, wanted).await?,
            _ => None,
        };
        let furnished_image = furnished.as_ref().map(|furnished| &furnished.id);
        let image = kept.as_ref().map(|kept| &kept.image).or(furnished_image);
        if let Some(image) = image {
            body.image = Some(image.clone());
        }
        let (id, is_furnished) = match self.create(&name, start.image, body.clone()).await {
            // Somebody tidied up since it was found.
            Err(EnvironmentError::ImageMissing { .. }) if furnished.is_some() => {
                self.forget_furnished().await;
                (kept, place) = (None, None);
                body.image = Some(start.image.to_owned());
                (self.create(&name, start.image, body).await?, false)
            }
            created => (created?, furnished.is_some()),
        };
        let started = async {
            if !is_furnished {
                self.furnish(&id, &said.user, start.executor).await?;
            }
            let starting = self.engine.ask(self.engine.client.start_container(&id, None));
            starting
                .await
                .map_err(|failure| self.engine.error("starting a container", failure))
        };
        match started.await {
            Ok(()) => {
                let container = self.container(id).with(companions);
                Ok(container.of_place(place, kept.map(|kept| kept.done)))
            }
            Err(error) => {
                if let Err(removal) = container::remove(&self.engine, &id).await {
                    tracing::warn!(
                        container = id,
                        "a container that did not start was left behind: {removal}"
                    );
                }
                Err(error)
            }
        }
    }
}
