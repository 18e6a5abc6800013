//! Starts containers, for a run or for the warm pool.

use std::path::Path;

use bollard::query_parameters::RenameContainerOptionsBuilder;
use uuid::Uuid;

use super::EnvironmentError;
use super::container::{self, Container};
use super::docker::{Docker, Said, Start};
use super::furnished::Furnished;
use super::set_up::Kept;
use super::specification::{self, Holder, companion_name, container_name};

/// The images that a run's container will start from.
pub struct Basis {
    said: Said,
    furnished: Furnished,
    /// The place under which its set-up may be kept.
    place: Option<String>,
    /// The kept set-up to start from.
    kept: Option<Kept>,
}

/// A started container of the warm pool.
pub struct Warm {
    pub container: Container,
    content: String,
}

impl Basis {
    /// True if the container will start from a kept set-up.
    pub fn has_set_up(&self) -> bool {
        self.kept.is_some()
    }

    /// True if `warm` has the same content as a container that is started now without a set-up.
    pub fn is_that_of(&self, warm: &Warm) -> bool {
        self.furnished.content == warm.content
    }
}

impl Docker {
    /// Looks up the images that the container of `start` will start from.
    pub async fn basis(&self, start: &Start<'_>) -> Result<Basis, EnvironmentError> {
        let said = self.said_by(start.image).await?;
        let furnished = self.furnished(start.image, &said, start.executor).await?;
        let place = self.place(start, &furnished);
        let kept = match (&place, start.set_up) {
            (Some(place), Some((_, wanted))) => self.kept(place, wanted).await?,
            _ => None,
        };
        Ok(Basis {
            said,
            furnished,
            place,
            kept,
        })
    }

    /// Creates and starts a container with all limits and the executor at
    /// `/usr/local/bin/coding-agent-executor`. `/workspace/project` exists and belongs to its user.
    /// Removes older containers of the same run and purpose first.
    pub async fn start(&self, start: &Start<'_>) -> Result<Container, EnvironmentError> {
        self.start_on(start, self.basis(start).await?).await
    }

    /// Like [`Self::start`], with a basis that was looked up before.
    pub async fn start_on(&self, start: &Start<'_>, basis: Basis) -> Result<Container, EnvironmentError> {
        let Basis {
            said,
            furnished,
            place,
            kept,
        } = basis;
        let companions = self.make_room(start).await?;
        let recipe = Recipe {
            holder: Holder::Run(start.task, start.run),
            environment: start.environment,
            image: start.image,
            said: &said,
            executor: start.executor,
            made: kept
                .as_ref()
                .map(|kept| kept.image.as_str())
                .or(furnished.id.as_deref()),
        };
        let (id, is_as_wanted) = Box::pin(self.bring_up(&container_name(start.run, start.purpose), recipe)).await?;
        let container = self.container(id).with(companions).of_image(said.digest);
        Ok(if is_as_wanted {
            container.of_place(place, kept.map(|kept| kept.done))
        } else {
            container
        })
    }

    /// Starts a container of `image` for `environment` in the warm pool of `worker`.
    pub async fn start_warm(
        &self,
        name: &str,
        (environment, image): (&str, &str),
        executor: &Path,
        worker: Uuid,
    ) -> Result<Warm, EnvironmentError> {
        let said = self.said_by(image).await?;
        let furnished = self.furnished(image, &said, executor).await?;
        let recipe = Recipe {
            holder: Holder::Nobody(worker),
            environment,
            image,
            said: &said,
            executor,
            made: furnished.id.as_deref(),
        };
        let (id, _) = Box::pin(self.bring_up(name, recipe)).await?;
        Ok(Warm {
            container: self.container(id),
            content: furnished.content,
        })
    }

    /// Renames a container of the warm pool to be the run's. Removes older containers of the same
    /// run and purpose first.
    pub async fn adopt(
        &self,
        start: &Start<'_>,
        basis: &Basis,
        warm: Container,
    ) -> Result<Container, EnvironmentError> {
        let companions = self.make_room(start).await?;
        let name = container_name(start.run, start.purpose);
        let options = RenameContainerOptionsBuilder::default().name(&name).build();
        let renamed = self
            .engine
            .ask(self.engine.client.rename_container(warm.id(), options))
            .await;
        renamed.map_err(|failure| self.engine.error("taking a warm container", failure))?;
        let container = warm.with(companions).of_image(basis.said.digest.clone());
        Ok(container.of_place(basis.place.clone(), None))
    }

    /// Removes containers with the names that the run's will have. Returns the names of its
    /// services.
    async fn make_room(&self, start: &Start<'_>) -> Result<Vec<String>, EnvironmentError> {
        let services = self.config().services_of(start.environment);
        let companions: Vec<String> = services
            .map(|(name, _)| companion_name(start.run, start.purpose, name))
            .collect();
        let name = container_name(start.run, start.purpose);
        container::remove_all(&self.engine, [&name].into_iter().chain(&companions)).await?;
        Ok(companions)
    }

    /// Creates, furnishes if necessary, and starts a container. Returns its id, and whether it was
    /// created from `recipe.made`.
    async fn bring_up(&self, name: &str, recipe: Recipe<'_>) -> Result<(String, bool), EnvironmentError> {
        let Recipe {
            holder,
            environment,
            image,
            said,
            executor,
            made,
        } = recipe;
        let order = self.order(holder, (environment, image), said);
        let mut body = specification::container(self.config(), self.facts(), &order)?;
        if let Some(made) = made {
            body.image = Some(made.to_owned());
        }
        let (id, is_as_wanted) = match self.create(name, image, body.clone()).await {
            // The image was removed since it was found. Falls back to the base image's id, because
            // its name may have moved to another image.
            Err(EnvironmentError::ImageMissing { .. }) if made.is_some() => {
                self.forget_furnished().await;
                body.image = Some(said.id.clone());
                (self.create(name, image, body).await?, false)
            }
            created => (created?, made.is_some()),
        };
        let started = async {
            if !is_as_wanted {
                self.furnish(&id, &said.user, executor).await?;
            }
            let starting = self.engine.ask(self.engine.client.start_container(&id, None));
            let started = starting.await;
            started.map_err(|failure| self.engine.error("starting a container", failure))
        };
        if let Err(error) = started.await {
            if let Err(removal) = container::remove(&self.engine, &id).await {
                tracing::warn!(
                    container = id,
                    "a container that did not start was left behind: {removal}"
                );
            }
            return Err(error);
        }
        Ok((id, is_as_wanted))
    }
}

/// The parameters of [`Docker::bring_up`].
struct Recipe<'a> {
    holder: Holder<'a>,
    environment: &'a str,
    /// The environment's image.
    image: &'a str,
    said: &'a Said,
    executor: &'a Path,
    /// The kept set-up or the furnished image, if there is one.
    made: Option<&'a str>,
}
