"""Modules imported by commands and until the first sync request. Imports take most of the startup time."""

import os
import subprocess
import sys

import pytest

from cli.command_runner import ROOT

FIRST_ANSWER = """
import asyncio, sys
from pathlib import Path
from vademecum.cli import commands, main
from vademecum.cli.serve import serve
from vademecum.app import create_app
from vademecum.model.schema.constants import OWNER
from vademecum.settings import Settings

async def pull(app):
    headers = {"host": "localhost", "authorization": f"Local {app.state.services.local_secret}", "x-vademecum-user": OWNER}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": "/v1/sync/documents/1/pull", "raw_path": b"/v1/sync/documents/1/pull", "root_path": "",
        "query_string": b"lwt=0&id=&limit=100", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message):
        if message["type"] == "http.response.start":
            print(message["status"], *sys.modules)
    await app(scope, receive, send)

async def first_answer():
    app = create_app(Settings(data=Path(sys.argv[1])))
    async with app.lifespan():
        await app.state.services.account_service.ensure_owner()
        await pull(app)

asyncio.run(first_answer())
"""
# Libraries that are not needed until the first sync. Importing one takes 2 % to more than 50 % of the startup time.
LATER = {"docx", "httpx", "lancedb", "lxml", "mcp", "onnx", "onnxruntime", "openpyxl", "pptx", "prometheus_client", "pyarrow", "pydantic", "pypdfium2", "tokenizers"}  # fmt: skip
OF_THE_SERVER = {"duckdb", "litestar", "numpy"}


def loaded(code, *words):
    """Run `code` in a new Python process. Return the words of the last line that it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VADEMECUM_")}
    environment["PYTHONPATH"] = str(ROOT / "server")
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def test_server_start_and_first_sync_import_only_needed_libraries(tmp_path):
    status, *modules = loaded(FIRST_ANSWER, str(tmp_path / "data"))
    assert status == "200" and "litestar" in modules
    assert not LATER & set(modules)


@pytest.mark.parametrize(
    "file",
    [
        "backup",
        "agents.claim",
        "agents.context",
        "doctor",
        "forget",
        "import_",
        "agents.mcp",
        "models",
        "search",
        "serve.serve",
        "token",
        "user",
    ],
)
def test_commands_import_server_modules_lazily(file):
    modules = loaded(f"import sys; import vademecum.cli.commands, vademecum.cli.{file}; print(*sys.modules)")
    assert "click" in modules
    assert not (OF_THE_SERVER | LATER - {"httpx"}) & set(modules)
