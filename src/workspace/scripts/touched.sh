cd /workspace/project
# What the worker reads is bounded: of very many new files it gets the first ones.
{
  git diff --name-only --no-renames -z "$1" --
  git ls-files -z --others --exclude-standard
} | head -c 1000000
