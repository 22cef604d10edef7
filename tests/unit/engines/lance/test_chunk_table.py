"""Opening an index does not import Lance's REST client. The import takes 1.5 s of CPU time in each process."""

import sys

from vademecum.engines.lance.chunk_table import _lancedb


def test_lancedb_is_imported_without_its_rest_client():
    _lancedb()
    client = "lance_namespace_urllib3_client"
    assert f"{client}.models" in sys.modules, (
        "the REST client has another name now: check what lancedb imports"
    )
    assert f"{client}.api" not in sys.modules and f"{client}.configuration" not in sys.modules
