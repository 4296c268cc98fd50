#!/usr/bin/env bash
# Tries the containers: builds and starts them with the offline provider, issues a URL for two calls, makes one
# plain and one streamed call through it, sees the third refused, and takes everything down again.
# Needs Docker with Compose (v2, or 1.29) and curl. SMOKE_ISSUER_PORT and SMOKE_GATEWAY_PORT choose the ports.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

issuer_port=${SMOKE_ISSUER_PORT:-18787}
gateway_port=${SMOKE_GATEWAY_PORT:-18788}
issuer=http://127.0.0.1:$issuer_port
gateway=http://127.0.0.1:$gateway_port
export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1
scratch=$(mktemp -d)

if docker compose version >/dev/null 2>&1; then compose=(docker compose); else compose=(docker-compose); fi
compose+=(--env-file "$scratch/env" -p presign-smoke -f infra/compose.yaml -f infra/compose.smoke.yaml)

fail() {
  echo "smoke: FAILED: $*" >&2
  exit 1
}

finish() {
  local status=$?
  trap - EXIT
  if [ -f "$scratch/env" ]; then
    if [ "$status" -ne 0 ]; then "${compose[@]}" logs --tail 40 >&2 || true; fi
    "${compose[@]}" down --volumes --remove-orphans >/dev/null 2>&1 || true
  fi
  # Docker makes what compose.yaml mounts; nobody put anything in it.
  rmdir infra/config 2>/dev/null || true
  rm -rf "$scratch"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Calls $1 with the JSON $2; the answer's body is left in $scratch/body, its status is printed.
post() {
  local url=$1 json=$2
  shift 2
  curl -sS -m 30 -o "$scratch/body" -w '%{http_code}' -H 'content-type: application/json' "$@" -d "$json" "$url"
}

wait_until_ready() {
  for _ in $(seq 60); do
    if curl -fsS -m 5 -o /dev/null "$1/readyz" 2>/dev/null; then return; fi
    sleep 1
  done
  fail "$1/readyz did not answer"
}

echo 'smoke: building'
docker build -q -f infra/docker/issuer.Dockerfile -t presign-issuer . >/dev/null
(
  umask 077
  docker run --rm presign-issuer node dist/keys.js >"$scratch/keys"
)
bash infra/secrets.sh "$scratch/secrets" <"$scratch/keys"
cat >"$scratch/env" <<EOF
ISSUER_PORT=$issuer_port
GATEWAY_PORT=$gateway_port
ISSUER_URL=$issuer
GATEWAY_URL=$gateway
SECRETS_FOLDER=$scratch/secrets
EOF
# root's files belong to user 1000, as whom the services run by default.
if [ "$(id -u)" -ne 0 ]; then echo "PRESIGN_USER=$(id -u):$(id -g)" >>"$scratch/env"; fi
api_key=$(sed -n 's/^BOOTSTRAP_API_KEY=//p' "$scratch/keys")

echo 'smoke: starting'
"${compose[@]}" up -d --build
wait_until_ready "$issuer"
wait_until_ready "$gateway"

status=$(post "$issuer/v1/presign" \
  '{"provider":"sandbox","path":"/v1/chat/completions","client_api_key":"sk-sandbox-smoke","max_uses":2}' \
  -H "authorization: Bearer $api_key")
[ "$status" = 200 ] || fail "presign answered $status: $(cat "$scratch/body")"
url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$scratch/body")
case $url in "$gateway"/llm/t/*/v1/chat/completions) ;; *) fail "unexpected url in $(cat "$scratch/body")" ;; esac
echo 'smoke: issued a URL for two calls'

status=$(post "$url" '{"model":"sandbox-1","messages":[{"role":"user","content":"Hello"}]}')
[ "$status" = 200 ] || fail "the plain call answered $status: $(cat "$scratch/body")"
grep -q '"object":"chat.completion"' "$scratch/body" || fail "no completion in $(cat "$scratch/body")"
echo 'smoke: the plain call answered 200'

status=$(post "$url" '{"model":"sandbox-1","stream":true,"messages":[{"role":"user","content":"Hello"}]}' -N)
[ "$status" = 200 ] || fail "the streamed call answered $status: $(cat "$scratch/body")"
grep -q '"object":"chat.completion.chunk"' "$scratch/body" || fail "no chunk in $(cat "$scratch/body")"
grep -q '^data: \[DONE\]' "$scratch/body" || fail "the stream broke off: $(cat "$scratch/body")"
echo "smoke: the streamed call answered 200 with $(grep -c '^data: ' "$scratch/body") events"

status=$(post "$url" '{"model":"sandbox-1","messages":[{"role":"user","content":"Hello"}]}')
[ "$status" = 403 ] || fail "the third call answered $status: $(cat "$scratch/body")"
grep -q '"code":"uses_exhausted"' "$scratch/body" || fail "not uses_exhausted: $(cat "$scratch/body")"
echo 'smoke: the third call was refused, 403 uses_exhausted'
echo 'smoke: passed'
