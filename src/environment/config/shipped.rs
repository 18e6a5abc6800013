//! The five environments that ship with the program. Their images are built from
//! `docker/Dockerfile-executor-<name>`.

use std::collections::BTreeMap;

use super::Environment;

/// A shipped environment without its image.
struct Shipped {
    name: &'static str,
    recommended_for: &'static str,
    libraries: &'static str,
    /// Hosts of its package registries.
    registries: &'static [&'static str],
    /// Files at the top of a repository that show that it wants this environment.
    project_files: &'static [&'static str],
}

const SHIPPED: [Shipped; 5] = [
    Shipped {
        name: "python",
        recommended_for: "Pure Python projects, Django or Flask, light data processing",
        libraries: "`pip install <package>` or `pip install -r requirements.txt`",
        registries: &["pypi.org", "files.pythonhosted.org"],
        project_files: &[
            "pyproject.toml",
            "setup.py",
            "setup.cfg",
            "requirements.txt",
            "Pipfile",
            "tox.ini",
        ],
    },
    Shipped {
        name: "miniforge",
        recommended_for: "Data science and scientific computing, NumPy, pandas, scikit-learn, conda environments",
        libraries: "`mamba install <package>` or `mamba env update -f environment.yml`",
        registries: &["conda.anaconda.org", "pypi.org", "files.pythonhosted.org"],
        project_files: &["environment.yml", "environment.yaml"],
    },
    Shipped {
        name: "node",
        recommended_for: "JavaScript and TypeScript, React, Vue or Angular, Express or NestJS",
        libraries: "`npm install <package>` or `npm install` (from package.json)",
        registries: &["registry.npmjs.org", "registry.yarnpkg.com"],
        project_files: &["package.json"],
    },
    Shipped {
        name: "java",
        recommended_for: "Java and Kotlin projects, Maven or Gradle, Spring Boot",
        libraries: "`mvn dependency:resolve`, or `./gradlew dependencies` with the project's wrapper (there is no `gradle`)",
        registries: &[
            "repo.maven.apache.org",
            "repo1.maven.org",
            "plugins.gradle.org",
            "services.gradle.org",
            "downloads.gradle.org",
        ],
        project_files: &[
            "pom.xml",
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
        ],
    },
    Shipped {
        name: "go",
        recommended_for: "Go projects, command line tools, network services",
        libraries: "`go mod download` or `go get <package>`",
        registries: &["proxy.golang.org", "sum.golang.org"],
        project_files: &["go.mod"],
    },
];

/// Returns all five, by name.
pub(crate) fn environments() -> BTreeMap<String, Environment> {
    SHIPPED
        .iter()
        .map(|shipped| {
            let environment = Environment {
                image: format!("coding-agent-executor-{}:latest", shipped.name),
                recommended_for: shipped.recommended_for.to_owned(),
                libraries: shipped.libraries.to_owned(),
                build: None,
                allow: Some(owned(shipped.registries)),
                project_files: Some(owned(shipped.project_files)),
            };
            (shipped.name.to_owned(), environment)
        })
        .collect()
}

/// Fills the missing fields of the environment `name` from the shipped one of that name, so that a
/// site that only changes the image of `python` need not repeat what Python is good for.
pub(crate) fn complete(name: &str, environment: &mut Environment) {
    let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == name) else {
        return;
    };
    if environment.recommended_for.is_empty() {
        shipped.recommended_for.clone_into(&mut environment.recommended_for);
    }
    if environment.libraries.is_empty() {
        shipped.libraries.clone_into(&mut environment.libraries);
    }
    environment.allow.get_or_insert_with(|| owned(shipped.registries));
    let project_files = &mut environment.project_files;
    project_files.get_or_insert_with(|| owned(shipped.project_files));
}

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|entry| (*entry).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The image has Maven and a JDK; a project that uses Gradle brings its wrapper.
    #[test]
    fn java_is_told_of_no_gradle_but_the_wrapper() {
        let libraries = &environments()["java"].libraries;
        let commands: Vec<&str> = libraries.split('`').skip(1).step_by(2).collect();
        assert_eq!(commands, ["mvn dependency:resolve", "./gradlew dependencies", "gradle"]);
        assert!(libraries.ends_with("(there is no `gradle`)"), "{libraries}");
    }
}
