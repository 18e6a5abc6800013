work=$(git rev-parse -q --verify refs/coding-agent/work)
show_work
