"""The server process: first start, exclusive use of the data folder, TLS, proxies, stopping and the log."""

import contextlib
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import httpx
import pytest

from cli.command_runner import Home, live, small_model, upload
from vademecum.cli.data_lock import try_lock
from vademecum.cli.serve.serve import describe_server
from vademecum.services.accounts import local_auth
from vademecum.settings import Settings
from wait_until import soon_outside

LINK = re.compile(r"https?://\S+/v1/sign-in\?link=\S+")
STOP_S = 10.0


def sign_in(client, link):
    return client.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})


def test_first_server_start_prints_link_that_works_once(home):
    with home.serve(in_new_process=True) as server:
        assert (
            "Sign in as owner@localhost (administrator) with this one-time link, within 15 minutes: http"
            in server.output()
        )
        assert "not encrypted" not in server.output(), (
            "no warning is needed, because only this machine reaches the loopback address"
        )
        (link,) = LINK.findall(server.output())
        assert link.startswith(server.url) and home.data.stat().st_mode & 0o077 == 0
        assert (home.data / "server.json").stat().st_mode & 0o077 == 0
        with server.client() as browser:
            # A GET must not consume the link, because mail programs open links for previews.
            for _ in range(2):
                assert browser.get(link).status_code == 200
            assert browser.get("/v1/me").status_code == 401
            entered = sign_in(browser, link)
            assert entered.status_code == 303
            cookie = entered.headers["set-cookie"].lower()
            assert "httponly" in cookie and "samesite=lax" in cookie and "secure" not in cookie
            me = browser.get("/v1/me").json()
            assert (me["tier"], me["admin"]) == ("JIGGA", True)
        with server.client() as other:
            again = sign_in(other, link)
            assert again.status_code == 401 and again.json()["code"] == "SIGNED_OUT"
            assert other.get("/v1/me").status_code == 401
        assert server.end()[1] < STOP_S
        assert not (home.data / "server.json").exists()
    with home.serve() as server:
        assert not LINK.search(server.output()), "no new link is printed while the owner has a session"
        made = home.ok("user", "link", "owner@localhost").out.strip()
        with server.client() as browser:
            assert sign_in(browser, made).status_code == 303
            assert browser.get("/v1/me").status_code == 200


def test_second_server_cannot_start_until_first_is_killed(home):
    with home.serve() as server:
        assert "Another process uses" in home.run("serve", "--port", 0).refusal()
        home.add("ada@example.org")
        token = home.token("ada@example.org")
        with server.client(token) as ada:
            document = upload(ada, "lease.txt", "The tenant gives notice three months before the end.")
        server.end(signal.SIGKILL)
        assert local_auth.read(home.data) is not None, (
            "the test needs the server file that the killed server left"
        )
        assert [one["email"] for one in home.ok("user", "list", "--json").json][1:] == ["ada@example.org"]
    with home.serve() as server, server.client(token) as ada:
        assert document["id"] in live(ada, "documents"), "an acknowledged document must survive the kill"
        assert local_auth.read(home.data).url == server.url


def test_server_start_waits_for_a_stopping_server(home):
    with try_lock(home.data) as mine:
        assert mine
        process, log = home.spawn()
        time.sleep(1)
        assert process.poll() is None, log.read_text()
    soon_outside(lambda: "listens on" in log.read_text())
    process.kill()
    process.wait(60)


def test_server_does_not_start_with_unusable_port(home):
    assert home.run("serve", "--port", 99_999).refusal() == "--port must be 0 to 65535."
    assert home.run("serve", port="99999").refusal() == "--port must be 0 to 65535."
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = home.run("serve", "--port", port)
    assert (
        done.refusal() == f"Port {port} is in use. Stop the program that uses it, or choose another --port."
    )
    assert done.code == 1 and done.err.count("\n") == 1, (
        "the error must be the only output, without log lines"
    )
    assert not (home.data / "server.json").exists()


def test_server_does_not_start_on_address_of_another_machine(home):
    assert "192.0.2.1" in home.run("serve", "--host", "192.0.2.1", "--port", 0).refusal()


def speaks_ipv6():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.parametrize("host", ["0.0.0.0", "::"] if speaks_ipv6() else ["0.0.0.0"])
def test_public_server_prints_address_and_tls_warning(home, host):
    with home.serve("--host", host) as server:
        output = server.output()
        url = re.search(r"^Vademecum listens on (\S+) \(and all addresses of this machine\)$", output, re.M)
        assert url and httpx.get(url[1] + "/health", trust_env=False).status_code == 200
        assert not url[1].startswith((f"http://{host}:", f"http://[{host}]:"))
        (link,) = LINK.findall(output)
        assert link.startswith(url[1])
        assert "Warning: connections are not encrypted (no TLS)" in output
        assert home.add("ada@example.org"), "commands must reach the server by the loopback address"


def greeted(url, address, **settings):
    return "\n".join(describe_server(Settings(data=Path("/data"), **settings), url, address, "/in?link=x"))


def test_server_warns_only_about_unencrypted_public_connections():
    assert "not encrypted" in greeted("http://192.0.2.7:1", "192.0.2.7")
    assert "not encrypted" not in greeted("https://192.0.2.7:1", "192.0.2.7")
    behind_proxy = greeted("http://192.0.2.7:1", "0.0.0.0", origin="https://docs.example.org")
    assert "not encrypted" not in behind_proxy and ": https://docs.example.org/in?link=x" in behind_proxy


@pytest.mark.parametrize(
    "flags",
    [
        "--tls-certificate {0}/none.pem --tls-key {0}/none.pem",
        "--tls-certificate {0}/bad.pem --tls-key {0}/bad.pem",
        "--tls-certificate {0}/bad.pem",
    ],
)
def test_server_does_not_start_with_unusable_certificate(home, tmp_path, flags):
    (tmp_path / "bad.pem").write_text("not a certificate")
    assert ".pem" in home.run("serve", "--port", 0, *flags.format(tmp_path).split()).refusal()


def test_server_does_not_start_if_data_folder_is_a_file(home, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    for command in (["serve", "--port", 0], ["user", "list"], ["doctor"]):
        assert "file" in home.run(*command, data=tmp_path / "file").refusal()
    assert (tmp_path / "file").read_text() == "not a folder"


def test_server_reports_unwritable_server_file(home):
    home.data.mkdir()
    (home.data / "server.json").mkdir()
    assert "server.json cannot be written" in home.run("serve", "--port", 0).refusal()


def test_server_reports_damaged_file_in_one_sentence_and_does_not_start(home):
    home.data.mkdir()
    (home.data / "reembed.json").write_text("{")
    done = home.run("serve", "--port", 0)
    message = done.err.splitlines()
    assert done.code != 0 and message[-1].startswith(f"Error: {home.data / 'reembed.json'} ")
    assert "exception" not in done.err.lower(), "the error must not contain a traceback"
    assert "reembed.json" in home.run("user", "list").refusal()
    assert any(not one["ok"] and "reembed.json" in one["detail"] for one in home.run("doctor", "--json").json)


@pytest.mark.parametrize("command", ["serve --port 0", "user list"])
def test_server_does_not_start_if_data_folder_cannot_be_created(home, tmp_path, command):
    (tmp_path / "file").write_text("not a folder")
    assert "file" in home.run(*command.split(), data=tmp_path / "file" / "below").refusal()


def certificate(folder):
    """Create a self-signed certificate and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
         "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def test_https_by_certificate_sets_secure_cookies(home, tmp_path):
    cert, key = certificate(tmp_path)
    with home.serve("--tls-certificate", str(cert), "--tls-key", str(key)) as server:
        assert server.url.startswith("https://")
        (link,) = LINK.findall(server.output())
        assert link.startswith(server.url)
        with server.client(verify=ssl.create_default_context(cafile=cert)) as browser:
            cookie = sign_in(browser, link).headers["set-cookie"].lower()
            assert "; secure" in cookie and "httponly" in cookie
            assert browser.get("/v1/me").status_code == 200
        assert home.add("ada@example.org"), "commands must reach a server with TLS"
        plain = server.url.replace("https://", "http://")
        with pytest.raises(httpx.TransportError):
            httpx.get(plain + "/health")


def signed_in_through_a_proxy(server, client_address):
    """Sign in through a local proxy that forwards an HTTPS client."""
    headers = {"X-Forwarded-For": client_address, "X-Forwarded-Proto": "https"}
    (link,) = LINK.findall(server.output())
    with server.client() as proxy:
        metrics = proxy.get("/metrics", headers=headers).status_code
        entered = proxy.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]}, headers=headers)
    return metrics, "; secure" in entered.headers["set-cookie"].lower()


def test_only_trusted_proxy_headers_are_used(tmp_path):
    trusting, strict = Home(tmp_path / "trusting"), Home(tmp_path / "strict")
    with strict.serve() as server:
        assert signed_in_through_a_proxy(server, "203.0.113.9") == (401, False)
    with trusting.serve("--trusted-proxies", "127.0.0.1") as server:
        assert signed_in_through_a_proxy(server, "203.0.113.9") == (401, True)
        door = local_auth.read(trusting.data)
        with server.client() as proxy:
            # The first address is forged by the client, and the proxy has appended the client's real address.
            forged = {"X-Forwarded-For": "127.0.0.1, 203.0.113.9", "Authorization": f"Local {door.secret}"}
            assert proxy.get("/metrics", headers=forged).status_code == 401
            assert proxy.get("/v1/accounts", headers=forged).status_code == 401


def test_sign_in_link_uses_public_address(home):
    home.add("ada@example.org")
    with home.serve("--origin", "https://docs.example.org") as server:
        assert home.ok("user", "link", "ada@example.org").out.startswith(
            "https://docs.example.org/v1/sign-in?link="
        )
        assert "no proxy is trusted" in server.output()
    with home.serve("--origin", "https://docs.example.org", "--trusted-proxies", "127.0.0.1") as server:
        assert "no proxy is trusted" not in server.output()
    with home.serve() as server:
        assert home.ok("user", "link", "ada@example.org").out.startswith(server.url)


def test_server_stop_ends_streams_and_finishes_uploads(home):
    acknowledged = []
    ended = threading.Event()

    def listen(url, token):
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            with client.stream("GET", "/v1/sync/stream") as stream:
                started.set()
                for _ in stream.iter_bytes():
                    pass
            ended.set()

    def send(url, token):
        text = "\n\n".join(f"Paragraph {n} of a long report about the harbour." for n in range(5_000))
        with server.client(token) as client, contextlib.suppress(httpx.TransportError):
            for number in range(100):
                sending.set()
                answer = client.post(
                    "/v1/documents",
                    files={"file": (f"{number}.txt", f"{number} {text}".encode())},
                    data={"sessionId": "s1"},
                )
                if answer.status_code != 201:
                    return
                acknowledged.append(answer.json()["document"]["id"])

    with home.serve() as server:
        home.add("ada@example.org")
        token = home.token("ada@example.org")
        started, sending = threading.Event(), threading.Event()
        threads = [threading.Thread(target=work, args=(server.url, token)) for work in (listen, send)]
        for thread in threads:
            thread.start()
        assert started.wait(30) and sending.wait(30)
        while len(acknowledged) < 2:
            time.sleep(0.02)
        code, took = server.end()
        for thread in threads:
            thread.join(30)
        assert took < STOP_S, server.output()
        assert ended.is_set(), "the stream must end without a connection error"
        assert "Traceback" not in server.output()
        assert not list(home.data.rglob("*.wal")), "a clean stop must leave no write-ahead log"
    with home.serve() as server, server.client(token) as ada:
        assert len(acknowledged) >= 2 and set(acknowledged) <= live(ada, "documents").keys()
        assert code == 0, "a requested stop must exit with 0"


def test_server_log_is_json_without_content_or_secrets(home):
    canary = "Zanzibarquokka"
    with home.serve() as server:
        (link,) = LINK.findall(server.output())
        home.add("ada@example.org")
        token = home.token("ada@example.org")
        with server.client(token) as ada:
            upload(ada, f"{canary}.txt", f"{canary} pays the rent on the first of May.")
            found = ada.post("/v1/search", json={"query": f"{canary} rent", "sessionId": "s1"})
            assert found.json()["results"], "the test needs a search that finds the canary"
            bad = {"file": (f"{canary}.pdf", f"%PDF-1.7\n{canary}".encode())}
            assert ada.post("/v1/documents", files=bad).status_code == 422
            assert ada.get(f"/v1/{canary}?q={canary}").status_code == 404
            assert ada.get("/v1/documents/lookup", params={"name": canary}).status_code == 200
            assert ada.post("/v1/search", content=f'{{"query": "{canary}'.encode()).status_code == 400
            assert ada.post("/v1/sync/facts/0/push", json=[{"newDocumentState": {"id": canary}}]).is_success
            wrong = {"email": "ada@example.org", "password": f"{canary} password"}
            assert ada.post("/v1/sign-in", json=wrong).status_code == 401
        secrets = [token, local_auth.read(home.data).secret]
        server.end()
        output = server.output().replace(link, "")
        assert [line for line in output.splitlines() if canary.lower() in line.lower()] == []
        assert not any(secret in output for secret in secrets)
        assert "ada@example.org" not in output
        greeting = ("Vademecum listens", "Data:", "Assistant:", "Sign in")
        written = [line for line in output.splitlines() if not line.startswith(greeting)]
        assert written and [line for line in written if not line.startswith('{"event"')] == []
        assert all({"event", "level", "timestamp"} <= json.loads(line).keys() for line in written)


def errors_of(server):
    return [line for line in server.output().splitlines() if '"level": "error"' in line]


def test_logged_error_contains_no_user_content(home):
    """A file replaces the folder of job markers, so writing a marker fails and the server logs the error."""
    canary = "Zanzibarquokka"
    with home.serve() as server:
        home.add("ada@example.org")
        with server.client(home.token("ada@example.org")) as ada:
            marks = home.data / "jobs" / "index"
            shutil.rmtree(marks, ignore_errors=True)
            marks.write_text("a file where a folder belongs")
            upload(ada, f"{canary}.txt", f"{canary} pays the gas on the second of May.")
            ada.post("/v1/search", json={"query": f"{canary} gas", "sessionId": "s1"})
            soon_outside(lambda: errors_of(server))
        server.end()
    assert [line[:200] for line in errors_of(server) if canary.lower() in line.lower()] == []


def foreign_sockets(pid):
    """Return the lines of /proc/net about connections of the process to other machines."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # The process has closed the descriptor since it was listed.
        with contextlib.suppress(FileNotFoundError):
            inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            remote = fields[2].partition(":")[0]
            is_local = remote.endswith("0100007F") or (table.startswith("tcp") and set(remote) == {"0"})
            if fields[9] in inodes and not is_local:
                found.append(line)
    return found


def test_server_with_a_model_contacts_no_other_host(tmp_path, monkeypatch):
    """onnxruntime sends telemetry unless the server disables that before the import."""
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    home = Home(tmp_path / "data", {"models": str(small_model(tmp_path / "models"))})
    home.add_with_document("ada@example.org")
    with home.serve(in_new_process=True) as server:
        answer = home.ok(
            "search", "apple trees", "--user", "ada@example.org", "--session", "s1", "--json"
        ).json
        assert answer["scope"]["mode"] == "hybrid" and answer["results"], (
            "the test needs a search that uses the model"
        )
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert foreign_sockets(server.process.pid) == []
            time.sleep(0.02)
    assert list((tmp_path / "home").rglob("*")) == []
