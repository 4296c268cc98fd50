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
# The package has its list as Python objects.
"$folder/venv/bin/python" - > "$folder/genai-prices.json" <<'PYTHON'
import datetime, decimal, json, sys
from genai_prices import data


def plain(value):
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if not hasattr(value, '__dict__'):
        return getattr(value, 'pattern', None) or str(value)
    return {key.rstrip('_'): plain(each) for key, each in vars(value).items() if each is not None}


json.dump([plain(provider) for provider in data.providers], sys.stdout)
PYTHON
npx tsx bench/price-coverage.ts --names "$folder/genai-prices.json" "$folder/litellm.json"
