cp .git/index .git/coding-agent-index
before=$(git rev-parse HEAD)
# Without the option git ends at the first path that it cannot add, and names no other.
git -c core.hooksPath=/dev/null -c advice.addEmbeddedRepo=false add -A --ignore-errors || {
  ended=$?
  mv .git/coding-agent-index .git/index
  exit "$ended"
}
if ! git diff --cached --quiet; then
  git -c core.hooksPath=/dev/null -c commit.gpgSign=false commit -q --no-verify -m "$1"
fi
if git rev-parse -q --verify 'HEAD^2' >/dev/null; then before=$(git rev-parse HEAD); fi
git symbolic-ref -q HEAD > .git/coding-agent-branch || true
git update-ref refs/coding-agent/before "$before"
git update-ref refs/coding-agent/work "$(git rev-parse HEAD)"
git rev-parse HEAD
