"""The server, but nothing follows a turn: no recall index, so no vectors. Without an assistant nothing is extracted."""

from __future__ import annotations

from vademecum.cli.main import main
from vademecum.services import recall_index

if __name__ == "__main__":
    recall_index.is_news = lambda changes: False
    main()
