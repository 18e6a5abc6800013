//! What the program itself runs in the container to bring the project in and the work out. Arguments are passed as such, and never
//! become a part of the text.

/// Receives the project on stdin: a line each for branch, its commit, base branch's name and commit, commit of unfinished work or nothing;
/// the settings, up to an empty line; the pack. None of it is an argument, so that the process can be there before the project is known. The
/// shell reads lines from a pipe byte by byte, and leaves the pack to git. Each git takes some milliseconds that somebody waits for, so
/// there are as few as can be.
pub(super) const HAND_IN: &str = r#"
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

/// Puts the files of another commit in the place of the work, which the commit in the first argument holds: what is installed,
/// built or ignored stays where it is. A copy beside the project would be simpler, and its tests would find the changed code wherever
/// a path was written down at installation. Arguments: commit of the work, the other commit.
pub(super) const EXCHANGE: &str = r#"
cd /workspace/project
cp .git/index .git/coding-agent-index
git update-ref refs/coding-agent/work "$1"
git add -A
git read-tree -u --reset "$2"
"#;

/// Undoes that, whatever came between; does nothing where nothing was set aside. Whatever takes the work out does it first, so that a
/// process that was killed between the two loses nothing.
pub(super) const BRING_BACK: &str = r#"
set -e
cd /workspace/project
if work=$(git rev-parse -q --verify refs/coding-agent/work); then
  git read-tree -u --reset "$work"
  git clean -fdq
  if [ -f .git/coding-agent-index ]; then mv .git/coding-agent-index .git/index; fi
  git update-ref -d refs/coding-agent/work
fi
"#;

/// Commits what is uncommitted and prints the commit. Arguments: message, branch, base commit.
pub(super) const COMMIT: &str = r#"
cd /workspace/project
git -c core.hooksPath=/dev/null add -A
if ! git diff --cached --quiet; then
  git -c core.hooksPath=/dev/null -c commit.gpgSign=false commit -q --no-verify -m "$1"
fi
git rev-parse HEAD
"#;

/// Writes a commit of everything as it is, without touching branch or index, and prints it; the one before where nothing
/// has changed since. Argument: the one before, or empty.
pub(super) const SNAPSHOT: &str = r#"
cd /workspace/project
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
"#;

/// Prints the paths that differ from the base, NUL after each. Argument: base commit.
pub(super) const TOUCHED: &str = r#"
cd /workspace/project
git diff --name-only --no-renames -z "$1" --
git ls-files -z --others --exclude-standard
"#;

/// Prints the pack of what is new. Arguments: head, base.
pub(super) const PACK: &str = r#"
cd /workspace/project
printf '%s\n^%s\n' "$1" "$2" | git pack-objects --revs --stdout --thin -q
"#;
