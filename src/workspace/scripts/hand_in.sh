set -e
cd /workspace/project
if [ -d .git ]; then
  # A kept set-up: what belongs to the project comes anew, and what was installed, built or ignored stays.
  git ls-files -z | xargs -0 rm -rf --
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
read -r executor
while IFS= read -r line && [ -n "$line" ]; do
  printf '%s\n' "$line"
done >> .git/config
while read -r line && [ -n "$line" ]; do
  printf '%s\n' "$line" >> .git/shallow
done
while IFS= read -r line && [ -n "$line" ]; do
  printf '%s\n' "$line"
done > .git/coding-agent-submodules
# It reads not a byte more than the contents of large files, which stand before the pack.
if [ -n "$executor" ]; then "$executor" lfs-receive .git; fi
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
# Plain folders: git takes what is in the place of a submodule for that, and leaves it alone.
while read -r tree path; do
  GIT_INDEX_FILE=.git/coding-agent-submodule git read-tree "$tree"
  GIT_INDEX_FILE=.git/coding-agent-submodule git checkout-index -q -a -f --prefix="$path/"
  rm -f .git/coding-agent-submodule
done < .git/coding-agent-submodules
rm -f .git/coding-agent-submodules
