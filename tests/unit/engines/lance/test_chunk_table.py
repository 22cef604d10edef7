"""Opening an index does not import Lance's REST client, which costs 1.5 s of CPU in each process that has an index."""

import sys

from vademecum.engines.lance.chunk_table import _lancedb


def test_lancedb_is_imported_without_its_rest_client():
    _lancedb()
    client = "lance_namespace_urllib3_client"
    assert f"{client}.models" in sys.modules, "it is named otherwise: look again what lancedb imports"
    assert f"{client}.api" not in sys.modules and f"{client}.configuration" not in sys.modules
