"""The wheel: it is built without a network, contains exactly the needed files, and works without the checkout."""

import os
import re
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import httpx
import pytest

from vademecum.services.accounts import local_auth

ROOT = Path(__file__).parents[2]
START_S = 60
# Hosts that may occur in the wheel's own files: local and example hosts, the license, XML namespaces and the model hub.
HOSTS = {
    "127.0.0.1",
    "localhost",
    "docs.example.org",
    "www.apache.org",
    "schemas.openxmlformats.org",
    "purl.oclc.org",  # XML namespaces, like schemas.openxmlformats.org
    "huggingface.co",
}
ROW = {
    "id": "f1",
    "createdAt": "2026-01-01T00:00:00.000Z",
    "updatedAt": "2026-01-01T00:00:00.000Z",
    "_deleted": False,
    "key": "user.name",
    "value": "Ada",
    "sourceRemoved": False,
    "confidence": 1,
    "confirmed": True,
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Install the wheel into a new environment, which uses the dependencies of the tests' environment.

    A .pth file adds them to the import path. Python does not read further .pth files there, so the editable checkout
    stays invisible.
    """
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    # Not pip, which takes ten times as long.
    uv = (
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--no-cache",
        "--offline",
    )
    run(*uv, "--no-deps", "--no-index", "--python", python, wheel)
    (site,) = folder.glob("venv/lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(folder)


def run(*command, **more):
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


class Installed:
    def __init__(self, folder):
        self.bin = folder / "venv" / "bin"
        self.data = folder / "data"
        self.empty = folder / "empty"
        self.empty.mkdir()
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("VADEMECUM_", "PYTHON", "PYTEST_"))}
        self.environment = {**ours, "HF_HUB_OFFLINE": "1", "VADEMECUM_MVN": ""}

    def run(self, program, *words):
        return run(self.bin / program, *words, cwd=self.empty, env=self.environment)

    def serve(self):
        command = [self.bin / "vademecum", "serve", "--port", "0", "--data", self.data]
        log = self.data.with_suffix(".log").open("wb")
        with log:
            return subprocess.Popen(command, cwd=self.empty, env=self.environment, stdout=log, stderr=log)

    def door(self, process):
        """Wait until the server listens, and return its address."""
        until = time.monotonic() + START_S
        while (door := local_auth.read(self.data)) is None or door.pid != process.pid:
            assert process.poll() is None, self.data.with_suffix(".log").read_text()
            assert time.monotonic() < until, "the server did not start in time"
            time.sleep(0.05)
        return door.url


def ready(client):
    until = time.monotonic() + START_S
    while (answer := client.get("/ready")).status_code != 200:
        assert time.monotonic() < until, answer.text
        time.sleep(0.05)
    return answer.json()


def below(folder, suffix=""):
    """Return the names of the files in a folder of the checkout."""
    return {
        p.relative_to(ROOT / folder).as_posix() for p in (ROOT / folder).rglob(f"*{suffix}") if p.is_file()
    }


def test_wheel_contains_exactly_the_needed_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    expected = {f"vademecum/{name}" for name in below("server/vademecum", ".py")}
    data = "services/models/fit_data"
    expected |= {f"vademecum/{data}/{name}" for name in below(f"server/vademecum/{data}", ".json")}
    for folder in ("migrations", "schemas"):
        expected |= {f"vademecum/{folder}/{name}" for name in below(folder)}
    built = {f"vademecum/web/{name}" for name in below("server/vademecum/web")}
    assert "vademecum/web/api/index.html" in built, "the app is not built: run `npm run build`"
    expected |= built | {"vademecum/requirements-offline.lock"}
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    expected |= {
        f"{name}.dist-info/{file}" for name in ["-".join(wheel.name.split("-")[:2])] for file in about
    }
    assert names == expected


def test_wheel_contains_no_build_paths_or_registries(wheel):
    places = {str(ROOT), str(Path.home()), sys.prefix, sysconfig.get_path("purelib")}
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            assert not name.startswith("/") and ".." not in name
            content = archive.read(name)
            # Skip the web app, which has third-party code with links to home pages.
            if not name.startswith("vademecum/web/"):
                named = re.findall(rb"https?://([A-Za-z0-9.-]*[A-Za-z0-9])", content)
                found += [(name, host) for host in named if host.decode() not in HOSTS]
                assert b"-index-" not in content, f"{name} names a package index"
            found += [(name, p) for p in places if re.search(re.escape(p.encode()) + rb"[/\"'\s]", content)]
    assert found == []


def test_installed_wheel_serves_syncs_and_parses_files(installed):
    assert installed.run("vademecum", "--version").endswith("0.1.0")
    where = installed.run("python", "-c", "import vademecum; print(vademecum.__file__)")
    assert Path(where).is_relative_to(installed.bin.parent)
    process = installed.serve()
    try:
        url = installed.door(process)
        installed.run(
            "vademecum", "user", "add", "ada@example.org", "--tier", "JIGGA", "--data", installed.data
        )
        token = installed.run("vademecum", "token", "create", "ada@example.org", "--data", installed.data)
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=60) as ada:
            assert ready(ada)["store"] == "ok"
            assert "swagger-ui-bundle.js" in ada.get("/schema").text
            assert ada.get("/schema/files/swagger-ui-bundle.js").status_code == 200
            assert ada.post("/v1/sync/facts/0/push", json=[{"newDocumentState": ROW}]).json() == []
            assert ada.get("/v1/sync/facts/0/pull").json()["documents"] == [ROW]
            file = {"file": ("lease.txt", b"The lease ends in March.")}
            answer = ada.post("/v1/documents", files=file)
            assert answer.status_code == 201, answer.text
    finally:
        process.terminate()
        assert process.wait(60) == 0
    assert list(installed.empty.iterdir()) == []


def test_installed_wheel_contains_offline_lock(installed):
    program = "from vademecum.cli.install_model import offline_lock; print(offline_lock().read_text())"
    assert installed.run("python", "-c", program) == (ROOT / "requirements-offline.lock").read_text().strip()
