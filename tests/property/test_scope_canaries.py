"""After random actions on memory, no read returns text of another scope or of another person.

Each text contains its own canary. `SEED` repeats a run, and `SOAK=1` uses a thousand people.
"""

import asyncio
import os
import time
from collections import Counter
from pathlib import Path
from random import Random

from property.canary_actions import STEPS, create_memory, record_extracted_rows
from property.canary_reads import read_everywhere
from property.expected_memory import ExpectedMemory, canaries_in
from server.in_process_server import Harness, run
from server.memory.extracting_server import serve_with_jobs

USERS = 1_000 if os.environ.get("SOAK") else 3
BATCHES = 2
STEPS_A_BATCH = 5
LISTENERS = 3


async def settle(h: Harness, memory: ExpectedMemory) -> None:
    """Wait for the extraction, and record the IDs of the extracted rows in the expected memory."""
    await h.services.background_jobs.jobs["work"].drain(memory.person.id)
    await record_extracted_rows(memory)


def test_no_read_returns_text_of_another_scope(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng = Random(seed)

    async def scenario() -> None:
        heard: Counter[str] = Counter()
        async with serve_with_jobs(tmp_path, search_wait_s=60) as (h, model):
            people = [await create_memory(h, number, model) for number in range(USERS)]
            for memory in people:
                await settle(h, memory)
            streams = [
                asyncio.create_task(memory.person.call("GET", "/v1/sync/stream"))
                for memory in people[:LISTENERS]
            ]
            await h.streams(len(streams))
            for _ in range(BATCHES):
                for memory in people:
                    for _ in range(STEPS_A_BATCH):
                        step = rng.choices(list(STEPS), list(STEPS.values()))[0]
                        await step(memory, rng, model)
                        await settle(h, memory)
                for memory in rng.sample(people, 1):
                    heard += await read_everywhere(memory, rng)
            for memory in people:
                heard += await read_everywhere(memory, rng)
            for memory, stream in zip(people, streams, strict=False):
                h.services.hub.close_user(memory.person.id)
                told = canaries_in((await asyncio.wait_for(stream, 60)).text)
                assert told and {canary.split("-")[1] for canary in told} == {f"u{memory.number}"}
        assert all(heard.values()), f"a way to read returned no canary at all: {heard}"

    run(scenario)
