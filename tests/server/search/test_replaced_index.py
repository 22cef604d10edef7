"""Searches whose index is damaged or replaced by another model's during the search."""

from __future__ import annotations

from server.in_process_server import refused
from server.models.model_change_server import opened, use, with_document
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.records.paths import user_folder

QUESTION = {"query": "a letter about the boiler", "sessionId": "s1", "mode": "meaning"}


def changes_after_questions(h, person, monkeypatch, changes: list[str]) -> None:
    """After each embedded query, change the model to the next of `changes`.

    An empty string changes nothing.
    """
    query = Embedder.embed_query

    async def asked(embedder: Embedder, text: str):
        vector = await query(embedder, text)
        if changes and (name := changes.pop(0)):
            await use(h, name)
            await h.settle(person)
        return vector

    monkeypatch.setattr(Embedder, "embed_query", asked)


async def test_damaged_then_replaced_index_is_queried_again(tmp_path, installed, monkeypatch):
    async with opened(tmp_path, installed, index_cache_bytes=0) as h:
        ada = await with_document(h)
    async with opened(tmp_path, installed, index_cache_bytes=0) as h:
        ada.client._transport.app = h.app
        assert (await ada.search(QUESTION["query"]))["results"]
        for path in (user_folder(tmp_path, ada.id) / "vectors").rglob("data/*.lance"):
            path.write_bytes(b"")
        changes = ["", "new"]
        changes_after_questions(h, ada, monkeypatch, changes)
        answer = await ada.call("POST", "/v1/search", json=QUESTION)
        assert answer.status_code == 200 and answer.json()["results"], answer.text
        assert changes == [], "it was damaged, and then replaced"


async def test_repeatedly_replaced_index_returns_busy(tmp_path, installed, monkeypatch):
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        changes = ["new", "old"] * 5
        changes_after_questions(h, ada, monkeypatch, changes)
        answer = await ada.call("POST", "/v1/search", json=QUESTION)
        assert "Try again" in refused(answer, 503, "BUSY")["detail"]
        assert answer.headers["Retry-After"] == "1"
        changes.clear()
        assert (await ada.call("POST", "/v1/search", json=QUESTION)).json()["results"]
