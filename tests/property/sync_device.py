"""A client of the sync protocol that simulates the replication of RxDB."""

from property.sync_wire import COLLECTIONS


class Device:
    """The state of an RxDB client.

    `rows`: the local rows. `assumed`: the assumed server states of rows. `unsent`: the keys of rows to push.
    `lwt`: the pull checkpoint of each collection.
    """

    def __init__(self) -> None:
        self.rows = {}
        self.assumed = {}
        self.unsent = []
        self.lwt = dict.fromkeys(COLLECTIONS, 0)
        self.mirror = {name: {} for name in COLLECTIONS}  # the rows as last pulled from the server
        self.lost = None  # a batch whose response was lost

    def write(self, key, row) -> None:
        self.rows[key] = row
        if key not in self.unsent:
            self.unsent.append(key)

    def store(self, key, row) -> None:
        self.rows[key] = self.assumed[key] = row
        if key in self.unsent:
            self.unsent.remove(key)

    def batch(self, collection):
        """Return the rows to push, with their assumed states.

        A row that was changed back to its assumed state is not sent. It is replaced by the pulled row.
        """
        for key in [k for k in self.unsent if k[0] == collection]:
            if self.rows[key] == self.assumed.get(key):
                self.store(key, self.mirror[collection].get(key[1], self.rows[key]))
        return [(self.rows[k], self.assumed.get(k)) for k in self.unsent if k[0] == collection]

    def apply_answers(self, collection, batch, answers) -> None:
        answer_of = {row["id"]: row for row in answers}
        for new, _ in batch:
            key = (collection, new["id"])
            row = answer_of.get(new["id"], new)
            if self.rows[key] == new:
                self.store(key, row)
            else:
                self.assumed[key] = row

    def read(self, collection, documents) -> None:
        for row in documents:
            key = (collection, row["id"])
            self.mirror[collection][row["id"]] = row
            if key not in self.unsent or self.rows[key] == row:
                self.store(key, row)
