"""What comes with Lance when the first index is opened: a second and a half of every server's start hangs on it."""

import sys

from vademecum.engines.lance.chunk_table import _lancedb


def test_lance_comes_without_what_asks_a_service_of_its_own():
    _lancedb()
    client = "lance_namespace_urllib3_client"
    assert f"{client}.models" in sys.modules, "it is named otherwise: look again what lancedb imports"
    assert f"{client}.api" not in sys.modules and f"{client}.configuration" not in sys.modules
