//! The five environments that ship with the program. Their images are built from `docker/Dockerfile-executor-<name>`.

use std::collections::BTreeMap;

use super::Environment;

/// Name, what it is for, how libraries are installed.
const SHIPPED: [(&str, &str, &str); 5] = [
    (
        "python",
        "Pure Python projects, Django or Flask, light data processing",
        "`pip install <package>` or `pip install -r requirements.txt`",
    ),
    (
        "miniforge",
        "Data science and scientific computing, NumPy, pandas, scikit-learn, conda environments",
        "`mamba install <package>` or `mamba env update -f environment.yml`",
    ),
    (
        "node",
        "JavaScript and TypeScript, React, Vue or Angular, Express or NestJS",
        "`npm install <package>` or `npm install` (from package.json)",
    ),
    (
        "java",
        "Java and Kotlin projects, Maven or Gradle, Spring Boot",
        "`mvn dependency:resolve` or `gradle dependencies` (`./gradlew` where the project has it)",
    ),
    (
        "go",
        "Go projects, command line tools, network services",
        "`go mod download` or `go get <package>`",
    ),
];

/// Returns all five, by name.
pub(super) fn environments() -> BTreeMap<String, Environment> {
    SHIPPED
        .iter()
        .map(|(name, recommended_for, libraries)| {
            let environment = Environment {
                image: format!("coding-agent-executor-{name}:latest"),
                recommended_for: (*recommended_for).to_owned(),
                libraries: (*libraries).to_owned(),
                build: None,
            };
            ((*name).to_owned(), environment)
        })
        .collect()
}

/// Fills what was left out of the environment `name` with what ships under that name, so that a site that only changes
/// the image of `python` need not repeat what Python is good for.
pub(super) fn complete(name: &str, environment: &mut Environment) {
    let Some((_, recommended_for, libraries)) = SHIPPED.iter().find(|(shipped, ..)| *shipped == name) else {
        return;
    };
    if environment.recommended_for.is_empty() {
        (*recommended_for).clone_into(&mut environment.recommended_for);
    }
    if environment.libraries.is_empty() {
        (*libraries).clone_into(&mut environment.libraries);
    }
}
