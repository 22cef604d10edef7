"""Random actions: writes and pulls of three devices, deletions by HTTP routes, and reads by a second user."""

from property.checked_server import Checked
from property.random_rows import IDS, Maker, canaries
from property.reference_model import Limits, unmarked
from property.rows import dead
from property.sync_device import Device
from property.sync_wire import COLLECTIONS, send

BOUNDS = Limits(documents=3, file_bytes=100, row_bytes=3000, authoritative=False)


class World:
    """The state of one run: a user with three devices, a second user, and the reference model."""

    def __init__(self, served) -> None:
        self.served = served
        self.ada = served.ask(served.harness.person())
        self.bob = served.ask(served.harness.person())
        self.checked = Checked(served, self.ada, BOUNDS)
        self.model = self.checked.model
        self.maker = Maker(self.model)
        self.devices = [Device(), Device(), Device()]
        self.erased = set()  # keys of waiting rows that the server has forgotten, but devices may still have
        self.canaries = {}
        for name, row in canaries(self.bob.id).items():
            served.ask(send(self.bob, name, (row, None)))
            self.canaries[name] = served.ask(self.bob.pull(name))

    # -- actions of devices ---------------------------------------------------------------------------------

    def edit(self, chance):
        device = chance.pick(self.devices)
        for _ in range(chance.pick([1, 1, 2, 3])):
            key = self._key(chance, device)
            row = device.rows.get(key)
            if row is None or row["_deleted"]:
                device.write(key, self.maker.new_row(chance, *key))
            else:
                row = row if chance.one_in(2) else unmarked(row)
                device.write(key, self.maker.edited(chance, key[0], row))
        if not chance.one_in(3):
            self._send(chance, device, key[0])

    def delete(self, chance):
        device = chance.pick(self.devices)
        here = [key for key, row in device.rows.items() if not row["_deleted"]]
        if here:
            key = chance.pick(here)
            device.write(key, dead(device.rows[key]))
            if chance.one_in(2):
                self._send(chance, device, key[0])

    def push_offline_writes(self, chance):
        device = chance.pick(self.devices)
        if device.unsent:
            self._send(chance, device, chance.pick(device.unsent)[0])

    def repeat_unanswered_push(self, chance):
        for device in chance.mixed(self.devices):
            if device.lost is not None:
                collection, batch = device.lost
                device.lost = None
                device.apply_answers(collection, batch, self.checked.push(collection, batch))
                return

    def pull(self, chance):
        device, limit = chance.pick(self.devices), chance.pick([2, 3, 1000])
        for collection in COLLECTIONS:
            self.checked.read(device, collection, limit)

    def pull_interrupted(self, chance):
        self.checked.read(chance.pick(self.devices), chance.pick(COLLECTIONS), 1, pages=1)

    # -- other actions --------------------------------------------------------------------------------------

    def push_inconsistent_rows(self, chance):
        """Push outdated or inconsistent rows and assumed states, as an outdated or hostile client may do."""
        collection = chance.pick([*COLLECTIONS, "documents", "memories"])  # these two merge most
        pairs = [self._any_pair(chance, collection) for _ in range(chance.pick([1, 2, 3, 4]))]
        self.checked.push(collection, pairs)

    def delete_by_route(self, chance):
        collection = chance.pick(["documents", "sessions", "projects"])
        row_id = chance.pick(IDS[collection])
        with_sessions = collection == "projects" and chance.one_in(2)
        query = "?sessions=delete" if with_sessions else ""
        answer = self.served.ask(self.ada.call("DELETE", f"/v1/{collection}/{row_id}{query}"))
        live = self.model.row_state((collection, row_id)) == "live"
        assert answer.status_code == (200 if live else 404), answer.text
        if live:
            for (name, i), stored in list(self.model.rows.items()):
                if with_sessions and name == "sessions" and stored.row.get("projectId") == row_id:
                    self.model.delete((name, i))
            self.model.delete((collection, row_id))
        self.checked.check_changes()

    def forget_everything(self, _):
        self.erased |= {key for key, stored in self.model.rows.items() if stored.waiting}
        body = {"confirm": "forget everything"}
        answer = self.served.ask(self.ada.call("POST", "/v1/forget", json=body))
        assert answer.status_code == 200, answer.text
        receipt = answer.json()
        assert receipt["leftovers"] == 0
        self.model.forget(receipt["at"])
        self.checked.check_changes()

    def read_as_second_user(self, chance):
        """Read as the second user. Only one user's file may be attached, so the first user's is detached."""
        for name in chance.some(COLLECTIONS, at_least=1, at_most=2):
            assert self.served.ask(self.bob.pull(name)) == self.canaries[name]

    def sync_all_devices(self, _=None):
        """Sync all devices, and check that their rows equal those of the server.

        Rows with an error mark and rows that the server does not show yet may differ.
        """
        for _ in range(8):
            before = self.checked.top, [dict(device.rows) for device in self.devices]
            self._sync_devices()
            if before == (self.checked.top, [device.rows for device in self.devices]):
                break
        else:
            raise AssertionError("after 8 rounds of sync, rows still change")
        self.checked.pull_all()
        for device in self.devices:
            assert not device.unsent
            self._check_device(device)
        for name in COLLECTIONS:
            assert self.served.ask(self.bob.pull(name)) == self.canaries[name]

    # -- helpers --------------------------------------------------------------------------------------------

    def _key(self, chance, device):
        here = [key for key, row in device.rows.items() if not row["_deleted"]]
        if here and not chance.one_in(3):
            return chance.pick(here)
        collection = chance.pick(COLLECTIONS)
        return collection, chance.pick(IDS[collection])

    def _any_pair(self, chance, collection):
        key = (collection, chance.pick(IDS[collection]))
        return self.maker.any_pair(chance, key, self.checked.history.get(key, []))

    def _send(self, chance, device, collection):
        batch = chance.mixed(device.batch(collection))
        answers = self.checked.push(collection, batch)
        if chance.one_in(4):
            device.lost = collection, batch
        else:
            device.apply_answers(collection, batch, answers)

    def _sync_devices(self):
        for device in self.devices:
            for collection in COLLECTIONS:
                if batch := device.batch(collection):
                    device.apply_answers(collection, batch, self.checked.push(collection, batch))
        for device in self.devices:
            for collection in COLLECTIONS:
                self.checked.read(device, collection, 1000)

    def _check_device(self, device):
        for key, row in device.rows.items():
            stored = self.model.rows.get(key)
            if "syncError" in row or (row["_deleted"] and (stored is None or stored.is_deleted)):
                continue
            alone = stored is None or stored.waiting
            assert row == stored.row if not alone else (stored is not None or key in self.erased), key
        for collection in COLLECTIONS:
            assert set(self.model.pulled(collection)) <= {i for c, i in device.rows if c == collection}
