//! The configuration as its users meet it: files in, a configuration or sentences out.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod bounds;
mod example;
mod faults;
mod hosts;
mod refused;
mod signing;
mod values;

use std::fs;

use coding_agent::config::Config;
use tempfile::TempDir;

/// A folder with a config.yaml and the variables it is loaded with.
struct Given {
    folder: TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

impl Given {
    fn file(text: &str) -> Self {
        let given = Self {
            folder: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        };
        given.and("config.yaml", text)
    }

    fn and(self, name: &str, content: &str) -> Self {
        fs::write(self.folder.path().join(name), content).unwrap();
        self
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    fn loads(&self) -> Config {
        self.load()
            .map_err(|faults| faults.join("\n"))
            .expect("a good configuration")
    }

    /// The faults, without the folder's name.
    fn faults(&self) -> String {
        self.load().map(drop).expect_err("faults").join("\n")
    }

    fn load(&self) -> Result<Config, Vec<String>> {
        let variable = |name: &str| {
            let mut found = self.variables.iter().filter(|(known, _)| *known == name);
            found.next().map(|(_, value)| (*value).to_owned())
        };
        let folder = format!("{}/", self.folder.path().display());
        Config::load(&self.folder.path().join("config.yaml"), &variable).map_err(|faults| {
            faults
                .iter()
                .map(|fault| fault.to_string().replace(&folder, ""))
                .collect()
        })
    }
}

const GITHUB: &str = "task_sources: [github]\ngithub: {token: a-token, repositories: [owner/repo]}\n";

fn with_github(text: &str) -> Given {
    Given::file(&format!("{GITHUB}{text}"))
}
