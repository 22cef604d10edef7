"""Read an export: its files, and the rows, lines and document texts in them."""

import io
import json
import zipfile


async def exported(person):
    """Return the export as a map from file name to text. Check that all names differ and all files are UTF-8."""
    answer = await person.call("GET", "/v1/export")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    assert "attachment" in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == len(set(names)), "two files of the export have the same name"
        return {name: archive.read(name).decode() for name in names}


def rows_of(files, collection):
    lines = files[f"{collection}.jsonl"].split("\n")  # not splitlines(), because a text may contain U+2028
    assert lines.pop() == ""
    return {row["id"]: row for row in map(json.loads, lines)}


def texts_of(files):
    return [text for name, text in files.items() if name.startswith("documents/")]


def waiting_of(files):
    return [json.loads(line) for line in files["waiting.jsonl"].splitlines()]


def lines_of(files, collection):
    return files[f"{collection}.jsonl"].split("\n")[:-1]
