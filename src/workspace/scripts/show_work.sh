# Restores the commit $work, whatever ran since: branch, index and files.
show_work() {
  branch=$(cat .git/coding-agent-branch 2>/dev/null || true)
  if [ -n "$branch" ]; then git symbolic-ref HEAD "$branch"; git update-ref HEAD "$work"
  else git update-ref --no-deref HEAD "$work"; fi
  git read-tree -u --reset "$work"
  # A test may leave a folder that nobody may write to, or a process that still writes: neither is a fault of the work.
  git clean -ffdq 2>/dev/null || {
    git ls-files -z --others --exclude-standard | xargs -0r dirname -z -- | xargs -0r chmod u+rwx -- 2>/dev/null || true
    git clean -ffdq 2>/dev/null || true
  }
}
