//! Starts containers of an engine with Docker's API, for a run or for the warm pool.

use std::path::Path;

use super::container::name::{container_name, service_container_name};
use super::container::specification::{self, Holder};
use super::container::{self, Container};
use super::docker_engine::DockerEngine;
use super::driver::{BaseImage, LocalImages, StartImages, StartRequest, WarmContainer, WarmRequest};
use super::error::EnvironmentError;

impl DockerEngine {
    /// Looks up the images that the container of `start` will start from.
    pub(super) async fn images_of(&self, start: &StartRequest<'_>) -> Result<StartImages, EnvironmentError> {
        let (content, local) = self.local_images(start).await?;
        Ok(StartImages {
            content,
            local: Some(local),
        })
    }

    async fn local_images(&self, start: &StartRequest<'_>) -> Result<(String, LocalImages), EnvironmentError> {
        let base = self.base_image(start.image).await?;
        let prepared = self.prepared_image(start.image, &base, start.executor).await?;
        let place = self.place(start, &prepared);
        let kept = match (&place, start.set_up) {
            // One that an earlier version of the program kept lacks what is in the volumes.
            (Some(place), Some((_, wanted))) if base.volumes.is_empty() => self.kept(place, wanted).await?,
            _ => None,
        };
        let local = LocalImages {
            base,
            prepared: prepared.id,
            place,
            kept,
        };
        Ok((prepared.content, local))
    }

    /// Creates and starts the container of a run.
    pub(super) async fn start_with(
        &self,
        start: &StartRequest<'_>,
        images: StartImages,
    ) -> Result<Container, EnvironmentError> {
        let local = match images.local {
            Some(local) => local,
            None => self.local_images(start).await?.1,
        };
        let LocalImages {
            base,
            prepared,
            place,
            kept,
        } = local;
        let services = self.make_room(start).await?;
        let recipe = Recipe {
            holder: Holder::Run(start.task, start.run),
            environment: start.environment,
            image: start.image,
            base: &base,
            executor: start.executor,
            made: kept.as_ref().map(|kept| kept.image.as_str()).or(prepared.as_deref()),
        };
        let (container, is_as_wanted) =
            Box::pin(self.bring_up(&container_name(start.run, start.purpose), recipe)).await?;
        let container = container
            .with(services)
            .of_image(base.digest)
            .with_volumes(base.volumes);
        Ok(if is_as_wanted {
            container.of_place(place, kept.map(|kept| kept.done))
        } else {
            container
        })
    }

    /// Starts a container for the warm pool.
    pub(super) async fn warm_up(&self, warm: &WarmRequest<'_>) -> Result<WarmContainer, EnvironmentError> {
        let base = self.base_image(warm.image).await?;
        let prepared = self.prepared_image(warm.image, &base, warm.executor).await?;
        let recipe = Recipe {
            holder: Holder::Nobody(warm.worker),
            environment: warm.environment,
            image: warm.image,
            base: &base,
            executor: warm.executor,
            made: prepared.id.as_deref(),
        };
        let (container, _) = Box::pin(self.bring_up(warm.name, recipe)).await?;
        Ok(WarmContainer {
            container,
            content: prepared.content,
        })
    }

    /// Renames a container of the warm pool to be the run's. Removes older containers of the same
    /// run and purpose first.
    pub(super) async fn take(
        &self,
        start: &StartRequest<'_>,
        images: &StartImages,
        warm: Container,
    ) -> Result<Container, EnvironmentError> {
        let services = self.make_room(start).await?;
        let name = container_name(start.run, start.purpose);
        let renamed = self.client.rename(warm.id(), &name).await;
        renamed.map_err(|failure| self.client.error("taking a warm container", failure))?;
        let container = warm.with(services);
        Ok(match &images.local {
            Some(local) => container
                .of_image(local.base.digest.clone())
                .with_volumes(local.base.volumes.clone())
                .of_place(local.place.clone(), None),
            None => container,
        })
    }

    /// Removes containers with the names that the run's will have. Returns the names of its
    /// services.
    async fn make_room(&self, start: &StartRequest<'_>) -> Result<Vec<String>, EnvironmentError> {
        let services = self.config().services_of(start.environment);
        let names: Vec<String> = services
            .map(|(name, _)| service_container_name(start.run, start.purpose, name))
            .collect();
        let name = container_name(start.run, start.purpose);
        container::remove_all(&self.client, names.iter(), [&name].into_iter()).await?;
        Ok(names)
    }

    /// Creates, prepares if necessary, and starts a container. Returns it, and whether it was
    /// created from `recipe.made`.
    async fn bring_up(&self, name: &str, recipe: Recipe<'_>) -> Result<(Container, bool), EnvironmentError> {
        let Recipe {
            holder,
            environment,
            image,
            base,
            executor,
            made,
        } = recipe;
        let request = self.request(holder, (environment, image), base);
        let mut spec = specification::container(self.config(), self.info(), &request)?;
        if let Some(made) = made {
            spec.image = made.to_owned();
        }
        let (id, is_as_wanted) = match self.create(name, image, spec.clone()).await {
            // The image was removed since it was found. Falls back to the base image's id, because
            // its name may have moved to another image.
            Err(EnvironmentError::ImageMissing { .. }) if made.is_some() => {
                self.forget_prepared().await;
                spec.image = base.id.clone();
                (self.create(name, image, spec).await?, false)
            }
            created => (created?, made.is_some()),
        };
        let started = async {
            if !is_as_wanted {
                self.prepare(&id, &base.user, executor).await?;
            }
            // Before it starts: nothing that it says is lost then.
            let attached = self.client.attach(&id).await.map_err(|failure| {
                tracing::info!(container = id, "the engine does not attach to it: {}", failure.reason());
            });
            let started = self.client.start(&id).await;
            started.map_err(|failure| self.client.error("starting a container", failure))?;
            Ok(attached.ok())
        };
        match started.await {
            Ok(attached) => Ok((self.running(id).with_first(attached), is_as_wanted)),
            Err(error) => {
                if let Err(removal) = container::remove(&self.client, &id).await {
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

/// The parameters of [`Engine::bring_up`].
struct Recipe<'a> {
    holder: Holder<'a>,
    environment: &'a str,
    /// The environment's image.
    image: &'a str,
    base: &'a BaseImage,
    executor: &'a Path,
    /// The kept set-up or the prepared image, if there is one.
    made: Option<&'a str>,
}
