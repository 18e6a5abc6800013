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
