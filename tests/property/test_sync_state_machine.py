"""Three devices, a second user, and a model: whatever happens, the server answers and holds what the model says.

`reference_model.py` is written from the design and shares no code with the server. After each step the answer, the rows that
took a `seq`, and what is pulled are compared with it; at the end all devices must hold the same. Each step makes its
choices from a seed of its own, so a failing run is cut down to the few steps that fail too, and those are named.

Not in the model: STORAGE_LIMIT (bytes), and documents that are `pending`, which the server settles by itself.
"""

import os
import random
import time
from contextlib import closing
from dataclasses import asdict

import pytest

from property.random_rows import Chance
from property.sync_world import BOUNDS, World
from server.threaded_server import Threaded
from vademecum.model.sync.quotas import Limits

SOAK = bool(os.environ.get("SOAK"))
SEEDS, STEPS = (range(60), 400) if SOAK else (range(3), 100)
SHRINKING_S = 60
SETTINGS = {
    "tiers": {"JIGGA": Limits(**asdict(BOUNDS))},
    "erase_delay_s": 0.2 if SOAK else 3600,  # in the long run files are rewritten meanwhile
    "attached_max": 1,
}
WEIGHTS = {
    World.edit: 30,
    World.anything: 30,
    World.send_what_was_written_offline: 12,
    World.repeat_what_got_no_answer: 5,
    World.pull: 8,
    World.pull_one_page_and_lose_touch: 8,
    World.delete: 3,
    World.delete_by_route: 1,
    World.forget_everything: 0.5,
    World.the_other_looks: 3,
    World.all_meet: 0.5,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with closing(Threaded(tmp_path_factory.mktemp("machine"), **SETTINGS)) as one:
        yield one


@pytest.mark.parametrize("seed", SEEDS)
def test_the_server_does_what_the_model_says_and_all_devices_meet(served, seed):
    chance = random.Random(seed)
    acts = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS)
    plan = [(act, chance.randrange(2**32)) for act in acts]
    failure = play(served, plan)
    if failure is not None:
        short = shrunk(served, plan)
        names = "\n".join(f"    {act.__name__} {number}" for act, number in short)
        again = play(served, short)
        kind = "so do these steps alone" if again is not None else "but not when played again (a race?)"
        raise AssertionError(f"seed {seed} fails, {kind}:\n{names}") from again or failure


def play(served, plan):
    """The failure of these steps, each with the seed of its own choices, or None."""
    try:
        world = World(served)
        for act, seed in plan:
            act(world, Chance(seed))
        world.all_meet()
    except Exception as failure:
        return failure
    return None


def shrunk(served, plan):
    """A shorter plan that fails too, as far as time allows: halves are left out, then quarters, then single steps."""
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
