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
