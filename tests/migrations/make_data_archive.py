"""Create the archive of a data folder that later versions must be able to open. Run it with the version to release:

    PYTHONPATH=server:tests python tests/migrations/make_data_archive.py TARGET.tar.gz

The folder has two accounts, "ada" and "ben". Ben's last commits are only in the write-ahead log, as after a crash.
`expected.json` contains the tokens and the rows of each synced collection.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from property.rows import day, dead, entity, episode, fact, memory, project, relationship, session, summary
from server.in_process_server import Harness, Person, serve

NOTES = (
    "The lease ends on the thirty-first of March.\n\nThe tenant gives notice three months before the end.\n\n"
)
RECIPE = "Whisk the eggs with sugar until pale.\n\nFold in the flour and bake for forty minutes.\n\n"


async def fill(h: Harness, person: Person, name: str, text: str) -> None:
    for number in range(3):
        body = text + f"Section {number} of {name}. " + "More words follow here. " * 40 * number
        answer = await person.upload(f"{name} {number}.txt", body, "s1")
        assert answer.status_code in (200, 201), answer.text
    await person.add("projects", project("p1", name=f"Project of {name}"))
    await person.add("sessions", session("s1"), session("s2", projectId="p1"), session("gone"))
    await person.add(
        "episodes",
        *(
            episode(f"e{n}", "s1", createdAt=day(n), userMessage=f"question {n}", aiResponse=f"answer {n}")
            for n in range(1, 9)
        ),
        episode("lost", "gone"),
    )
    facts = [fact(f"f{n}", key=f"user.k{n}", value=f"{name} {n}") for n in range(60)]
    await person.add("facts", *facts)
    await person.push("facts", {**facts[3], "value": "edited", "updatedAt": day(9)}, assumed=facts[3])
    await person.push("facts", dead(facts[5]), assumed=facts[5])
    await person.add("memories", memory("m1", text=f"{name} likes tea"), memory("m2", pinned=True))
    await person.add("entities", entity("n1", "p1"), entity("n2", "p1"))
    await person.add("relationships", relationship("r1", "n1", "n2"))
    await person.add("summaries", summary("u1", sessionId="s1"))
    await person.add("episodes", episode("early", "not-here-yet"))  # a waiting row, whose session is missing
    await person.push("sessions", dead(session("gone")), assumed=session("gone"))
    uploaded = {row["filename"]: key for key, row in (await person.live("documents")).items()}
    answer = await person.call("DELETE", f"/v1/documents/{uploaded[f'{name} 2.txt']}")
    assert answer.status_code == 200, answer.text
    await h.drain_jobs(person)


async def make(target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        data, copy = Path(scratch) / "running", Path(scratch) / "data"
        expected: dict[str, Any] = {}
        async with serve(data, model=True, erase_delay_s=3600) as h:
            for name, text in (("ada", NOTES), ("ben", RECIPE)):
                person = await h.person()
                await fill(h, person, name, text)
                if name == "ben":  # the last commits, which the archive has only in the log
                    await person.add("facts", fact("late", key="user.late", value="in the log"))
                    await person.upload("late.txt", "A late document about lighthouses.", "s1")
                    await h.services.background_jobs.jobs["embed"].drain(person.id)
                secret = person.client.headers["Authorization"].partition(" ")[2]
                rows = await h.pull_all(person)
                expected[name] = {"id": person.id, "secret": secret, "rows": rows}
            shutil.copytree(
                data, copy, ignore=shutil.ignore_patterns("*.lock", "lock", "*.sock", "vademecum.log*")
            )
        (copy / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
        with tarfile.open(target, "w:gz", compresslevel=9) as archive:
            archive.add(copy, arcname="data")
        for path in sorted(p for p in copy.rglob("*") if p.is_file()):
            print(path.stat().st_size, path.relative_to(copy))


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))
