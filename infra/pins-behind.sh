#!/usr/bin/env bash
# Prints the pinned versions of SDKs, clients and tools that are behind their registries: npm's, PyPI's, Go's, Cargo's and Maven's. It changes
# nothing. A tool that is missing here is named, and its pins are left out. Exits with 1 if a pin is behind.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
behind=0

section() {
  echo
  echo "== $1"
}
say() {
  printf '%-50s %-14s %s\n' "$1" "$2" "$3"
  behind=1
}
has() {
  if command -v "$1" >/dev/null; then return; fi
  echo "$1 is not installed"
  return 1
}

section 'npm: pnpm-workspace.yaml'
npx -y pnpm@12 outdated -r --format json 2>/dev/null | node -e '
  const found = JSON.parse(require("node:fs").readFileSync(0, "utf8") || "{}");
  for (const [key, { current, latest }] of Object.entries(found))
      console.log(key.split(/(?<=.)@| /)[0], current ?? "-", latest);' |
  { while read -r name pin newest; do say "$name" "$pin" "$newest"; done; exit "$behind"; } || behind=1

for folder in test/foreign/js test/foreign/agents test/foreign/openapi; do
  section "npm: $folder/package.json"
  while read -r name pin; do
    newest=$(npm view "$name" version 2>/dev/null)
    if [ "$newest" != "$pin" ]; then say "$name" "$pin" "${newest:-not found}"; fi
  done < <(node -p "Object.entries({...require('./$folder/package.json').dependencies}).map((each) => each.join(' ')).join('\n')")
done

section 'PyPI: test/foreign/python/requirements'
if has python3; then
  while IFS='=' read -r name _ pin; do
    newest=$(python3 -m pip index versions "$name" 2>/dev/null | sed -n '1s/.*(\(.*\)).*/\1/p')
    if [ "$newest" != "$pin" ]; then say "$name" "$pin" "${newest:-not found}"; fi
  # The first lines of each file are what was chosen; the rest follows from it.
  done < <(for file in test/foreign/python/requirements/*.txt; do
    sed -n '2,${/^#/q;s/^\([A-Za-z0-9._-]*\)==\([^ ;]*\).*/\1==\2/p}' "$file"
  done | sort -u)
fi

section 'Go: test/foreign/go/go.mod'
if has go; then
  while read -r name pin newest; do
    if [ -n "$newest" ]; then say "$name" "$pin" "$newest"; fi
  done < <(cd test/foreign/go && go list -m -u -f '{{if not (or .Main .Indirect)}}{{.Path}} {{.Version}} {{with .Update}}{{.Version}}{{end}}{{end}}' all 2>/dev/null)
fi

section 'Cargo: test/foreign/rust/Cargo.toml'
if has cargo; then
  while read -r name pin; do
    newest=$(cargo info "$name" 2>/dev/null | sed -n 's/^version: \([^ ]*\).*/\1/p')
    if [ "$newest" != "$pin" ]; then say "$name" "$pin" "${newest:-not found}"; fi
  done < <(sed -n 's/^\([a-z0-9_-]*\) = .*"=\([0-9.]*\)".*/\1 \2/p' test/foreign/rust/Cargo.toml)
fi

section 'Maven: test/foreign/java/pom.xml'
if has mvn; then
  mvn -q -f test/foreign/java/pom.xml versions:display-dependency-updates 2>/dev/null | grep -- '->' && behind=1
fi
exit "$behind"
