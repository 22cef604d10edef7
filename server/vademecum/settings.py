"""Every setting, its default and what it does. Environment: VADEMECUM_<NAME>; flags of `serve` override it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from vademecum.errors import BadRequest
from vademecum.model.limits import Limits, Tier

MB = 2**20


def default_data() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "vademecum"


def default_tiers() -> dict[Tier, Limits]:
    return {
        "FREE": Limits(
            file_bytes=2 * MB, storage_bytes=20 * MB, authoritative=False, searches_documents=False
        ),
        "JIVE": Limits(file_bytes=10 * MB, storage_bytes=100 * MB, authoritative=False),
        "JIGGA": Limits(file_bytes=25 * MB, storage_bytes=250 * MB),
    }


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests a minute, by account and by address. The loopback is exempt, except at sign-in."""

    sign_in: int = 10
    push: int = 300
    write: int = 60
    read: int = 600
    upload: int = 30
    search: int = 120


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    data: Annotated[Path, Meta(description="the one folder to back up")] = msgspec.field(
        default_factory=default_data
    )
    models: Annotated[Path | None, Meta(description="folder of models; default <data>/models")] = None
    host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 takes a free one")] = 8787
    tls_certificate: Annotated[
        Path | None, Meta(description="PEM file; with tls_key the server speaks HTTPS")
    ] = None
    tls_key: Annotated[Path | None, Meta(description="PEM file of the private key")] = None
    trusted_proxies: Annotated[
        str, Meta(description="addresses whose X-Forwarded-* are believed, comma-separated")
    ] = ""
    origin: Annotated[str, Meta(description="public URL behind a proxy, for links and cookies")] = ""
    erase_delay_s: Annotated[
        float, Meta(ge=0, description="seconds from a delete to its erasure from the disk")
    ] = 60
    tidy_delay_s: Annotated[
        float, Meta(ge=0, description="seconds from an edit to the erasure of the text before it")
    ] = 86_400
    attached_max: Annotated[int, Meta(ge=1, description="users' files kept open")] = 256
    body_max: Annotated[int, Meta(ge=1, description="bytes of a request's body, uploads aside")] = 32 * MB
    search_wait_s: Annotated[float, Meta(ge=0, description="longest wait of a search for the index")] = 5
    heartbeat_s: Annotated[float, Meta(gt=0, description="seconds between comments on a stream")] = 15
    streams_max: Annotated[int, Meta(ge=1, description="live streams one user may have open")] = 64
    stream_queue: Annotated[
        int, Meta(ge=1, description="events a slow stream may lag before it is closed")
    ] = 256
    stream_queue_bytes: Annotated[
        int, Meta(ge=1, description="bytes a slow stream may lag before it is closed")
    ] = 16 * MB  # 100 blocks with their vectors, an RxDB client's batch, are less
    index_cache_bytes: Annotated[int, Meta(ge=0, description="memory for search matrices")] = 256 * MB
    rates: Annotated[Rates, Meta(description="requests a minute, as JSON")] = Rates()
    tiers: Annotated[dict[Tier, Limits], Meta(description="limits of each tier, as JSON")] = msgspec.field(
        default_factory=default_tiers
    )

    @property
    def models_folder(self) -> Path:
        return self.models or self.data / "models"


def from_environment(environment: Mapping[str, str], **flags: Any) -> Settings:
    """Settings from VADEMECUM_* variables, overridden by the flags that are not None. Raises BadRequest."""
    values: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        text = environment.get(f"VADEMECUM_{name.upper()}")
        if text is not None:
            values[name] = _parsed(name, text)
    values.update({name: value for name, value in flags.items() if value is not None})
    if isinstance(values.get("tiers"), dict):
        values["tiers"] = {
            **default_tiers(),
            **values["tiers"],
        }  # a tier that is not named keeps its defaults
    try:
        return msgspec.convert(values, Settings, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise BadRequest(
            f"A setting does not fit: {error}. Settings are VADEMECUM_* variables or flags."
        ) from error


def _parsed(name: str, text: str) -> Any:
    if name not in ("rates", "tiers"):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BadRequest(f"VADEMECUM_{name.upper()} is not JSON: {error}") from error


def _path(kind: type, value: Any) -> Any:
    if kind is Path or issubclass(kind, Path):
        return Path(value)
    raise NotImplementedError(kind)
