"""Parse the URL of an OpenAI-compatible endpoint, as people write it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


def base_address(url: str) -> str:
    """Return the base URL, to which `/chat/completions` and `/models` are appended. A URL without a path means `/v1`.

    Raises ValueError for an invalid URL. The message does not repeat the URL, because people put secrets into URLs.
    """
    parts = urlsplit(url.strip())
    if "@" in parts.netloc:
        raise ValueError(
            "The assistant's URL must not contain a user name or password. Set VADEMECUM_ASSISTANT_KEY instead"
        )
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.netloc):
        raise ValueError("The assistant's URL must begin with http:// or https:// and contain a host")
    if parts.port == 0:  # for a port above 65535, `parts.port` itself raises ValueError
        raise ValueError("The assistant's URL must have a port from 1 to 65535")
    if parts.query or parts.fragment:
        raise ValueError("The assistant's URL must end with its path, without ? or #")
    path = parts.path.rstrip("/") or "/v1"
    return f"{parts.scheme}://{parts.netloc}{path.removesuffix('/chat/completions')}"
