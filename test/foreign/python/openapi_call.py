"""Issues and lists a URL with the client that openapi-python-client generates."""

import importlib
import pkgutil
import sys

sys.path.insert(0, sys.argv[1])

import presign_api  # noqa: E402
from presign_api import AuthenticatedClient  # noqa: E402
from presign_api.api.issuing import presign  # noqa: E402
from presign_api.api.sessions import list_sessions  # noqa: E402
from presign_api.models import PresignRequest  # noqa: E402

for module in pkgutil.walk_packages(presign_api.__path__, "presign_api."):
    importlib.import_module(module.name)

client = AuthenticatedClient(base_url=sys.argv[2], token=sys.argv[3])
body = PresignRequest(
    provider="openai", path="/v1/chat/completions", client_api_key="sk-any", max_uses=3, external_user="python"
)
issued = presign.sync(client=client, body=body)
listed = list_sessions.sync(client=client, external_user="python")
print(len(listed.data), listed.data[0].id == issued.session_id)
