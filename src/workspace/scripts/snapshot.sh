index=$(mktemp)
cp .git/index "$index" 2>/dev/null || true
export GIT_INDEX_FILE="$index"
# Repositories within the project have a slash at their end here.
git ls-files -z --others --exclude-standard |
  xargs -0r sh -c 'for path; do case $path in */) printf "%s\0" "${path%/}" ;; esac; done' sh > "$index.within"
# 1: some paths could not be added. The rest is kept; a result is not taken without them.
git -c advice.addEmbeddedRepo=false add -A --ignore-errors || [ $? = 1 ]
git update-index --force-remove -z --stdin < "$index.within"
tree=$(git write-tree)
rm -f "$index" "$index.within"
now="$tree $(git rev-parse HEAD)"
if [ -n "$1" ] && [ "$(git log -1 --format='%T %P' "$1")" = "$now" ]; then
  echo "$1"
else
  git commit-tree "$tree" -p HEAD -m 'work in progress'
fi
