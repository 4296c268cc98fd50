"""Prints the prices of the installed package `genai-prices`, in the form of that project's data.json.

    pip install genai-prices && python3 packages/providers/generate/genai-prices-json.py > genai-prices.json
"""

import datetime
import decimal
import json
import re
import sys

from genai_prices import data

MODEL_FIELDS = ('id', 'match', 'context_window', 'prices')


def plain(value):
    """Raises TypeError for a value that has no form in JSON, so that no price is left out in silence."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == int(value) else float(value)
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat().replace('+00:00', 'Z')
    if isinstance(value, re.Pattern):
        return value.pattern
    return {key.rstrip('_'): plain(each) for key, each in vars(value).items() if each is not None}


def model(info):
    fields = {name: getattr(info, name) for name in MODEL_FIELDS}
    return {name: plain(value) for name, value in fields.items() if value is not None}


def provider(info):
    others = info.fallback_model_providers
    return {
        'id': info.id,
        **({'fallback_model_providers': others} if others else {}),
        'models': [model(each) for each in info.models],
    }


json.dump([provider(each) for each in data.providers], sys.stdout)
