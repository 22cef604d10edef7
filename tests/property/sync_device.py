"""A client of the sync protocol that keeps the same state as RxDB, without RxDB."""

from property.sync_wire import COLLECTIONS


class Device:
    """The state of an RxDB client: its rows, the assumed server states, unsent rows, and the pull checkpoints."""

    def __init__(self) -> None:
        self.rows = {}
        self.assumed = {}
        self.unsent = []
        self.lwt = dict.fromkeys(COLLECTIONS, 0)
        self.mirror = {name: {} for name in COLLECTIONS}  # the server's rows as pulled
        self.lost = None  # a batch whose response was lost

    def write(self, key, row) -> None:
        self.rows[key] = row
        if key not in self.unsent:
            self.unsent.append(key)

    def take(self, key, row) -> None:
        self.rows[key] = self.assumed[key] = row
        if key in self.unsent:
            self.unsent.remove(key)

    def batch(self, collection):
        """Return the rows to send. A row that was changed back is not sent, and takes the pulled state."""
        for key in [k for k in self.unsent if k[0] == collection]:
            if self.rows[key] == self.assumed.get(key):
                self.take(key, self.mirror[collection].get(key[1], self.rows[key]))
        return [(self.rows[k], self.assumed.get(k)) for k in self.unsent if k[0] == collection]

    def hear(self, collection, batch, answers) -> None:
        told = {row["id"]: row for row in answers}
        for new, _ in batch:
            key = (collection, new["id"])
            row = told.get(new["id"], new)
            if self.rows[key] == new:
                self.take(key, row)
            else:
                self.assumed[key] = row

    def read(self, collection, documents) -> None:
        for row in documents:
            key = (collection, row["id"])
            self.mirror[collection][row["id"]] = row
            if key not in self.unsent or self.rows[key] == row:
                self.take(key, row)
