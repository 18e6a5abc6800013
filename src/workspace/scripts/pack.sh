cd /workspace/project
printf '%s\n^%s\n' "$1" "$2" | git pack-objects --revs --stdout --thin -q
