#!/usr/bin/env bash
# Writes the secrets of infra/compose.yaml, one file each, from lines NAME=value:
#   npx -y pnpm@12 --filter @presign/issuer keys | bash infra/secrets.sh
# $1 is the folder, infra/secrets by default. Existing secrets are kept: it writes all of them or none.
set -euo pipefail
umask 077
folder=${1:-$(dirname "${BASH_SOURCE[0]}")/secrets}

fail() {
  echo "secrets: $*" >&2
  exit 1
}

lines=$(cat)
# The last value of a name in the input, or nothing.
value_of() {
  local line
  line=$(grep "^$1=." <<<"$lines" | tail -n 1) || return 0
  printf '%s' "${line#*=}"
}

needed=(TOKEN_SIGNING_KEY TOKEN_PUBLIC_KEYS ENCRYPTION_KEYS BOOTSTRAP_API_KEY POSTGRES_PASSWORD)
# Files that are empty without an archive in S3.
optional=(AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY)
names=("${needed[@]}" "${optional[@]}" DATABASE_URL)
for name in "${names[@]}"; do
  if [ -e "$folder/$name" ]; then fail "$folder/$name exists already"; fi
done
for name in "${needed[@]}" "${optional[@]}"; do
  value=$(value_of "$name")
  printf -v "$name" '%s' "$value"
done
for name in "${needed[@]}"; do
  if [ -z "${!name}" ]; then fail "no $name in the input"; fi
done
DATABASE_URL=postgres://presign:$POSTGRES_PASSWORD@postgres:5432/presign

# A container sees the owner and the mode that a file has here. The services run as user 1000.
mkdir -p "$folder"
for name in "${names[@]}"; do
  printf '%s\n' "${!name}" >"$folder/$name"
  chmod 400 "$folder/$name"
  if [ "$(id -u)" -eq 0 ]; then chown 1000:1000 "$folder/$name"; fi
done
case $(id -u) in
  0 | 1000) ;;
  *) echo "secrets: add PRESIGN_USER=$(id -u):$(id -g) to infra/.env, so that the services can read them" ;;
esac
