"""Mutation test: if one scope condition is disabled, the tests detect a read or a change of a row outside its scope.

`SEED` repeats a run. `SOAK=1` tries every condition; otherwise one in `ONE_IN` is tried.
"""

import os
import time
from pathlib import Path
from random import Random

from property.canary_actions import connect, create_memory, move, record_extracted_rows, summarise
from property.canary_id_probes import probe_all_scopes
from property.canary_reads import read_everywhere
from property.expected_memory import ExpectedMemory
from property.scope_mutants import Mutant, mutants
from server.in_process_server import Harness, run
from server.memory.extracting_server import serve_with_jobs
from server.scripted_llm import Model

ONE_IN = 12
ALL_ROWS = 1000
ROUNDS = 6
PERSON = 1  # the seed of a person whose rows include some for each condition, which a random person may lack
# Conditions whose removal alone has no visible effect, each with the reason. Some are checked before and after a
# read, because rows may move during it. A mutant of the predicate that both checks use is detected.
SECOND_LOOKS = {
    "extract._ExtractionWriter._entities: is_within 1": "needed only for an id of another project",
    "memories.count_memories: list_keys_in_scope 1": "its route counts the memories of all projects",
    "observation_search.search_observations: is_row_in_scope 1": "recall has already checked the scope",
    "observation_search._filter_rows: list_scoped_keys 1": "recall checks the scope later",
    "observation_search._filter_rows: list_scoped_keys 2": "recall checks the scope later",
    "ingest.read_observations: is_within 1": "checked again after the read",
    "ingest.read_observations: is_within 2": "already checked before the read",
    "ingest.read_timeline: is_within 2": "already checked before the read",
    "project_merge._are_in: is_within 1": "matters only if a device linked entities of two projects",
    "recall.Recall.recall: _list_keys_in_scope 1": "each hit is checked again",
    "recall.Recall.nearest: _list_keys_in_scope 1": "runs only with an embedding model",
    "recall._filter_in_scope: is_row_in_scope 1": "each hit is checked again",
    "recall._check_hits: is_row_in_scope 1": "already checked before the search",
    "remember.Memories._find_repeated: is_within 1": "runs only with an embedding model",
    "remember.Memories.search: is_within 1": "runs only with an embedding model",
    "remember.Memories.look_up: list_keys_in_scope 1": "checked again in the transaction",
    "remember._read_current: is_within 1": "already checked before the transaction",
    "summaries.create: _check_within 1": "it tests for equality, so it refuses a wider scope",
}


async def furnished(h: Harness, model: Model) -> ExpectedMemory:
    """Create a person with sessions that moved after memories were extracted from them, and with linked entities."""
    memory, rng = await create_memory(h, PERSON, model), Random(PERSON)
    await h.services.background_jobs.jobs["work"].drain(memory.person.id)
    await record_extracted_rows(memory)
    for step in (move, connect, connect, summarise) * ROUNDS:
        await step(memory, rng, model)
    return memory


async def noticed(memory: ExpectedMemory, mutant: Mutant) -> str:
    """Return "reading" or "tampering", whichever detects the mutant, or an empty string if neither does."""
    with mutant.planted():
        for way in ("tampering", "reading") if mutant.writes else ("reading", "tampering"):
            try:
                if way == "reading":
                    await read_everywhere(memory, Random(1), ALL_ROWS)
                else:
                    await probe_all_scopes(memory)
            except AssertionError:
                return way
    return ""


def chosen(rng: Random) -> list[Mutant]:
    every = mutants()
    assert len(every) > 50 and SECOND_LOOKS.keys() <= {one.name for one in every}
    single = [one for one in every if one.name not in SECOND_LOOKS]
    return single if os.environ.get("SOAK") else rng.sample(single, len(single) // ONE_IN)


def test_removed_scope_condition_is_detected(tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")

    async def scenario() -> None:
        unnoticed = []
        async with serve_with_jobs(tmp_path, search_wait_s=60) as (h, model):
            memory = await furnished(h, model)
            await read_everywhere(memory, Random(1), ALL_ROWS)  # must pass without a mutant
            assert await probe_all_scopes(memory) > 100
            memory = await furnished(
                h, model
            )  # start over, because the tampering has deleted the superseding memories
            for mutant in chosen(Random(seed)):
                way = await noticed(memory, mutant)
                print(mutant.name, way or "is not noticed", flush=True)
                if way != "reading":  # the attempts have changed rows, so the expected memory is wrong
                    memory = await furnished(h, model)
                if not way:
                    unnoticed.append(mutant.name)
        assert unnoticed == []

    run(scenario)
