#!/usr/bin/env bash
# Compares the bundled prices with the newest lists of genai-prices and LiteLLM on PyPI: models that have no price here, and models that
# are dearer there. It changes nothing. It needs python3 with pip. Exits with 1 if a list has something that the bundled ones lack.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps --target "$folder/litellm" litellm
"$folder/venv/bin/pip" install -q genai-prices
cp "$folder/litellm/litellm/model_prices_and_context_window_backup.json" "$folder/litellm.json"
"$folder/venv/bin/python" packages/providers/generate/genai-prices-json.py > "$folder/genai-prices.json"
npx tsx bench/price-coverage.ts --names "$folder/genai-prices.json" "$folder/litellm.json"
