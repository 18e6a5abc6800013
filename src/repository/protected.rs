//! Files that others than the project's own programs run or obey, by the names under which they are
//! looked for.
//!
//! A change of the project's own code runs in its tests and pipelines as well, but there it is
//! looked at as code. These files are run by a forge with its secrets, by an editor or a hook on a
//! developer's machine, or are read by an agent as orders.

/// Folders at the top that begin with a dot hold settings of tools, by a convention that has no
/// list. The rest is there by name.
const PROTECTED: &[&str] = &[
    "/.*/**",
    // Forges and their pipelines.
    ".github",
    "action.yml",
    "action.yaml",
    ".gitlab",
    ".gitlab-ci.yml",
    "*.gitlab-ci.yml",
    "/ci",
    ".gitea",
    ".forgejo",
    "Jenkinsfile*",
    "azure-pipelines*.y*ml",
    "bitbucket-pipelines.yml",
    ".circleci",
    ".buildkite",
    ".tekton",
    ".teamcity",
    ".semaphore",
    ".drone.*",
    ".woodpecker*",
    ".travis.yml",
    "appveyor.yml",
    ".appveyor.yml",
    ".cirrus.yml",
    "cloudbuild.y*ml",
    "buildspec.y*ml",
    "CODEOWNERS",
    // Git and its hooks.
    ".gitmodules",
    ".gitattributes",
    ".githooks",
    ".husky",
    ".lefthook*",
    "lefthook*.json",
    "lefthook*.toml",
    "lefthook*.yaml",
    "lefthook*.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
    ".simple-git-hooks.*",
    // Editors and shells.
    ".vscode",
    ".idea",
    ".devcontainer",
    ".devcontainer.json",
    ".envrc",
    // Where dependencies come from.
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.*",
    "pip.conf",
    ".cargo",
    ".mvn",
    // Agents.
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    ".aider.conf.yml",
    "GEMINI.md",
    ".claude",
    ".codex",
    ".cursor",
    ".cursorrules",
    ".windsurf",
    ".windsurfrules",
    ".clinerules",
    ".mcp.json",
    ".coding-agent-rules.*",
];

/// Folders at the top whose files belong to ordinary work: notes for the next release, prepared
/// queries, pages.
const EXCEPTIONS: &[&str] = &[
    "/.changes",
    "/.changeset",
    "/.chloggen",
    "/.sqlx",
    "/.storybook",
    "/.vitepress",
    "/.well-known",
];

pub(super) fn paths() -> Vec<String> {
    PROTECTED.iter().map(|&path| path.to_owned()).collect()
}

pub(super) fn exceptions() -> Vec<String> {
    EXCEPTIONS.iter().map(|&path| path.to_owned()).collect()
}
