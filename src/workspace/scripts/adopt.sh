# Adds files that the set-up created to the work if they were changed since.
if [ -f "$set_up" ]; then
  GIT_INDEX_FILE="$set_up" git update-index -q --refresh >/dev/null || true
  GIT_INDEX_FILE="$set_up" git diff-files --name-only --diff-filter=MT -z > .git/coding-agent-adopted
  if [ -s .git/coding-agent-adopted ]; then
    git update-index --add -z --stdin < .git/coding-agent-adopted
    GIT_INDEX_FILE="$set_up" git update-index --force-remove -z --stdin < .git/coding-agent-adopted
  fi
  rm -f .git/coding-agent-adopted
fi
