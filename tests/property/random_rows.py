"""Random rows as devices write them. Few IDs are used, so that writes conflict, and some values must be refused."""

import random

from property import rows as make

SESSIONS, PROJECTS, DOCUMENTS = ["s1", "s2", "s3"], ["p1", "p2"], ["d1", "d2", "d3", "d4", "d5"]
ENTITIES, MEMORIES = ["n1", "n2", "n3"], ["m1", "m2", "m3"]
IDS = {
    "documents": DOCUMENTS,
    "vectorEmbeddings": ["d1.0", "d1.1", "d2.0", "d3.0"],
    "projects": PROJECTS,
    "sessions": SESSIONS,
    "episodes": ["e1", "e2", "e3"],
    "facts": ["f1", "f2", "f3"],
    "memories": MEMORIES,
    "entities": ENTITIES,
    "relationships": ["r1", "r2", "r3"],
    "summaries": ["u1", "u2", "u3"],
}
ABSENT = object()  # the edit removes the field
TEXT = object()  # the edit sets a new unique text
TOGGLE = object()  # the edit adds or removes an id
CHANGES = {  # the values that an edit may set, some of which the server must refuse
    "documents": {
        "activeSessions": [TOGGLE],
        "accessCount": [0, 5],
        "filename": [TEXT],
        "size": [1, 2, 3, 1000, -1],
        "contentHash": ["1" * 64, "2" * 64],
        "status": [
            "ready",
            "failed",
        ],  # without `pending`, because the server may complete such documents at any time
        "statusDetail": [ABSENT, TEXT],
        "pageCount": [ABSENT, 1, 2],
        "lastAccessedAt": [make.day(n) for n in range(1, 9)],
        "originSessionId": SESSIONS,
        "original": ["stored"],
        "fileRevision": [2, 3],
        "userId": ["somebody"],
    },
    "vectorEmbeddings": {"model": [TEXT], "embedding": [None]},
    "projects": {"name": [TEXT, TEXT, "x" * 256], "description": [TEXT, ABSENT], "documentIds": [TOGGLE]},
    "sessions": {
        "title": [TEXT],
        "mode": ["analysis", "authoritative", "other"],
        "externalId": ["x", "y", ABSENT],
        "projectId": [*PROJECTS, ABSENT],
    },
    "episodes": {
        "sessionId": SESSIONS,
        "userMessage": [TEXT, TEXT, "x" * 4000],
        "aiResponse": [TEXT],
        "notices": [ABSENT, [{"code": "words_only"}]],
        "status": ["done", "stopped"],
        "citations": [[], [{"n": 1, "documentId": "d1", "filename": "d1.txt"}]],
        "model": [TEXT, ABSENT],
    },
    "facts": {
        "key": [TEXT],
        "value": [TEXT, TEXT, "x" * 4000],
        "confidence": [0, 0.5, 1, 2],
        "confirmed": [True, False],
        "sourceDocumentId": [*DOCUMENTS, ABSENT],
        "sourceRemoved": [False],
    },
    "memories": {
        "text": [TEXT],
        "sessionIds": [TOGGLE],
        "projectId": [*PROJECTS, ABSENT],
        "supersedes": [*MEMORIES, ABSENT],
        "supersededBy": [*MEMORIES, ABSENT],
        "pinned": [True, False],
    },
    "entities": {
        "name": [TEXT],
        "notes": [TEXT, ABSENT],
        "projectId": PROJECTS,
        "type": ["place", "concept"],
    },
    "relationships": {"label": [TEXT], "fromId": ENTITIES, "toId": ENTITIES},
    "summaries": {"content": [TEXT], "sessionId": [*SESSIONS, ABSENT], "projectId": [*PROJECTS, ABSENT]},
}


class Chance:
    """The random choices of one step, all derived from the seed of the step."""

    def __init__(self, seed) -> None:
        self.random = random.Random(seed)

    def pick(self, options):
        return self.random.choice(list(options))

    def one_in(self, count):
        return self.random.randrange(count) == 0

    def some(self, options, at_least, at_most=3):
        options = list(options)
        return self.random.sample(options, self.random.randint(at_least, min(at_most, len(options))))

    def mixed(self, items):
        return self.random.sample(items, len(items))


class Maker:
    """Create rows of one user. It reads the reference model, to make some rows fit the stored ones and others not."""

    def __init__(self, model) -> None:
        self.model = model
        self.texts = 0

    def _text(self):
        self.texts += 1
        return f"zq{self.texts}"

    def new_row(self, chance, collection, row_id):
        pick = chance.pick
        born = make.NEW if self.model.forgotten_at and not chance.one_in(4) else make.OLD
        optional = chance.one_in(2)
        match collection:
            case "documents":
                active = chance.some(SESSIONS, at_least=0)
                row = make.document(self.model.user_id, row_id, originSessionId=pick(SESSIONS), filename=self._text(),
                                    activeSessions=active, accessCount=len(active))  # fmt: skip
            case "vectorEmbeddings":
                document_id, _, number = row_id.partition(".")
                row = make.block(document_id, int(number), self._text())
            case "projects":
                row = make.project(row_id, name=self._text(), documentIds=chance.some(DOCUMENTS, at_least=0))
            case "sessions":
                row = make.session(row_id, title=self._text())
                row |= {"projectId": pick(PROJECTS)} if optional else {"externalId": pick("xy")}
            case "episodes":
                row = make.episode(row_id, pick(SESSIONS), userMessage=self._text())
            case "facts":
                row = make.fact(row_id, value=self._text())
                row |= {"sourceDocumentId": pick(DOCUMENTS)} if optional else {}
            case "memories":
                row = make.memory(row_id, text=self._text(), sessionIds=[pick(SESSIONS)])
                row |= {"projectId": pick(PROJECTS)} if optional else {}
            case "entities":
                row = make.entity(row_id, pick(PROJECTS), name=self._text())
            case "relationships":
                row = make.relationship(row_id, pick(ENTITIES), pick(ENTITIES), label=self._text())
            case "summaries":
                row = make.summary(row_id, content=self._text())
                row |= {"sessionId": pick(SESSIONS)} if optional else {"projectId": pick(PROJECTS)}
        return {**row, "createdAt": born}

    def edited(self, chance, collection, row):
        row = {**row, "updatedAt": make.day(chance.pick(range(1, 10)))}
        for name in chance.some(CHANGES[collection], at_least=1, at_most=2):
            value = chance.pick(CHANGES[collection][name])
            if value is ABSENT:
                row.pop(name, None)
            elif value is TEXT:
                row[name] = self._text()
            elif value is TOGGLE:
                row |= self._toggled(row, name, chance.pick(DOCUMENTS if name == "documentIds" else SESSIONS))
            else:
                row[name] = value
        return row

    def _toggled(self, row, name, row_id):
        """Return the changed fields after the id is removed from the list or added, which raises `accessCount`."""
        if row_id in row[name]:
            return {name: [i for i in row[name] if i != row_id]}
        counted = {"accessCount": row["accessCount"] + 1} if "accessCount" in row else {}
        return {name: [*row[name], row_id], **counted}

    def any_pair(self, chance, key, earlier):
        """Return a row to push and its assumed state. Both may be outdated or have correct or wrong error marks."""
        held = self.model.rows.get(key)
        stored = [] if held is None else [held.row]
        states = [*stored, *earlier]
        live = [row for row in states if not row["_deleted"]]
        kind = chance.pick(["new", *["edit"] * 8, "stray", "stray", "repeat", "repeat", "delete"])
        if kind == "new" or not live or (held is not None and held.is_deleted and chance.one_in(2)):
            old, new = chance.pick([None, *stored, *stored]), self.new_row(chance, *key)
        else:
            old = chance.pick(live)
            new = make.dead(old) if kind == "delete" else old
            if kind in ("edit", "stray"):
                new = self.edited(chance, key[0], old)
            if kind != "edit":
                old = chance.pick([None, *states])
        if old is not None and chance.one_in(4):
            bases = [None, "other:1", f"{self.model.epoch}:1", self.model.base(held)]
            old = make.marked(chance.pick([old, *live]), chance.pick(bases))
            if chance.one_in(2):
                new = {**new, "syncError": old["syncError"]}
        return new, old


def canaries(user_id):
    """Return a row of each collection for the second user. The first user's rows use the same IDs."""
    return {
        "documents": make.document(user_id, "d1", filename="canary"),
        "vectorEmbeddings": make.block("d1", 0, "canary"),
        "projects": make.project("p1", name="canary"),
        "sessions": make.session("s1", title="canary"),
        "episodes": make.episode("e1", "s1", userMessage="canary"),
        "facts": make.fact("f1", value="canary"),
        "memories": make.memory("m1", text="canary"),
        "entities": make.entity("n1", "p1", name="canary"),
        "relationships": make.relationship("r1", "n1", "n1", label="canary"),
        "summaries": make.summary("u1", content="canary", sessionId="s1"),
    }
