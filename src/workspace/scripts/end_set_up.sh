handed_in=$(git rev-parse -q --verify refs/coding-agent/handed-in) || exit 0
git -c core.quotePath=false diff --name-only "$handed_in" -- | head -n 20
git read-tree -u --reset "$handed_in"
created=.git/coding-agent-created
# Names end with NUL: in a list by lines, git puts those with quotes, backslashes or tabs in quotes.
git ls-files -z --others --exclude-standard > "$created"
if [ "$(tr -dc '\0' < "$created" | wc -c)" -gt 2000 ]; then
  git ls-files -z --others --exclude-standard --directory --no-empty-directory > "$created"
elif [ -s "$created" ]; then
  # Repositories, which have a slash at their end, cannot be listed.
  xargs -0 sh -c 'for path; do case $path in */) ;; *) printf "%s\0" "$path" ;; esac; done' sh < "$created" |
    GIT_INDEX_FILE="$PWD/.git/coding-agent-set-up" git update-index --add -z --stdin
fi
# As patterns: what has a meaning there is escaped. No pattern can hold a line break, nor end with a
# carriage return; any one character stands for them.
tr '\n\0\r\001' '\001\n\001\001' < "$created" |
  sed 's/[][*?\\]/\\&/g; s/ $/\\ /; s|^|/|' | tr '\001' '?' >> .git/info/exclude
rm -f "$created"
# Only now: until here what was handed in uncommitted is told from what the set-up created.
if [ "$(git rev-parse HEAD)" != "$handed_in" ]; then git read-tree HEAD; fi
