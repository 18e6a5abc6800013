//! Files that name dependencies, and their references to other files that an installer would read.

/// Names of files that list dependencies or configure their installation, in any folder.
const LISTS: [&str; 48] = [
    ".node-version",
    ".npmrc",
    ".nvmrc",
    ".python-version",
    ".ruby-version",
    ".tool-versions",
    ".yarnrc.yml",
    "Cargo.lock",
    "Cargo.toml",
    "Gemfile",
    "Gemfile.lock",
    "Pipfile",
    "Pipfile.lock",
    "build.gradle",
    "build.gradle.kts",
    "bun.lock",
    "bun.lockb",
    "composer.json",
    "composer.lock",
    "conda-lock.yml",
    "environment.yaml",
    "environment.yml",
    "go.mod",
    "go.sum",
    "go.work",
    "go.work.sum",
    "gradle-wrapper.properties",
    "gradle.lockfile",
    "gradle.properties",
    "libs.versions.toml",
    "maven-wrapper.properties",
    "mix.exs",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "package.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "poetry.lock",
    "pom.xml",
    "pyproject.toml",
    "settings.gradle",
    "settings.gradle.kts",
    "setup.cfg",
    "setup.py",
    "uv.lock",
    "yarn.lock",
];

/// Files that tell package managers which programs to run: `.npmrc` names those started as `node`
/// and `git`.
const STEERING: [&str; 4] = [".npmrc", ".pnpmfile.cjs", ".pnpmfile.mjs", "pip.conf"];

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns true if a file tells package managers which programs to run.
pub(crate) fn steers(path: &str) -> bool {
    STEERING.contains(&name(path))
}

/// Returns true if a file names dependencies, so that its content is part of the key.
pub(crate) fn is_list(path: &str) -> bool {
    LISTS.contains(&name(path)) || is_requirements(path)
}

/// Returns true if the name is typical for pip: `requirements.txt`, `dev-requirements.in`,
/// `requirements/test.txt`, `constraints.txt`.
fn is_requirements(path: &str) -> bool {
    path.contains("requirements") || path.contains("constraints")
}

/// Returns true if a file may refer the installer to other files of the project, so that its
/// content must be examined.
pub(crate) fn may_lead_elsewhere(path: &str) -> bool {
    is_requirements(path)
}

/// Returns true if a requirements file refers to anything other than packages of an index and other
/// requirements files.
pub(crate) fn points_elsewhere(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.split(" #").next().unwrap_or_default().trim();
        let line = line.strip_suffix('\\').unwrap_or(line).trim();
        !(line.is_empty() || line.starts_with('#') || line.starts_with("--hash=") || is_index(line) || is_plain(line))
    })
}

fn is_index(line: &str) -> bool {
    let urls = [
        "-i ",
        "--index-url ",
        "--index-url=",
        "--extra-index-url ",
        "--extra-index-url=",
    ];
    let address = urls.iter().find_map(|option| line.strip_prefix(option));
    address.is_some_and(|address| address.trim().starts_with("https://"))
}

/// Returns true if a line is a package with versions (and hashes), or the name of another list.
fn is_plain(line: &str) -> bool {
    let of_list = ["-r ", "--requirement ", "-c ", "--constraint "];
    if let Some(path) = of_list.iter().find_map(|option| line.strip_prefix(option)) {
        return is_requirements(path) && !path.contains(['$', ':', '\\']);
    }
    let package = line.split(" --hash=").next().unwrap_or(line);
    package.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !package.contains(['/', '\\', '@', '$'])
        && !is_archive(package)
}

/// Returns true if an installer would search the project's folder for a file of this name.
pub(crate) fn is_archive(word: &str) -> bool {
    let word = word.trim().to_ascii_lowercase();
    let word = word.split('[').next().unwrap_or(&word);
    [
        ".whl", ".zip", ".tar", ".tgz", ".tbz", ".txz", ".tlz", ".gz", ".bz2", ".xz", ".lz", ".lzma", ".conda",
    ]
    .iter()
    .any(|end| word.ends_with(end))
}
