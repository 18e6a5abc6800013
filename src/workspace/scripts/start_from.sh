git symbolic-ref -q HEAD > .git/coding-agent-branch || true
work="$1"
show_work
rm -f .git/coding-agent-branch
git read-tree -u --reset "$2"
