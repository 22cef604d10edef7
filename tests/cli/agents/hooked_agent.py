"""A simulated coding agent whose hooks call `vademecum record`."""

import json
import os
import re
import subprocess

from cli.command_runner import COMMAND, ROOT
from vademecum.model.agents.spool_layout import BLOCK_COUNT_FILE

PROJECT = {"name": "engine", "root": "~/dev/engine", "source": "git"}


class Agent:
    """An agent with its own home folder, a repository and a data folder. It runs the real command."""

    def __init__(self, home):
        self.home, self.data, self.cwd = home, home / "data", home / "dev" / "engine" / "src"
        self.data.mkdir(parents=True)
        self.cwd.mkdir(parents=True)
        for part in ("objects", "refs"):
            (self.cwd.parent / ".git" / part).mkdir(parents=True)
        (self.cwd.parent / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    def run(self, stdin, *words, data=None, cwd=None, **settings):
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("VADEMECUM_", "XDG_", "CLAUDE_"))}
        environment = {**ours, **settings, "HOME": str(self.home), "PYTHONPATH": str(ROOT / "server")}
        command = [*COMMAND, "record", "--data", str(data or self.data), *words]
        return subprocess.run(command, input=stdin, capture_output=True, env=environment, cwd=cwd or self.cwd, timeout=120)  # fmt: skip

    def tell(self, name, *words, **event):
        whole = {
            "hook_event_name": name,
            "session_id": "s-1",
            "cwd": str(self.cwd),
            "transcript_path": "/t",
            **event,
        }
        done = self.run(json.dumps(whole).encode(), *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def files(self):
        """Return all files in the spool except the files with block counts."""
        there = (self.data / "spool").rglob("*")
        return sorted(path for path in there if path.is_file() and path.name != BLOCK_COUNT_FILE)

    def only_event(self):
        """Return the only event in the spool."""
        (only,) = self.files()
        return json.loads(only.read_bytes())

    def project(self):
        """Return the event's project without the machine id."""
        project = self.only_event()["project"]
        assert re.fullmatch(r"[0-9a-f]{16}", project.pop("machine"))
        return project
