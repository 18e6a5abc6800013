work=$(git rev-parse -q --verify refs/coding-agent/work)
show_work
git read-tree -u --reset "$1"
