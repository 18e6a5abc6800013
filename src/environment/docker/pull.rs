//! Pulls and builds images.
//!
//! A build uses the engine's classic builder, which every supported engine has. Its context is the
//! Dockerfile's folder, with a size limit; a `.dockerignore` is not read.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use bollard::body_full;
use bollard::query_parameters::{BuildImageOptionsBuilder, CreateImageOptionsBuilder};
use tokio::time::Instant;

use super::Client;
use super::credentials::DockerConfig;
use super::progress::{Layers, step_of};
use crate::environment::config::Build;
use crate::environment::processes::Failure;

/// Time limit between two reports of a pull.
const PULL_SILENCE: Duration = Duration::from_mins(2);

/// Time limit between two reports of a build: large installations may print nothing for a while.
const BUILD_SILENCE: Duration = Duration::from_mins(15);

/// Maximum size of a build context in bytes.
const CONTEXT_LIMIT: usize = 64 * 1024 * 1024;

/// Minimum time between two progress lines of a pull.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

impl Client {
    /// Pulls an image; `progress` gets short lines for people.
    pub(crate) async fn pull(&self, image: &str, progress: &(dyn Fn(String) + Send + Sync)) -> Result<(), Failure> {
        let options = CreateImageOptionsBuilder::default()
            .from_image(&with_tag(image))
            .build();
        let credentials = DockerConfig::read(self.config_folder.as_deref()).for_image(image).await;
        let mut reports = Box::pin(self.docker.create_image(Some(options), None, credentials));
        let (mut layers, mut last_line) = (Layers::default(), Instant::now());
        while let Some(report) = self.next(&mut reports, PULL_SILENCE).await? {
            layers.note(&report);
            if last_line.elapsed() >= LINE_INTERVAL {
                progress(layers.line(image));
                last_line = Instant::now();
            }
        }
        Ok(())
    }

    /// Asks the image's registry, through the engine, for the image. Fails where a pull would fail,
    /// and also where the engine cannot ask: see [`Failure`].
    pub(crate) async fn ask_registry(&self, image: &str) -> Result<(), Failure> {
        let credentials = DockerConfig::read(self.config_folder.as_deref()).for_image(image).await;
        let named = with_tag(image);
        self.ask(self.docker.inspect_registry_image(&named, credentials))
            .await?;
        Ok(())
    }

    /// Builds an image; `Err` says where the build failed.
    pub(crate) async fn build(
        &self,
        image: &str,
        build: &Build,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), String> {
        let path = build.dockerfile.clone();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| format!("{} is not the path of a Dockerfile", path.display()))?
            .to_owned();
        let packing = tokio::task::spawn_blocking(move || pack(&path));
        let context = packing
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| format!("the folder of {} cannot be sent: {error}", build.dockerfile.display()))?;
        let arguments: HashMap<&str, &str> = build.args.iter().map(|(key, value)| (&**key, &**value)).collect();
        let options = BuildImageOptionsBuilder::default()
            .dockerfile(&name)
            .t(image)
            .buildargs(&arguments)
            .rm(true)
            .forcerm(true)
            .build();
        let credentials = DockerConfig::read(self.config_folder.as_deref()).all().await;
        let mut reports = Box::pin(self.docker.build_image(
            options,
            Some(credentials),
            Some(body_full(context.into())),
        ));
        let mut last_lines = VecDeque::new();
        loop {
            match self.next(&mut reports, BUILD_SILENCE).await {
                Ok(None) => return Ok(()),
                Ok(Some(report)) => {
                    let output = report.stream.unwrap_or_default();
                    if let Some(step) = step_of(&output) {
                        progress(format!("building {image}: {step}"));
                    }
                    last_lines.extend(output.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
                    let excess = last_lines.len().saturating_sub(5);
                    last_lines.drain(..excess);
                }
                Err(failure) => {
                    let before = Vec::from(last_lines).join("; ");
                    return Err(format!("{}, after: {before}", failure.reason()));
                }
            }
        }
    }
}

/// Adds `:latest` to a name without a tag: the engine would pull every tag.
fn with_tag(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains([':', '@']) {
        image.to_owned()
    } else {
        format!("{image}:latest")
    }
}

/// Packs the Dockerfile's folder. Links are packed as links, so nothing outside the folder is sent.
fn pack(dockerfile: &Path) -> io::Result<Vec<u8>> {
    std::fs::metadata(dockerfile)?;
    let folder = dockerfile.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut archive = tar::Builder::new(Bounded::default());
    archive.follow_symlinks(false);
    archive.append_dir_all(".", folder.unwrap_or(Path::new(".")))?;
    Ok(archive.into_inner()?.bytes)
}

/// A buffer that refuses to grow beyond [`CONTEXT_LIMIT`]: a Dockerfile in a home directory must
/// not send the home directory.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > CONTEXT_LIMIT {
            let limit = CONTEXT_LIMIT / 1024 / 1024;
            return Err(io::Error::other(format!(
                "it holds more than {limit} MiB; put the Dockerfile in a folder of its own"
            )));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tag_is_pulled_and_never_all() {
        for (image, pulled) in [
            ("python", "python:latest"),
            ("python:3", "python:3"),
            ("localhost:5000/python", "localhost:5000/python:latest"),
            ("python@sha256:00", "python@sha256:00"),
        ] {
            assert_eq!(with_tag(image), pulled);
        }
    }

    #[test]
    fn a_build_gets_the_folder_and_nothing_outside_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Dockerfile"), "FROM scratch\n").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let archive = pack(&folder.path().join("Dockerfile")).unwrap();
        let mut archive = tar::Archive::new(&archive[..]);
        let mut names: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (
                    entry.path().unwrap().display().to_string(),
                    entry.header().entry_type().is_symlink(),
                )
            })
            .collect();
        names.sort();
        assert_eq!(
            names[names.len() - 2..],
            [("Dockerfile".to_owned(), false), ("link".to_owned(), true)]
        );
        assert!(pack(Path::new("/nowhere/Dockerfile")).is_err());
    }
}
