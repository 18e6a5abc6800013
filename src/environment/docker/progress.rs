//! Progress of a pull or a build, in short lines for people.

use std::collections::BTreeMap;

use bollard::models::CreateImageInfo;

/// The layers of an image that is being pulled.
#[derive(Debug, Default)]
pub(super) struct Layers {
    layers: BTreeMap<String, Layer>,
}

#[derive(Debug, Default)]
struct Layer {
    current: i64,
    total: i64,
    is_done: bool,
}

impl Layers {
    /// Records one report of the engine.
    pub(super) fn note(&mut self, report: &CreateImageInfo) {
        let (Some(id), Some(status)) = (&report.id, report.status.as_deref()) else {
            return;
        };
        // The first report has the tag as its id instead of a layer.
        if status.starts_with("Pulling from") {
            return;
        }
        let layer = self.layers.entry(id.clone()).or_default();
        match status {
            "Downloading" => {
                if let Some(detail) = &report.progress_detail {
                    layer.current = detail.current.unwrap_or(layer.current);
                    layer.total = detail.total.unwrap_or(layer.total);
                }
            }
            "Download complete" => layer.current = layer.total,
            "Pull complete" | "Already exists" => layer.is_done = true,
            _ => {}
        }
    }

    pub(super) fn line(&self, image: &str) -> String {
        let done = self.layers.values().filter(|layer| layer.is_done).count();
        let sum = |of: fn(&Layer) -> i64| self.layers.values().map(of).sum::<i64>() / 1_000_000;
        let (current, total) = (sum(|layer| layer.current), sum(|layer| layer.total));
        format!(
            "pulling {image}: {done} of {} layers, {current} of {total} MB",
            self.layers.len()
        )
    }
}

/// Returns the progress line in a part of a build's output, if it begins a step.
pub(super) fn step_of(output: &str) -> Option<&str> {
    let line = output.lines().next()?.trim();
    // Docker's builder, and podman's.
    let is_step = line.starts_with("Step ") || line.starts_with("STEP ");
    is_step.then(|| {
        let end = line.char_indices().nth(100).map_or(line.len(), |(end, _)| end);
        &line[..end]
    })
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    #[test]
    fn a_pull_is_told_in_layers_and_megabytes() {
        let mut layers = Layers::default();
        for (id, status, current, total) in [
            ("3.11", "Pulling from library/python", 0, 0),
            ("aa", "Already exists", 0, 0),
            ("bb", "Pulling fs layer", 0, 0),
            ("bb", "Downloading", 3_000_000, 9_500_000),
            ("cc", "Downloading", 2_000_000, 4_000_000),
            ("cc", "Download complete", 0, 0),
        ] {
            layers.note(&CreateImageInfo {
                id: Some(id.to_owned()),
                status: Some(status.to_owned()),
                progress_detail: (total > 0).then_some(ProgressDetail {
                    current: Some(current),
                    total: Some(total),
                }),
                error_detail: None,
            });
        }
        assert_eq!(layers.line("python:3"), "pulling python:3: 1 of 3 layers, 7 of 13 MB");
    }

    #[test]
    fn of_a_build_only_its_steps_are_told() {
        assert_eq!(step_of("Step 1/3 : FROM python\n"), Some("Step 1/3 : FROM python"));
        assert_eq!(step_of(" ---> 0123\n"), None);
        assert_eq!(step_of(""), None);
        assert!(
            step_of(&format!("Step 2/3 : RUN {}", "ä".repeat(300))).is_some_and(|line| line.chars().count() == 100)
        );
    }
}
