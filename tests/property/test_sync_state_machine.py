"""Run random actions of three devices and a second user, and compare the server's answers and rows with a model.

`reference_model.py` is written from the design and shares no code with the server. After each step, the answer, the rows
that got a `seq`, and the pulled rows are compared with the model. At the end, all devices must have the same rows. Each
step has its own seed, so that a failing run can be reduced to a few steps that still fail. The test prints them.

The model does not include STORAGE_LIMIT (bytes) and `pending` documents, which the server completes by itself.
"""

import os
import random
import time
from contextlib import closing
from dataclasses import asdict

import pytest

from property.random_rows import Chance
from property.sync_world import BOUNDS, World
from server.threaded_server import ThreadedServer
from vademecum.model.sync.quotas import Limits

SOAK = bool(os.environ.get("SOAK"))
SEEDS, STEPS = (range(60), 400) if SOAK else (range(3), 100)
SHRINKING_S = 60
SETTINGS = {
    "tiers": {"JIGGA": Limits(**asdict(BOUNDS))},
    "erase_delay_s": 0.2 if SOAK else 3600,  # a soak run also rewrites files during the steps
    "attached_max": 1,
}
WEIGHTS = {
    World.edit: 30,
    World.push_inconsistent_rows: 30,
    World.push_offline_writes: 12,
    World.repeat_unanswered_push: 5,
    World.pull: 8,
    World.pull_interrupted: 8,
    World.delete: 3,
    World.delete_by_route: 1,
    World.forget_everything: 0.5,
    World.read_as_second_user: 3,
    World.sync_all_devices: 0.5,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with closing(ThreadedServer(tmp_path_factory.mktemp("machine"), **SETTINGS)) as one:
        yield one


@pytest.mark.parametrize("seed", SEEDS)
def test_server_matches_reference_model_and_devices_converge(served, seed):
    chance = random.Random(seed)
    acts = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS)
    plan = [(act, chance.randrange(2**32)) for act in acts]
    failure = play(served, plan)
    if failure is not None:
        short = shrunk(served, plan)
        names = "\n".join(f"    {act.__name__} {number}" for act, number in short)
        again = play(served, short)
        kind = "and so do these steps alone" if again is not None else "but these steps alone pass (a race?)"
        raise AssertionError(f"seed {seed} fails, {kind}:\n{names}") from again or failure


def play(served, plan):
    """Run the steps, each an action and a seed, on a new world. Return the exception that they raise, or None."""
    try:
        world = World(served)
        for act, seed in plan:
            act(world, Chance(seed))
        world.sync_all_devices()
    except Exception as failure:
        return failure
    return None


def shrunk(served, plan):
    """Leave out halves, then quarters, and so on, of a plan that still fails. Stops after SHRINKING_S."""
    end = time.monotonic() + SHRINKING_S
    size = len(plan)
    while size > 1:
        size = (size + 1) // 2
        at = 0
        while at < len(plan) and time.monotonic() < end:
            fewer = plan[:at] + plan[at + size :]
            if play(served, fewer) is not None:
                plan = fewer
            else:
                at += size
    return plan
