"""Documents in an export: each text as it went in, each in a file whose name is its own and harmless."""

import io
import zipfile

from property.rows import (
    block,
    document,
)
from server.data.export_reader import exported, texts_of
from server.in_process_server import house, run
from vademecum.services.sync import batches


def test_a_long_text_is_put_together_from_its_portions(tmp_path, monkeypatch):
    """Ten blocks and more: in the order of their numbers, and with the gaps that lie between two portions."""
    monkeypatch.setattr(batches, "BATCH_ROWS", 3)

    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            paragraphs = [f"Paragraph {n} says: " + "something of its own, " * 40 for n in range(200)]
            text = "\n\n".join(paragraph.strip() for paragraph in paragraphs)
            await ada.upload("long.txt", text)
            blocks = await ada.live("vectorEmbeddings")
            assert len(blocks) > 10, "the test needs more blocks"
            assert texts_of(await exported(ada)) == [text]

    run(scenario)


def test_the_text_of_a_document_comes_out_as_it_went_in(tmp_path):
    """Also where it was cut for the index: inside a long paragraph, and where a script has no spaces."""

    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            unbroken = "".join(chr(0x4E00 + n * 7 % 5000) for n in range(3000))
            prose = " ".join(f"Sentence number {n} says something of its own." for n in range(200))
            sent = {"unbroken.txt": unbroken, "prose.txt": prose}
            for name, text in sent.items():
                row = (await ada.upload(name, text)).json()["document"]
                assert row["chunkCount"] > 1, "the test needs a text that is cut"
            texts = texts_of(await exported(ada))
            assert {" ".join(text.split()) for text in texts} >= {prose}, "the words and their order"
            # neither a blank line inside a paragraph nor one between two characters
            assert [name for name, text in sent.items() if text not in texts] == []

    run(scenario)


def test_documents_of_one_name_are_all_in_it(tmp_path):
    """Devices make names and ids: two may be named alike and end alike."""

    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            for number in range(3):
                row_id = f"device-{number}-00000000"
                row = document(ada.id, row_id, filename="notes.txt")
                assert await ada.push("documents", row) == []
                assert await ada.push("vectorEmbeddings", block(row_id, text=f"text of {number}")) == []
            files = await exported(ada)
            assert sorted(texts_of(files)) == ["text of 0", "text of 1", "text of 2"]

    run(scenario)


def test_no_name_of_a_document_leaves_the_folder_it_is_unpacked_into(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
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
