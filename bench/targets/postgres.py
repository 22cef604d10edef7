"""A PostgreSQL of its own for one run: fresh data folder, UNIX socket only, fsync on, never as root."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
import time
from pathlib import Path

from targets.base import START_S, Target, Unavailable, run
from targets.install import postgres_commands


class Postgres:
    def __init__(self) -> None:
        self._socket = Path(tempfile.mkdtemp(prefix="vb-"))  # short: a socket's path has at most 107 bytes

    @property
    def url(self) -> str:
        return f"postgresql:///postgres?host={self._socket}&user=bench"

    def start(self, target: Target, folder: Path) -> None:
        """Make a cluster below `folder` and start it as a process of `target`."""
        user = _user()
        data = folder / "postgres"
        data.mkdir()
        for place in (data, self._socket):
            place.chmod(0o700)
            if user:
                shutil.chown(place, user, user)
        bin_folder = postgres_commands()
        run(
            [
                str(bin_folder / "initdb"),
                *("-D", str(data), "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"),
            ],
            cwd=data,
            user=user,
        )
        options = ["-k", str(self._socket), "-c", "listen_addresses=", "-c", "timezone=UTC"]
        target.spawn([str(bin_folder / "postgres"), "-D", str(data), *options], folder, user=user)
        self._wait(bin_folder)

    def _wait(self, bin_folder: Path) -> None:
        until = time.monotonic() + START_S
        command = [
            str(bin_folder / "psql"),
            "-h",
            str(self._socket),
            "-U",
            "bench",
            "-c",
            "SELECT 1",
            "postgres",
        ]
        while True:
            try:
                run(command)
                return
            except Unavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def remove(self) -> None:
        shutil.rmtree(self._socket, ignore_errors=True)


def _user() -> str | None:
    """Whom to run it as: oneself, or, because it refuses root, the package's own user."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise Unavailable("there is no user postgres: apt-get install -y postgresql") from None
