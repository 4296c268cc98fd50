#!/usr/bin/env bash
# Prints the section of CHANGELOG.md for a version, as in "## 0.1.0 - 2026-01-31". Fails if there is none, or if it is empty.
set -euo pipefail
version=${1:?version}
notes=$(awk -v version="$version" '
  /^## / { inside = ($2 == version || $2 == "[" version "]"); next }
  inside' "$(dirname "${BASH_SOURCE[0]}")/../CHANGELOG.md")
if ! grep -q '[^[:space:]]' <<<"$notes"; then
  echo "CHANGELOG.md has no section \"## $version\"" >&2
  exit 1
fi
printf '%s\n' "$notes"
