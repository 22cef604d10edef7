"""Blocks that the new model fails to embed during a model change."""

from __future__ import annotations

from collections import Counter

from server.models.model_change_server import check_meaning, opened, use, used_by, with_document
from vademecum.engines.onnx.embedder import Embedder
from vademecum.engines.onnx.errors import ModelError
from vademecum.model.schema import vector_codec
from vademecum.services.models.embed_blocks import MAX_ATTEMPTS
from vademecum.services.runtime import job_queue
from wait_until import soon


async def test_block_that_new_model_cannot_embed_does_not_block_the_change(tmp_path, installed, monkeypatch):
    monkeypatch.setattr(job_queue, "RETRY_S", (0.01,))
    tried: list[str] = []
    async with opened(tmp_path, installed) as h:
        ada = await with_document(h)
        (old,) = await used_by(ada)
        passages = Embedder.embed_passages

        async def picky(embedder: Embedder, texts: list[str]) -> vector_codec.Vectors:
            if embedder.manifest.id == "new" and texts[0].startswith("0 "):
                tried.append(texts[0])
                raise ModelError("A text could not be embedded.")
            return await passages(embedder, texts)

        monkeypatch.setattr(Embedder, "embed_passages", picky)
        await use(h, "new")
        await soon(lambda: h.services.model_change.status().before is None)
        await h.drain_jobs(ada)
        new = (await h.services.inference.get()).model
        used = Counter(block["model"] for block in (await ada.live("vectorEmbeddings")).values())
        assert used[old] == 1 and used.keys() == {old, new}
        assert len(tried) == 2 * MAX_ATTEMPTS, (
            "the block must be attempted during the change, and again after the swap"
        )
        await check_meaning(h, ada, "new")
