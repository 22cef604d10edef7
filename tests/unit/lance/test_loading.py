"""The library is loaded without the checks of a client that nobody calls, and nobody else goes without theirs."""

import subprocess
import sys

LOADED = """
import pydantic
from pydantic.validate_call_decorator import validate_call
from vademecum.engines.lance.table import _session
_session()
from lance_namespace_urllib3_client import TagApi
assert not hasattr(TagApi.list_table_tags, "raw_function"), "pydantic prepared it"
assert pydantic.validate_call is validate_call
"""


def test_loading() -> None:
    subprocess.run([sys.executable, "-c", LOADED], check=True)
