"""While a model is replaced, a complete model is installed at every moment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from vademecum.engines.onnx import atomic_install, download
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.pinned_models import PinnedModel


@contextmanager
def before_every_line_of(file: str, look: Callable[[], None]) -> Iterator[None]:
    """Call `look` before each line of `file` runs. It sees what a crash between two lines would leave."""

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != file:
            return None
        if event == "line":
            look()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def test_crash_during_install_leaves_one_complete_model(
    tiny: tuple[PinnedModel, Path], tmp_path: Path
) -> None:
    known, source = tiny
    newer = msgspec.structs.replace(known, revision="another revision")
    download.prepare_from_folder(known, source, tmp_path)
    seen: list[str] = []
    with before_every_line_of(
        atomic_install.__file__, lambda: seen.append(manifests.verify(tmp_path / known.id).revision)
    ):
        download.prepare_from_folder(newer, source, tmp_path)
    turn = seen.index(newer.revision)
    assert set(seen[:turn]) == {known.revision} and set(seen[turn:]) == {newer.revision}
    assert [path.name for path in tmp_path.iterdir()] == [known.id], "the old model was not deleted"


def test_install_replaces_a_file_at_the_target(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    target = tmp_path / tiny[0].id
    target.write_text("not even a folder")
    download.prepare_from_folder(*tiny, tmp_path)
    assert download.is_installed(tiny[0], tmp_path)
