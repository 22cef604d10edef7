"""Plant each bug in a copy of the code, and check that its test fails, which proves that the test detects the bug.

    python tests/plant.py               # every bug of tests/planted_bugs.toml
    python tests/plant.py ID...         # only these

The copy contains the tracked and the new files of this checkout. Each test must pass on the clean copy and fail
by assertion with the bug; an import or syntax error does not count. Exit with 1 if a bug is not detected.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parent.parent
BUGS = ROOT / "tests" / "planted_bugs.toml"
LINKED = (".venv", "node_modules", ".cache")  # linked into the copy: ignored by git, and tests only read them
BUILT_APP = "server/vademecum/web"
TIMEOUT_S = 900
BY_ASSERTION = re.compile(r"^(AssertionError|assert |Failed: DID NOT RAISE)")


@dataclass(frozen=True)
class Bug:
    """`test` is `path::test_name` (pytest) or `path > beginning of the title` (Vitest)."""

    id: str
    what: str
    file: str
    old: str
    new: str
    test: str


@dataclass(frozen=True)
class Outcome:
    """The result of a test run: the number of passed tests and the first line of each failure message."""

    passed: int
    failures: list[str]
    seconds: float


def read_bugs() -> list[Bug]:
    return [Bug(**entry) for entry in tomllib.loads(BUGS.read_text(encoding="utf-8"))["bug"]]


def copy_checkout(target: Path) -> None:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    for name in LINKED:
        (target / name).symlink_to(ROOT / name)
    if (ROOT / BUILT_APP).is_dir():
        shutil.copytree(ROOT / BUILT_APP, target / BUILT_APP)


def run(command: list[str], copy: Path) -> str:
    """Run a command in the copy and return its output. Raises TimeoutExpired after killing its process group."""
    environment = (
        os.environ
        | {
            "PYTHONPATH": f"{copy / 'server'}",  # import from the copy, not from the checkout that the environment names
            "PYTHONDONTWRITEBYTECODE": "1",
            "HF_HUB_OFFLINE": "1",
        }
    )
    with subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            return process.communicate(timeout=TIMEOUT_S)[0]
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def run_pytest(test: str, copy: Path) -> Outcome:
    report = copy / "report.xml"
    report.unlink(missing_ok=True)
    began = monotonic()
    output = run(
        [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", test],
        copy,
    )
    if not report.exists():
        return Outcome(0, [f"no report: {output[-500:]}"], monotonic() - began)
    cases = ElementTree.parse(report).getroot().iter("testcase")
    failures, passed = [], 0
    for case in cases:
        problems = [element for element in case if element.tag in ("failure", "error")]
        passed += not problems and case.find("skipped") is None
        failures += [problem.get("message", "").split("\n")[0] for problem in problems]
    return Outcome(passed, failures, monotonic() - began)


def run_vitest(test: str, copy: Path) -> Outcome:
    path, title = test.split(" > ", 1)
    report = copy / "report.json"
    report.unlink(missing_ok=True)
    began = monotonic()
    if path.startswith("tests/e2e/"):  # these tests use the built app, so build it from the copy
        run(["npm", "run", "--silent", "build"], copy)
    output = run(
        ["npx", "vitest", "run", path, "-t", re.escape(title), "--reporter=json", f"--outputFile={report}"],
        copy,
    )
    if not report.exists():
        return Outcome(0, [f"no report: {output[-500:]}"], monotonic() - began)
    results = json.loads(report.read_text(encoding="utf-8"))["testResults"]
    cases = [case for file in results for case in file["assertionResults"]]
    failures = [case["failureMessages"][0].split("\n")[0] for case in cases if case["status"] == "failed"]
    if not failures:
        failures = [file["message"].split("\n")[0] for file in results if file["status"] == "failed"]
    return Outcome(sum(case["status"] == "passed" for case in cases), failures, monotonic() - began)


def run_test(test: str, copy: Path) -> Outcome:
    return run_pytest(test, copy) if "::" in test else run_vitest(test, copy)


def plant(bug: Bug, copy: Path) -> Outcome:
    """Run the bug's test with the bug planted, then restore the file."""
    path = copy / bug.file
    clean = path.read_text(encoding="utf-8")
    if clean.count(bug.old) != 1:
        return Outcome(0, [f"`old` occurs {clean.count(bug.old)} times in {bug.file}"], 0)
    path.write_text(clean.replace(bug.old, bug.new), encoding="utf-8")
    try:
        return run_test(bug.test, copy)
    except subprocess.TimeoutExpired:
        return Outcome(0, [f"timed out after {TIMEOUT_S} s"], TIMEOUT_S)
    finally:
        path.write_text(clean, encoding="utf-8")


def verdict(clean: Outcome, planted: Outcome) -> str:
    if clean.failures or not clean.passed:
        return "UNUSABLE"  # the test does not pass without the bug
    if not planted.failures:
        return "GREEN"
    return "red" if any(map(BY_ASSERTION.match, planted.failures)) else "ERROR"


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant bugs and check that their tests fail.")
    parser.add_argument("ids", nargs="*", metavar="ID")
    ids = parser.parse_args().ids
    bugs = [bug for bug in read_bugs() if not ids or bug.id in ids]
    undetected = 0
    clean: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder)
        copy_checkout(copy)
        for bug in bugs:
            if bug.test not in clean:
                clean[bug.test] = run_test(bug.test, copy)
            planted = plant(bug, copy)
            result = verdict(clean[bug.test], planted)
            undetected += result != "red"
            message = (planted.failures or clean[bug.test].failures or [""])[0][:110]
            print(f"{result:8} {bug.id:34} {planted.seconds:5.0f} s  {message}", flush=True)
    print(f"{len(bugs) - undetected} of {len(bugs)} bugs detected")
    return 1 if undetected or not bugs else 0


if __name__ == "__main__":
    sys.exit(main())
