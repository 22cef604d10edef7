"""Searches during which the index is damaged, or replaced by the index of another model."""

from __future__ import annotations

from server.in_process_server import check_problem, reconnect
from server.models.model_change_server import opened, use, with_document
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.records.paths import user_folder

QUESTION = {"query": "a letter about the boiler", "sessionId": "s1", "mode": "meaning"}


def change_model_after_queries(h, person, monkeypatch, changes: list[str]) -> None:
    """After each embedding of a query, change to the next model of `changes`. An empty string means no change."""
    query = Embedder.embed_query

    async def asked(embedder: Embedder, text: str):
        vector = await query(embedder, text)
        if changes and (name := changes.pop(0)):
            await use(h, name)
            await h.drain_jobs(person)
        return vector

    monkeypatch.setattr(Embedder, "embed_query", asked)


async def test_search_is_repeated_after_index_is_damaged_and_replaced(tmp_path, installed, monkeypatch):
    async with opened(tmp_path, installed, index_cache_bytes=0) as h:
        ada = await with_document(h)
    async with opened(tmp_path, installed, index_cache_bytes=0) as h:
        reconnect(h, ada)
        assert (await ada.search(QUESTION["query"]))["results"]
        for path in (user_folder(tmp_path, ada.id) / "vectors").rglob("data/*.lance"):
            path.write_bytes(b"")
        changes = ["", "new"]
        change_model_after_queries(h, ada, monkeypatch, changes)
        answer = await ada.call("POST", "/v1/search", json=QUESTION)
        assert answer.status_code == 200 and answer.json()["results"], answer.text
        assert changes == [], "the index must have been damaged and then replaced"


async def test_search_fails_as_busy_if_index_is_replaced_repeatedly(tmp_path, installed, monkeypatch):
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        changes = ["new", "old"] * 5
        change_model_after_queries(h, ada, monkeypatch, changes)
        answer = await ada.call("POST", "/v1/search", json=QUESTION)
        assert "Try again" in check_problem(answer, 503, "BUSY")["detail"]
        assert answer.headers["Retry-After"] == "1"
        changes.clear()
        assert (await ada.call("POST", "/v1/search", json=QUESTION)).json()["results"]
