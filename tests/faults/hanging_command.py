"""Run the command `vademecum` with reads that hang.

If the folder HANGING contains a file whose name is an account's id, the next read of that account removes the file and
then never ends. It ignores interrupts.
"""

import os
import time
from pathlib import Path

from vademecum.cli.main import main
from vademecum.engines.duckdb import cursor
from vademecum.engines.duckdb.user_store import DuckDBUserStore

HANGING = Path(os.environ["HANGING"])
read = DuckDBUserStore._read
cursor.GRACE_S = 0.2


async def hanging_read(store, segments):
    try:
        (HANGING / store.user_id).unlink()
    except FileNotFoundError:
        return await read(store, segments)

    def hang(engine):
        """Wait in a Python function that DuckDB calls, which an interrupt cannot end."""
        name = f"hang_{store.alias}"
        engine._raw.create_function(name, lambda _: time.sleep(3600), ["BIGINT"], "BIGINT")
        return engine.execute(f"SELECT {name}(1)").fetchall()

    return await store._run(hang)


DuckDBUserStore._read = hanging_read

if __name__ == "__main__":
    main()
