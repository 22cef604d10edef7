"""An export as its person reads it: the files, their rows, lines and texts."""

import io
import json
import zipfile


async def exported(person):
    """The files of the export: name → text. Every one of them is text, every name is its own."""
    answer = await person.call("GET", "/v1/export")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    assert "attachment" in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == len(set(names)), "one file would be written over another"
        return {name: archive.read(name).decode() for name in names}


def rows_of(files, collection):
    lines = files[f"{collection}.jsonl"].split("\n")  # and nothing else ends a line: a text may hold U+2028
    assert lines.pop() == ""
    return {row["id"]: row for row in map(json.loads, lines)}


def texts_of(files):
    return [text for name, text in files.items() if name.startswith("documents/")]


def waiting_of(files):
    return [json.loads(line) for line in files["waiting.jsonl"].splitlines()]


def lines_of(files, collection):
    return files[f"{collection}.jsonl"].split("\n")[:-1]
