"""Measure how much one busy account slows down other accounts of the same server.

Three people each repeat a push, a pull, a search and a question. They are measured twice in one run: first while no
other account uses the server, then while a fourth account runs 40 parallel pushes, 10 uploads of PDFs with 100 pages, 5
exports and 10 long questions. All accounts have the default rate limits, and the busy account respects Retry-After.

The goal: while the server is busy, each operation takes at most 3 times (median) and 6 times (95th percentile) as long
as on the idle server, and no request of the three people fails. The exit status is 1 if the goal is not met.

The language model is a script on the same machine that replies at once, so a question measures only the server's own
time until the first token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from measure import percentile

ROOT = Path(__file__).resolve().parent.parent
OPERATIONS = ("push", "pull", "search", "first token")
GOALS = {0.5: 3.0, 0.95: 6.0}
PUSHES, UPLOADS, EXPORTS, QUESTIONS = 40, 10, 5, 10
PAGES = 100
ROWS = 100  # number of rows in each push of the busy account
ROW_BYTES = 4_000
PAUSE_S = 0.6  # interval between a person's rounds: 100 searches per minute, below the rate limit of 120
ASK_EVERY = 6  # rounds between a person's questions: 17 questions per minute, below the rate limit of 20
WORDS = [
    "lease",
    "repair",
    "landlord",
    "tenant",
    "notice",
    "deposit",
    "window",
    "kitchen",
    "heating",
    "payment",
    "month",
    "contract",
    "insurance",
    "claim",
    "engine",
    "report",
    "damage",
    "estimate",
    "witness",
    "signature",
    "garden",
    "bicycle",
    "station",
]


def note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def uuid7() -> str:
    value = bytearray(int(time.time() * 1000).to_bytes(6, "big") + os.urandom(10))
    value[6] = 0x70 | value[6] & 15
    value[8] = 0x80 | value[8] & 63
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def row(row_id: str, **fields: Any) -> dict[str, Any]:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    return {"id": row_id, "createdAt": now, "updatedAt": now, "_deleted": False, **fields}


def facts(count: int, size: int) -> list[dict[str, Any]]:
    fixed = {"key": "k", "value": "v" * size, "sourceRemoved": False, "confidence": 1, "confirmed": True}
    return [{"newDocumentState": row(uuid7(), **fixed)} for _ in range(count)]


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def pdf(rng: random.Random, pages: int) -> bytes:
    """Return a PDF with `pages` pages of 40 lines."""
    font = 3 + 2 * pages
    kids = " ".join(f"{3 + 2 * page} 0 R" for page in range(pages))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {pages}/Kids[{kids}]>>".encode()]
    for page in range(pages):
        lines = "".join(f"({sentence(rng, 10)}) Tj 0 -18 Td " for _ in range(40))
        content = f"BT /F 10 Tf 30 800 Td {lines}ET".encode()
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {4 + 2 * page} 0 R"
            f"/Resources<</Font<</F {font} 0 R>>>>>>".encode()
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj" % number + content + b"endobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(out)


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    url: str
    secret: str

    @classmethod
    def start(cls, folder: Path, models: Path, assistant: str) -> Server:
        """Start a server with default limits. It trusts X-Forwarded-For, so that each account has its own address."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("VADEMECUM_")}
        env |= {
            "VADEMECUM_ASSISTANT_URL": assistant,
            "VADEMECUM_ASSISTANT_MODEL": "scripted",
            "VADEMECUM_EXTRACTION_DAILY": "0",
            "VADEMECUM_TRUSTED_PROXIES": "127.0.0.1",
        }
        command = [os.environ.get("VADEMECUM_COMMAND") or str(ROOT / ".venv" / "bin" / "vademecum")]
        arguments = ["serve", "--data", str(folder), "--models", str(models), "--port", "0"]
        with (folder.parent / "server.log").open("wb") as log:
            process = subprocess.Popen([*command, *arguments], env=env, stdout=log, stderr=log)
        door = folder / "server.json"
        for _ in range(600):
            if process.poll() is not None:
                raise SystemExit((folder.parent / "server.log").read_text()[-2000:])
            with suppress(OSError, ValueError):
                found = json.loads(door.read_bytes())
                return cls(process, found["url"], found["secret"])
            time.sleep(0.1)
        raise SystemExit("The server did not start within 60 s.")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise SystemExit("The server did not stop within 60 s.") from None


@dataclass
class Person:
    headers: dict[str, str]
    session: str = ""
    lwt: int = 0
    epoch: str = ""
    rounds: int = 0


async def sign_up(client: httpx.AsyncClient, server: Server, number: int) -> Person:
    email = f"person{number}@example.org"
    local = {"Authorization": f"Local {server.secret}"}
    made = await client.post("/v1/accounts", json={"email": email, "tier": "JIGGA"}, headers=local)
    made.raise_for_status()
    token = await client.post(
        "/v1/tokens", json={"name": "bench"}, headers=local | {"X-Vademecum-User": email}
    )
    token.raise_for_status()
    headers = {"Authorization": f"Bearer {token.json()['secret']}", "X-Forwarded-For": f"192.0.2.{number}"}
    person = Person(headers, session=uuid7())
    session = {
        "newDocumentState": row(
            person.session, title="bench", mode="analysis", documentScope="chosen", memory="on"
        )
    }
    sent = await client.post("/v1/sync/sessions/1/push", json=[session], headers=headers)
    sent.raise_for_status()
    rng = random.Random(number)
    text = "\n\n".join(sentence(rng, 60) for _ in range(40)).encode()
    form = {"files": {"file": ("notes.txt", text)}, "data": {"sessionId": person.session}}
    (await client.post("/v1/documents", headers=headers, **form)).raise_for_status()
    return person


@dataclass
class Figures:
    """The durations of each operation in seconds, and a count of each kind of failure."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: Counter[str] = field(default_factory=Counter)


async def push(client: httpx.AsyncClient, person: Person) -> None:
    answer = await client.post("/v1/sync/facts/0/push", json=facts(10, 300), headers=person.headers)
    answer.raise_for_status()
    if answer.json():
        raise ValueError("rows were not accepted")


async def pull(client: httpx.AsyncClient, person: Person) -> None:
    asked = {"lwt": person.lwt, "id": person.epoch, "limit": 100}
    answer = await client.get("/v1/sync/facts/0/pull", params=asked, headers=person.headers)
    answer.raise_for_status()
    checkpoint = answer.json()["checkpoint"]
    person.lwt, person.epoch = checkpoint["lwt"], checkpoint["id"]


async def search(client: httpx.AsyncClient, person: Person) -> None:
    asked = {"query": f"who pays for the {random.choice(WORDS)}?", "sessionId": person.session, "k": 10}
    answer = await client.post("/v1/search", json=asked, headers=person.headers)
    answer.raise_for_status()
    if not answer.json()["results"]:
        raise ValueError("nothing was found")


async def first_token(client: httpx.AsyncClient, person: Person) -> None:
    asked = {"query": f"Who pays for the {random.choice(WORDS)}?", "sessionId": person.session}
    async with client.stream("POST", "/v1/answer", json=asked, headers=person.headers) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if line == "event: delta":
                return
    raise ValueError("there was no answer")


WORK: dict[str, Callable[[httpx.AsyncClient, Person], Awaitable[None]]] = {
    "push": push,
    "pull": pull,
    "search": search,
    "first token": first_token,
}


async def live(client: httpx.AsyncClient, person: Person, figures: Figures, until: float) -> None:
    await asyncio.sleep(random.random() * PAUSE_S)
    while time.monotonic() < until:
        person.rounds += 1
        began = time.monotonic()
        for name in OPERATIONS:
            if name == "first token" and person.rounds % ASK_EVERY:
                continue
            start = time.perf_counter()
            try:
                await WORK[name](client, person)
                figures.times[name].append(time.perf_counter() - start)
            except httpx.HTTPStatusError as error:
                figures.failures[f"{name} {error.response.status_code}"] += 1
            except (httpx.TransportError, ValueError) as error:
                figures.failures[f"{name} {type(error).__name__} {error}"] += 1
        await asyncio.sleep(max(0, PAUSE_S - (time.monotonic() - began)))


async def measure(client: httpx.AsyncClient, people: list[Person], seconds: float) -> Figures:
    figures, until = Figures(), time.monotonic() + seconds
    await asyncio.gather(*(live(client, person, figures, until) for person in people))
    return figures


async def settle(client: httpx.AsyncClient, server: Server) -> None:
    """Wait until the background jobs for the uploaded data are done."""
    local = {"Authorization": f"Local {server.secret}"}
    for _ in range(600):
        metrics = (await client.get("/metrics", headers=local)).text.splitlines()
        jobs = [line for line in metrics if line.startswith("vademecum_jobs_")]
        names = ("embed", "index", "recall")
        if all(float(line.split()[1]) == 0 for line in jobs if any(f"_{name}" in line for name in names)):
            return
        await asyncio.sleep(0.2)


# -- the busy account, in a separate process -----------------------------------------------------------------------


async def repeat(send: Callable[[], Awaitable[httpx.Response]], name: str, heard: Counter[str]) -> None:
    while True:
        try:
            answer = await send()
            heard[f"{name} {answer.status_code}"] += 1
            if answer.status_code in (429, 503):
                await asyncio.sleep(float(answer.headers.get("retry-after", 1)) + random.random())
        except httpx.TransportError as error:
            heard[f"{name} {type(error).__name__}"] += 1


async def misuse(url: str, person: Person, seconds: float, which: set[str]) -> Counter[str]:
    rng = random.Random(99)
    heard: Counter[str] = Counter()
    files = [pdf(rng, PAGES) for _ in range(UPLOADS)]
    question = sentence(rng, 1200)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=120, headers=person.headers, limits=limits) as client:

        def push_again() -> Awaitable[httpx.Response]:
            json_type = {"Content-Type": "application/json"}
            body = json.dumps(facts(ROWS, ROW_BYTES)).encode()
            return client.post("/v1/sync/facts/0/push", content=body, headers=json_type)

        def upload() -> Awaitable[httpx.Response]:
            content = rng.choice(files) + b"\n%" + uuid7().encode()
            form = {"files": {"file": (f"{uuid7()}.pdf", content)}, "data": {"sessionId": person.session}}
            return client.post("/v1/documents", **form)

        def export() -> Awaitable[httpx.Response]:
            return client.get("/v1/export")

        def ask() -> Awaitable[httpx.Response]:
            return client.post("/v1/answer", json={"query": question, "sessionId": person.session})

        plan = (("push", push_again, PUSHES), ("upload", upload, UPLOADS), ("export", export, EXPORTS),
                ("question", ask, QUESTIONS))  # fmt: skip
        tasks = [
            asyncio.create_task(repeat(send, name, heard))
            for name, send, count in plan
            if name in which
            for _ in range(count)
        ]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return heard


def busy(url: str, person: Person, seconds: float, which: set[str], answer: Any) -> None:
    os.nice(10)  # yield to the server, because a remote client would not use its cores
    answer.put(asyncio.run(misuse(url, person, seconds, which)))


# -- the report ----------------------------------------------------------------------------------------------------


def report(idle: Figures, loaded: Figures, heard: Counter[str]) -> bool:
    """Print the figures and return whether the goal is met."""
    met = not idle.failures and not loaded.failures
    print("                 idle p50  busy p50  ratio    idle p95  busy p95  ratio        n")
    for name in OPERATIONS:
        before, after = idle.times[name], loaded.times[name]
        if not before or not after:
            met = False
            print(f"{name:14} no figures: {len(before)} idle, {len(after)} busy")
            continue
        cells = []
        for share, goal in GOALS.items():
            a, b = percentile(before, share), percentile(after, share)
            met = met and b <= goal * a
            cells.append(f"{a * 1000:7.1f}  {b * 1000:8.1f} {b / a:6.1f}{' ' if b <= goal * a else '!'}")
        print(f"{name:14} {'   '.join(cells)} {len(before):4} {len(after):4}")
    for label, figures in (("idle", idle), ("busy", loaded)):
        if figures.failures:
            print(f"failures while {label}: {dict(figures.failures)}")
    print(f"the busy account got: {dict(sorted(heard.items()))}")
    print("The goal is met." if met else "The goal is not met (! marks what is too slow).")
    return met


async def run(given: argparse.Namespace, server: Server) -> bool:
    context = multiprocessing.get_context("spawn")
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
        people = [await sign_up(client, server, number) for number in range(1, 5)]
        *others, one = people
        await settle(client, server)
        note(f"measuring the idle server for {given.idle_seconds:g} s")
        await measure(client, others, 3)  # warm up, without keeping the figures
        idle = await measure(client, others, given.idle_seconds)
        answer = context.Queue()
        arguments = (server.url, one, given.seconds + 2, set(given.load.split(",")), answer)
        process = context.Process(target=busy, args=arguments)
        process.start()
        note(f"measuring the busy server for {given.seconds:g} s")
        await asyncio.sleep(2)  # wait until the process has imported its modules and built its PDFs
        loaded = await measure(client, others, given.seconds)
        heard = await asyncio.to_thread(answer.get)
        process.join()
        return report(idle, loaded, heard)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="how long the server is busy (default 60)")
    parser.add_argument(
        "--idle-seconds", type=float, default=30, help="how long the idle server is measured (default 30)"
    )
    parser.add_argument(
        "--load",
        default="push,upload,export,question",
        help="what the busy account does, to find out which part costs others most (default all four)",
    )
    parser.add_argument(
        "--models",
        type=Path,
        default=ROOT / ".cache" / "models",
        help="folder with the embedding models (default .cache/models)",
    )
    return parser.parse_args()


def main() -> None:
    given = arguments()
    script = [sys.executable, "-m", "server.scripted_llm"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    model = subprocess.Popen(script, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert model.stdout is not None
        url = model.stdout.readline().strip()
        with tempfile.TemporaryDirectory(prefix="fairness-") as folder:
            data = Path(folder) / "data"
            data.mkdir()
            server = Server.start(data, given.models, url)
            try:
                met = asyncio.run(run(given, server))
            finally:
                server.stop()
    finally:
        model.terminate()
        model.wait()
    sys.exit(not met)


if __name__ == "__main__":
    main()
