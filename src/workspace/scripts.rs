//! Scripts of the program that run in the container, to copy the project in and take the work out.
//! Arguments are passed as such, and never become part of the script.
//!
//! Two notes are kept in the project's own `.git`. `refs/coding-agent/work` exists from the commit
//! for verification until the model continues: changes found in between are not the model's. The
//! index `coding-agent-set-up` lists what the set-up commands created. The model could change both,
//! but that would only affect what it delivers.

/// Path of the project in the container.
pub(crate) const PROJECT: &str = "/workspace/project";

/// Receives the project on stdin: one line each for branch, its commit, base branch, its commit,
/// and commit of unfinished work or nothing; the settings, up to an empty line; the pack. Nothing
/// is an argument, so that the process can start before the project is known. The shell reads a
/// pipe byte by byte and leaves the pack to git. There are as few git calls as possible, since each
/// takes some milliseconds of waiting.
pub(crate) const HAND_IN: &str = r#"
set -e
cd /workspace/project
if [ -d .git ]; then
  # A kept set-up: what belongs to the project comes anew, and what was installed, built or ignored stays.
  git ls-files -z | xargs -0 rm -f --
  rm -rf .git
fi
git init -q --template= .
mkdir -p .git/info
printf '%s\n' node_modules/ .venv/ __pycache__/ '*.pyc' .pytest_cache/ .mypy_cache/ > .git/info/exclude
IFS= read -r branch
read -r commit
IFS= read -r base
read -r target
read -r unfinished
while IFS= read -r line && [ -n "$line" ]; do
  printf '%s\n' "$line"
done >> .git/config
git index-pack --stdin >/dev/null
git update-ref --stdin <<REFS
create refs/remotes/origin/$base $target
create refs/heads/$branch $commit
create refs/coding-agent/handed-in ${unfinished:-$commit}
REFS
git symbolic-ref HEAD "refs/heads/$branch"
if [ -n "$unfinished" ]; then
  # The kept commit holds what was committed (its parent) and what was not.
  git update-ref "refs/heads/$branch" "$unfinished^"
  git read-tree "$unfinished^"
  git read-tree -u --reset "$unfinished"
  git read-tree "$unfinished^"
else
  git reset -q --hard
fi
"#;

/// Ends the set-up: restores the project's files, and excludes files that the set-up commands
/// created from the work unless somebody changes them. Otherwise a rewritten lock file, or a folder
/// that the project does not ignore, would be delivered as the model's. Created files are excluded
/// one by one, because the model may add files beside them; where there are thousands (an installed
/// library, a build) their folders are.
pub(crate) const END_SET_UP: &str = r#"
set -e
cd /workspace/project
handed_in=$(git rev-parse -q --verify refs/coding-agent/handed-in) || exit 0
git -c core.quotePath=false diff --name-only "$handed_in" -- | head -n 20
git read-tree -u --reset "$handed_in"
created=.git/coding-agent-created
git -c core.quotePath=false ls-files --others --exclude-standard > "$created"
if [ "$(wc -l < "$created")" -gt 2000 ]; then
  git -c core.quotePath=false ls-files --others --exclude-standard --directory --no-empty-directory > "$created"
elif [ -s "$created" ]; then
  sed '/\/$/d' "$created" | GIT_INDEX_FILE="$PWD/.git/coding-agent-set-up" git update-index --add --stdin
fi
sed 's/[][*?\\]/\\&/g; s/ $/\\ /; s|^|/|' "$created" >> .git/info/exclude
rm -f "$created"
# Only now: until here what was handed in uncommitted is told from what the set-up created.
if [ "$(git rev-parse HEAD)" != "$handed_in" ]; then git read-tree HEAD; fi
"#;

/// Restores the commit `$work`, whatever ran since: branch, index and files.
const SHOW_WORK: &str = r#"
show_work() {
  branch=$(cat .git/coding-agent-branch 2>/dev/null || true)
  rm -f .git/index.lock
  if [ -n "$branch" ]; then git symbolic-ref HEAD "$branch"; git update-ref HEAD "$work"
  else git update-ref --no-deref HEAD "$work"; fi
  git read-tree -u --reset "$work"
  # A test may leave a folder that nobody may write to, or a process that still writes: neither is a fault of the work.
  git clean -ffdq 2>/dev/null || {
    git ls-files -z --others --exclude-standard | xargs -0r dirname -z -- | xargs -0r chmod u+rwx -- 2>/dev/null || true
    git clean -ffdq 2>/dev/null || true
  }
}
"#;

/// Reverts changes of the checks to the project.
pub(crate) const UNDO_CHECKS: &str = r"
work=$(git rev-parse -q --verify refs/coding-agent/work)
show_work
";

/// Replaces the files of the work by those of the base, until the work is restored: installed,
/// built and ignored files stay. A copy beside the project would be simpler, but its tests would
/// find the changed code wherever a path was recorded at installation. Argument: base commit.
pub(crate) const EXCHANGE: &str = r#"
work=$(git rev-parse -q --verify refs/coding-agent/work)
show_work
git read-tree -u --reset "$1"
"#;

/// Undoes the script of [`commit`] and all later changes, so that the model finds its work
/// unchanged; no effect without such a commit. Scripts that take the work out run this first, so
/// that nothing is lost if a process is killed in between.
pub(crate) const BRING_BACK: &str = r#"
set_up="$PWD/.git/coding-agent-set-up"
if work=$(git rev-parse -q --verify refs/coding-agent/work); then
  show_work
  before=$(git rev-parse -q --verify refs/coding-agent/before)
  if [ "$before" != "$work" ]; then
    git update-ref HEAD "$before"
    if [ -f .git/coding-agent-index ]; then mv .git/coding-agent-index .git/index; fi
  fi
  if [ -f "$set_up" ]; then
    # What checks changed of the set-up's files is no more the model's than before.
    GIT_INDEX_FILE="$set_up" git diff-files --name-only -z |
      GIT_INDEX_FILE="$set_up" git update-index --remove -z --stdin
  fi
  git update-ref -d refs/coding-agent/work
  rm -f .git/coding-agent-index .git/coding-agent-branch
fi
"#;

/// Returns a script with the prefix of all scripts that touch the project.
pub(crate) fn in_project(text: &str) -> String {
    format!("set -e\ncd /workspace/project\n{SHOW_WORK}{text}")
}

/// Adds files that the set-up created to the work if they were changed since.
const ADOPT: &str = r#"
if [ -f "$set_up" ]; then
  GIT_INDEX_FILE="$set_up" git update-index -q --refresh >/dev/null || true
  GIT_INDEX_FILE="$set_up" git diff-files --name-only --diff-filter=MT -z > .git/coding-agent-adopted
  if [ -s .git/coding-agent-adopted ]; then
    git update-index --add -z --stdin < .git/coding-agent-adopted
    GIT_INDEX_FILE="$set_up" git update-index --force-remove -z --stdin < .git/coding-agent-adopted
  fi
  rm -f .git/coding-agent-adopted
fi
"#;

/// Returns the script that commits all changes and prints the commit. Argument: message. A merge in
/// progress stays committed, because its other parent is recorded nowhere else.
pub(crate) fn commit() -> String {
    in_project(&format!(
        r#"{BRING_BACK}{ADOPT}
cp .git/index .git/coding-agent-index
before=$(git rev-parse HEAD)
git -c core.hooksPath=/dev/null add -A
if ! git diff --cached --quiet; then
  git -c core.hooksPath=/dev/null -c commit.gpgSign=false commit -q --no-verify -m "$1"
fi
if git rev-parse -q --verify 'HEAD^2' >/dev/null; then before=$(git rev-parse HEAD); fi
git symbolic-ref -q HEAD > .git/coding-agent-branch || true
git update-ref refs/coding-agent/before "$before"
git update-ref refs/coding-agent/work "$(git rev-parse HEAD)"
git rev-parse HEAD
"#
    ))
}

/// Returns the script that writes a commit of the current state without moving the branch, and
/// prints it; the previous one if nothing changed. Argument: the previous one, or empty.
pub(crate) fn snapshot() -> String {
    in_project(&format!(
        r#"{BRING_BACK}{ADOPT}
index=$(mktemp)
cp .git/index "$index" 2>/dev/null || true
export GIT_INDEX_FILE="$index"
git add -A
tree=$(git write-tree)
rm -f "$index"
now="$tree $(git rev-parse HEAD)"
if [ -n "$1" ] && [ "$(git log -1 --format='%T %P' "$1")" = "$now" ]; then
  echo "$1"
else
  git commit-tree "$tree" -p HEAD -m 'work in progress'
fi
"#
    ))
}

/// Environment of the program's own scripts: only the system's programs, none that the model put in
/// the search path.
pub(crate) const ENVIRONMENT: [&str; 4] = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    // Git before 2.32 ignores the first of these, and reads the files below the other two.
    "GIT_CONFIG_GLOBAL=/dev/null",
    "HOME=/nonexistent",
    "XDG_CONFIG_HOME=/nonexistent",
];

/// Prints the paths that differ from the base, each followed by NUL. Argument: base commit.
pub(crate) const TOUCHED: &str = r#"
cd /workspace/project
git diff --name-only --no-renames -z "$1" --
git ls-files -z --others --exclude-standard
"#;

/// Prints the pack of new commits. Arguments: head, base.
pub(crate) const PACK: &str = r#"
cd /workspace/project
printf '%s\n^%s\n' "$1" "$2" | git pack-objects --revs --stdout --thin -q
"#;
