cd /workspace/project
git diff --name-only --no-renames -z "$1" --
git ls-files -z --others --exclude-standard
