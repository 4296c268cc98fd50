"""Reads an error with the type that openapi-python-client generates."""

import json
import sys
import typing

sys.path.insert(0, sys.argv[1])

from presign_api.api.issuing import presign  # noqa: E402
from presign_api.models import Error  # noqa: E402

refused = Error.from_dict(json.load(sys.stdin))
# Every refusal of the operation has this type.
assert typing.get_args(typing.get_type_hints(presign.sync)["return"])[0] is Error
error = refused.error
print(error.code.value, error.param, len(error.problems), error.additional_properties.get("violations"))
