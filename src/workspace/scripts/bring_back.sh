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
