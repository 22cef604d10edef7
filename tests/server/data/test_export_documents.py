"""Documents in an export: each has its unchanged text and a unique, safe file name."""

import io
import zipfile

from property.rows import (
    block,
    document,
)
from server.data.export_reader import exported, texts_of
from server.in_process_server import run, serve
from vademecum.services.sync import batches


def test_exported_document_text_joins_all_blocks_in_order(tmp_path, monkeypatch):
    """With more than ten blocks, the order by number differs from the order by id. Gaps between blocks are kept."""
    monkeypatch.setattr(batches, "BATCH_ROWS", 3)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            paragraphs = [f"Paragraph {n} says: " + "something of its own, " * 40 for n in range(200)]
            text = "\n\n".join(paragraph.strip() for paragraph in paragraphs)
            await ada.upload("long.txt", text)
            blocks = await ada.live("vectorEmbeddings")
            assert len(blocks) > 10, "the test needs more blocks"
            assert texts_of(await exported(ada)) == [text]

    run(scenario)


def test_exported_document_text_equals_the_uploaded_text(tmp_path):
    """Chunking splits these texts inside a long paragraph, or in a script without spaces."""

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            unbroken = "".join(chr(0x4E00 + n * 7 % 5000) for n in range(3000))
            prose = " ".join(f"Sentence number {n} says something of its own." for n in range(200))
            sent = {"unbroken.txt": unbroken, "prose.txt": prose}
            for name, text in sent.items():
                row = (await ada.upload(name, text)).json()["document"]
                assert row["chunkCount"] > 1, "the test needs a text of several chunks"
            texts = texts_of(await exported(ada))
            assert {" ".join(text.split()) for text in texts} >= {prose}, (
                "the export must keep all words in their order"
            )
            # Chunk boundaries add no blank line inside a paragraph or between two characters.
            assert [name for name, text in sent.items() if text not in texts] == []

    run(scenario)


def test_export_includes_all_documents_with_the_same_name(tmp_path):
    """Devices choose file names and ids, so two documents may have the same name and ids with the same ending."""

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            for number in range(3):
                row_id = f"device-{number}-00000000"
                row = document(ada.id, row_id, filename="notes.txt")
                assert await ada.push("documents", row) == []
                assert await ada.push("vectorEmbeddings", block(row_id, text=f"text of {number}")) == []
            files = await exported(ada)
            assert sorted(texts_of(files)) == ["text of 0", "text of 1", "text of 2"]

    run(scenario)


def test_export_file_names_cannot_escape_their_folder(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            names = [
                "../../evil",
                "/etc/passwd",
                "C:\\evil",
                "a/../../b",
                "..",
                ".",
                "con\nrol\x00",
                "é😀" * 60,
                "~",
            ]
            for number, name in enumerate(names):
                assert await ada.push("documents", document(ada.id, f"d{number}", filename=name)) == []
                assert await ada.push("vectorEmbeddings", block(f"d{number}", text=f"text {number}")) == []
            files = await exported(ada)
            assert len(texts_of(files)) == len(names)
            for name in files:
                assert ".." not in name.split("/") and not name.startswith("/")
                assert not set(name) & set("\\:\0\n") and name.count("/") <= 1
            target = tmp_path / "unpacked" / "here"
            target.mkdir(parents=True)
            answer = await ada.call("GET", "/v1/export")
            with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
                archive.extractall(target)
            unpacked = [p for p in (tmp_path / "unpacked").rglob("*") if p.is_file()]
            assert len(unpacked) == len(files) and all(p.is_relative_to(target) for p in unpacked)

    run(scenario)
