//! Default patterns of files that others than the project's own programs run or obey.
//!
//! Changed project code runs in tests and pipelines as well, but is reviewed as code. These files
//! are run by a forge with its secrets or by an editor or a hook on a developer's machine, or an
//! agent reads them as orders.

/// Protected paths. Dot folders at the top hold tools' settings by convention, so all of them are
/// protected; the rest is listed by name.
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
    // Sources of dependencies.
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

/// Dot folders at the top that belong to ordinary work: release notes, prepared queries, pages.
const EXCEPTIONS: &[&str] = &[
    "/.changes",
    "/.changeset",
    "/.chloggen",
    "/.sqlx",
    "/.storybook",
    "/.vitepress",
    "/.well-known",
];

pub(in crate::repository) fn paths() -> Vec<String> {
    PROTECTED.iter().map(|&path| path.to_owned()).collect()
}

pub(in crate::repository) fn exceptions() -> Vec<String> {
    EXCEPTIONS.iter().map(|&path| path.to_owned()).collect()
}
