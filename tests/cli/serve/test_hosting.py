"""Starting and stopping a server: ports, certificates, closed terminals, idle connections."""

import contextlib
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from cli.command_runner import Home, upload
from cli.serve.test_serve import STOP_S, certificate, greeted
from cli.test_backup import holds
from vademecum.cli.serve.serve import open_sockets
from vademecum.engines.duckdb.fence import fence_folder
from vademecum.errors import BadRequest
from vademecum.services.accounts import local_auth
from vademecum.settings import Settings
from wait_until import WITHIN_S, soon_outside


@pytest.mark.parametrize("made", [False, True])
def test_failed_server_start_leaves_new_data_folder_unchanged(home, made):
    if made:
        home.data.mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "is in use" in home.run("serve", "--port", taken.getsockname()[1]).refusal()
    assert home.data.exists() == made and not (made and list(home.data.iterdir()))


def test_second_server_reports_folder_in_use_even_if_port_is_also_taken(home):
    with home.serve() as server:
        port = server.url.rpartition(":")[2]
        assert "Another process uses" in home.run("serve", "--port", port).refusal()


def is_taken(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def wait_for_reader(pipe, process):
    """Wait until the process reads the named pipe, and return the other end of the pipe."""
    end = time.monotonic() + WITHIN_S
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):  # no process reads it
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.01)
    pytest.fail("the process does not read the pipe")


def test_server_binds_port_before_it_opens_files(home):
    """So clients that connect during the start wait for the server instead of failing."""
    pipe = fence_folder(home.data) / "nobody"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)  # the start reads the pipe, which blocks until the test closes its end
    with socket.socket() as kept:  # keep the port until the end, so that no other process gets it
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        process, log = home.spawn("--port", str(port))
        try:
            writer = wait_for_reader(pipe, process)
            assert is_taken(port), log.read_text()
            early = HTTPConnection("127.0.0.1", port, timeout=60)
            early.request("GET", "/health")
            assert not (home.data / "server.json").exists()
            os.close(writer)
            assert early.getresponse().status == 200
            early.close()
        finally:
            process.kill()
            process.wait(60)


def test_server_shuts_down_cleanly_if_server_file_cannot_be_written(home):
    (home.data / "server.new").mkdir(parents=True)
    done = home.run("serve", "--port", 0)
    assert done.code == 1 and "Traceback" not in done.err
    assert done.err.splitlines()[-1].startswith(
        f"Error: {home.data / 'server.json'} cannot be written (Is a dir"
    )
    assert not list(home.data.rglob("*.wal"))


def test_server_shuts_down_cleanly_after_its_terminal_closes(home):
    """The server must also handle that writing to its terminal fails then."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "vademecum.cli.main", "serve", "--port", "0", "--data", str(home.data)]

    def lead() -> None:
        """Make the process lead the session of its terminal, as if a user had started it without `nohup`."""
        os.close(os.open(os.ttyname(0), os.O_RDWR))
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    process = subprocess.Popen(
        command, env=home.environment(), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lead,
    )  # fmt: skip
    os.close(theirs)
    try:
        soon_outside(lambda: (home.data / "server.json").exists())
        os.close(ours)
        assert process.wait(60) == 0
        assert not (home.data / "server.json").exists() and not list(home.data.rglob("*.wal"))
    finally:
        process.kill()
        process.wait(60)


def test_requests_succeed_while_log_cannot_be_written(home):
    home.add("ada@example.org")
    command = [sys.executable, "-m", "vademecum.cli.main", "serve", "--port", "0", "--data", str(home.data)]
    with Path("/dev/full").open("wb") as full:
        process = subprocess.Popen(command, env=home.environment(), stderr=full)
    try:
        soon_outside(lambda: process.poll() is not None or (home.data / "server.json").exists())
        assert home.token("ada@example.org")
        with httpx.Client(base_url=local_auth.read(home.data).url, trust_env=False) as anyone:
            # The missing folder makes the server write an error to the log.
            (home.data / "jobs" / "index").rename(home.data / "index")
            headers = {"Authorization": f"Bearer {home.token('ada@example.org')}"}
            sent = {"files": {"file": ("a.txt", b"Forty apple trees.")}, "data": {"sessionId": "s1"}}
            assert anyone.post("/v1/documents", headers=headers, **sent).status_code == 201
        process.terminate()
        process.wait(60)
        assert not (home.data / "server.json").exists()
    finally:
        process.kill()
        process.wait(60)


def test_server_started_with_nohup_survives_closed_terminal(home):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        with home.serve(in_new_process=True) as server:
            server.process.send_signal(signal.SIGHUP)
            with server.client() as anyone:
                assert anyone.get("/health").status_code == 200
            assert server.end()[0] == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_idle_connection_stays_open_and_does_not_delay_server_stop(home):
    with home.serve() as server:
        idle = HTTPConnection(server.url.removeprefix("http://"), timeout=30)
        # Many clients reuse a connection that was idle for 5 seconds, so the server must keep it open for longer.
        for pause in (5.5, 0):
            idle.request("GET", "/health")
            assert idle.getresponse().read() == b'{"alive":true}'
            time.sleep(pause)
        code, took = server.end()
        assert code == 0 and took < STOP_S
        idle.close()


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def refused(home: Home, cert: Path, key: Path) -> str:
    done = home.run("serve", "--port", 0, "--tls-certificate", cert, "--tls-key", key)
    assert done.code == 1 and not home.data.exists()
    return done.refusal()


def test_certificate_errors_are_explained(home, tmp_path):
    (tmp_path / "other").mkdir()
    cert, key = certificate(tmp_path)
    _, other = certificate(tmp_path / "other")
    assert refused(home, cert, tmp_path / "none.pem") == (
        f"{tmp_path / 'none.pem'} cannot be read: No such file or directory."
    )
    assert f"{tmp_path} cannot be read" in refused(home, tmp_path, key)
    assert refused(home, cert, other) == f"The key {other} does not belong to the certificate {cert}."
    assert "is encrypted" in refused(home, cert, encrypted(key))
    assert "PEM" in refused(home, key, key)


def encrypted(key: Path) -> Path:
    new = key.with_name("encrypted.pem")
    openssl("pkey", "-in", key, "-aes256", "-passout", "pass:abcd", "-out", new)
    return new


def test_expired_certificate_causes_warning(home, tmp_path):
    cert, key = certificate(tmp_path)
    with home.serve("--tls-certificate", str(cert), "--tls-key", str(key)) as server:
        assert "Warning" not in server.output()
    openssl("req", "-new", "-key", key, "-subj", "/CN=localhost", "-out", tmp_path / "asked")
    openssl("x509", "-req", "-in", tmp_path / "asked", "-signkey", key, "-days", "-1", "-out", cert)
    with home.serve("--tls-certificate", str(cert), "--tls-key", str(key)) as server:
        assert f"Warning: the certificate {cert} has expired" in server.output()
        with server.client(verify=False) as browser:
            assert browser.get("/health").status_code == 200


def test_assistant_is_off_without_an_address():
    assert "Assistant: off," in greeted("http://127.0.0.1:1", "127.0.0.1", assistant_model="m")
    address = "http://127.0.0.1:2"
    assert "Assistant: m" in greeted(
        "http://127.0.0.1:1", "127.0.0.1", assistant_model="m", assistant_url=address
    )


def test_last_administrator_cannot_be_removed(home):
    home.add("dora@example.org")
    home.add("emma@example.org")
    assert "now an administrator" in home.ok("user", "admin", "dora@example.org").out
    listed = home.ok("user", "list").out.splitlines()
    assert ["administrator" in line for line in listed if "@example.org" in line] == [True, False]
    for command in ("user remove dora@example.org --yes", "user admin dora@example.org --no"):
        assert "`vademecum user admin EMAIL`" in home.run(*command.split()).refusal()
    home.ok("user", "admin", "emma@example.org")
    assert "no longer an administrator" in home.ok("user", "admin", "dora@example.org", "--no").out


@pytest.mark.parametrize("with_server", [True, False], ids=["with a server", "without one"])
def test_erase_command_erases_deleted_rows(home, with_server):
    home.settings["erase_delay_s"] = "600"
    gone, kept = "The xylophone of Bartholomew is hidden.", "Forty apple trees stand here."
    for email in ("ada@example.org", "bob@example.org"):
        home.add(email)
    with home.serve() as server:
        for email in ("ada@example.org", "bob@example.org"):
            with server.client(home.token(email)) as person:
                document = upload(person, "note.txt", f"{gone} {email}")
                upload(person, "apples.txt", f"{kept} {email}")
                assert person.delete(f"/v1/documents/{document['id']}").status_code == 200
                assert person.post("/v1/local/erase", json={}).status_code == 403
        server.end()
    with home.serve() if with_server else contextlib.nullcontext():
        assert holds(home.data, f"{gone} ada@") and holds(home.data, f"{gone} bob@")
        assert "account nobody@example.org" in home.run("erase", "--user", "nobody@example.org").refusal()
        assert home.ok("erase", "--user", "ada@example.org", "--json").json["accounts"] == 1
        assert not holds(home.data, f"{gone} ada@") and holds(home.data, f"{gone} bob@")
        assert "of 1 accounts" in home.ok("erase").out
        assert (
            not holds(home.data, gone)
            and holds(home.data, f"{kept} ada@")
            and holds(home.data, f"{kept} bob@")
        )
        assert "Nothing to erase" in home.ok("erase").out


def test_failed_erasure_reports_reason_and_retries(home):
    home.settings["erase_delay_s"] = "600"
    account = home.add("ada@example.org")
    with home.serve() as server, server.client(home.token("ada@example.org")) as ada:
        document = upload(ada, "note.txt", "The xylophone is hidden.")
        ada.delete(f"/v1/documents/{document['id']}")
        (folder,) = home.data.glob(f"users/*/{account}")
        (folder / "records.duckdb.new").mkdir()
        message = home.run("erase").refusal()
        assert "records.duckdb.new cannot be used" in message and "Nothing was changed" in message
        copied = home.run("backup", home.data.with_name("copy"))
        assert copied.code == 1 and "Not backed up: ada@example.org" in copied.err
        assert "records.duckdb.new cannot be used" in copied.err
        (folder / "records.duckdb.new").rmdir()
        assert home.ok("erase", "--json").json["accounts"] == 1
        assert not holds(home.data, "xylophone")


def test_server_skips_address_of_host_name_that_it_cannot_bind(tmp_path, monkeypatch):
    lacking = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 0, 0, 0))
    here = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))
    settings = Settings(data=tmp_path, host="localhost", port=0)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [lacking, here])
    (one,) = open_sockets(settings)
    with one:
        assert one.getsockname()[0] == "127.0.0.1"
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [lacking])
    with pytest.raises(BadRequest, match="cannot listen on localhost"):
        open_sockets(settings)
