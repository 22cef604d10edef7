"""Every setting, its default and what it does. Environment: VADEMECUM_<NAME>; flags of `serve` override it."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from vademecum.errors import BadRequest
from vademecum.model.agents.observations import KEPT_DAYS
from vademecum.model.chat.endpoint_url import base_address
from vademecum.model.schema import constants
from vademecum.model.schema.collections import ObservationKind
from vademecum.model.sync.quotas import Limits, Tier

MB = 2**20
UPLOAD_MAX = 64 * MB  # of a multipart body
FILE_MAX = 63 * MB  # of a file in one, whatever a tier allows


def default_data() -> Path:
    return Path(constants.default_data(os.environ, str(Path.home())))


def default_models() -> Path:
    return Path(constants.default_models(os.environ, str(Path.home())))


def default_tiers() -> dict[Tier, Limits]:
    return {
        "FREE": Limits(
            file_bytes=2 * MB, storage_bytes=20 * MB, authoritative=False, searches_documents=False
        ),
        "JIVE": Limits(file_bytes=10 * MB, storage_bytes=100 * MB, authoritative=False),
        "JIGGA": Limits(),
    }


AtLeastOne = Annotated[int, Meta(ge=1)]


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests a minute, by account and by address. An address that many may share (the loopback, a proxy) has 20 times
    as many; only the local credential of the command line is exempt."""

    sign_in: AtLeastOne = 10
    push: AtLeastOne = 300
    write: AtLeastOne = 60
    read: AtLeastOne = 600
    upload: AtLeastOne = 30
    search: AtLeastOne = 120
    answer: AtLeastOne = 20


class Secret:
    """A setting that no message, log or dump of the settings shows."""

    def __init__(self, text: str = "") -> None:
        if not (text.isascii() and text.isprintable()):
            raise ValueError("A key has characters that cannot be sent")
        self._text = text.strip()

    def __repr__(self) -> str:
        return "Secret(…)"

    def reveal(self) -> str:
        return self._text


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    data: Annotated[Path, Meta(description="the one folder to back up")] = msgspec.field(
        default_factory=default_data
    )
    models: Annotated[
        Path | None, Meta(description="folder of models; default: one for the machine, in the cache folder")
    ] = None
    host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 takes a free one")] = 8787
    tls_certificate: Annotated[
        Path | None, Meta(description="PEM file; with tls_key the server speaks HTTPS")
    ] = None
    tls_key: Annotated[Path | None, Meta(description="PEM file of the private key")] = None
    trusted_proxies: Annotated[
        str, Meta(description="addresses whose X-Forwarded-* are believed, comma-separated")
    ] = ""
    metrics_token: Annotated[
        Secret, Meta(description="bearer token that may read /metrics, beside an administrator's")
    ] = Secret()
    origin: Annotated[str, Meta(description="public URL behind a proxy, for links and cookies")] = ""
    erase_delay_s: Annotated[
        float, Meta(ge=0, description="seconds from a delete to its erasure from the disk")
    ] = 60
    tidy_delay_s: Annotated[
        float, Meta(ge=0, description="seconds from an edit to the erasure of the text before it")
    ] = 86_400
    attached_max: Annotated[int, Meta(ge=1, description="users' files kept open")] = 256
    attached_rows_max: Annotated[
        int, Meta(ge=1, description="rows of the files kept open; each takes 600 bytes of memory")
    ] = 1_000_000
    statement_read_s: Annotated[
        float, Meta(gt=0, description="longest time of a statement that reads; then its request gets 503")
    ] = 10
    statement_write_s: Annotated[
        float, Meta(gt=0, description="longest time of one that writes; longer for large files")
    ] = 30
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
    assistant_url: Annotated[
        str,
        Meta(description="an OpenAI-compatible endpoint such as http://localhost:11434; none: quotations"),
    ] = ""
    assistant_model: Annotated[str, Meta(max_length=200, description="the model that it is asked for")] = ""
    assistant_key: Annotated[Secret, Meta(description="what it is paid with, if it wants a key")] = Secret()
    assistant_environment: Annotated[
        bool, Meta(description="reach it by HTTPS_PROXY … and SSL_CERT_FILE of the environment")
    ] = False
    assistant_connect_s: Annotated[float, Meta(gt=0, description="longest wait for a connection to it")] = 5
    assistant_silence_s: Annotated[
        float, Meta(gt=0, description="longest silence; a model that is loaded first is silent for long")
    ] = 120
    assistant_whole_s: Annotated[float, Meta(gt=0, description="longest time of an answer")] = 600
    assistant_characters: Annotated[int, Meta(ge=1, description="longest answer")] = 200_000
    extraction_model: Annotated[
        str, Meta(max_length=200, description="the model for memory and summaries; none: the assistant's")
    ] = ""
    extraction_daily: Annotated[
        int,
        Meta(ge=0, description="questions a day for an account's memory and summaries; 0: none is extracted"),
    ] = 1000
    observations_days: Annotated[
        dict[ObservationKind, float],
        Meta(description="days that observations of a kind are kept, as JSON; of other kinds for ever"),
    ] = msgspec.field(default_factory=lambda: dict(KEPT_DAYS))
    rates: Annotated[Rates, Meta(description="requests a minute, as JSON")] = Rates()
    tiers: Annotated[dict[Tier, Limits], Meta(description="limits of each tier, as JSON")] = msgspec.field(
        default_factory=default_tiers
    )

    def __post_init__(self) -> None:
        _check_origin(self.origin)
        _check_proxies(self.trusted_proxies)
        _check_tiers(self.tiers)
        if self.assistant_url:
            base_address(self.assistant_url)
            if not self.assistant_model.strip():
                raise ValueError("The assistant needs the name of its model, VADEMECUM_ASSISTANT_MODEL")

    def is_proxy(self, address: str) -> bool:
        """Return whether this is the address of a trusted proxy."""
        return _is_in(address, self.trusted_proxies)

    @property
    def extracts(self) -> bool:
        """Is what was said turned into memory?"""
        return bool(self.assistant_url) and self.extraction_daily > 0

    @property
    def model_folders(self) -> tuple[Path, ...]:
        """The folders where models are looked for, in this order: the data folder's own, of earlier versions, first."""
        return (self.models,) if self.models else (self.data / "models", default_models())

    @property
    def models_folder(self) -> Path:
        """Where new models are installed."""
        return self.model_folders[-1]

    def model_folder(self, name: str) -> Path:
        """Return the folder of the model: where it is installed, else where it would be."""
        places = [folder / name for folder in self.model_folders]
        return next((place for place in places if (place / "manifest.json").exists()), places[-1])


def _check_origin(origin: str) -> None:
    found = urlsplit(origin)
    plain = f"{found.scheme}://{found.netloc}"
    if origin and (found.scheme not in ("http", "https") or not found.hostname or origin != plain):
        raise ValueError(
            "The origin must be like https://docs.example.org: a scheme, a host, and nothing behind it"
        )


def _check_proxies(addresses: str) -> None:
    for one in filter(None, (part.strip() for part in addresses.split(","))):
        try:
            network = ipaddress.ip_network(one, strict=False)
        except ValueError as error:
            raise ValueError(f"{one!r} is no address of a trusted proxy, nor a network of them") from error
        if network.prefixlen == 0:
            raise ValueError(f"{one!r} would trust every address: name the proxy")


@lru_cache(maxsize=1024)
def _is_in(address: str, networks: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    named = (part.strip() for part in networks.split(","))
    return any(found in ipaddress.ip_network(one, strict=False) for one in named if one)


def _check_tiers(tiers: Mapping[Tier, Limits]) -> None:
    for tier, limits in tiers.items():
        if limits.file_bytes > FILE_MAX:
            raise ValueError(
                f"A file of {tier} may have {FILE_MAX >> 20} MB at most: `fileBytes` <= {FILE_MAX}"
            )


def from_environment(environment: Mapping[str, str], **flags: Any) -> Settings:
    """Settings from VADEMECUM_* variables, overridden by the flags that are not None. Raises BadRequest."""
    values: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        text = environment.get(f"VADEMECUM_{name.upper()}")
        if text is not None:
            values[name] = _parsed(name, text)
    values.update({name: value for name, value in flags.items() if value is not None})
    if isinstance(values.get("tiers"), dict):
        values["tiers"] = _tiers(values["tiers"])
    if isinstance(values.get("observations_days"), dict):
        values["observations_days"] = {**KEPT_DAYS, **values["observations_days"]}
    try:
        return msgspec.convert(values, Settings, strict=False, dec_hook=_made)
    except msgspec.ValidationError as error:
        raise BadRequest(
            f"A setting does not fit: {error}. Settings are VADEMECUM_* variables or flags."
        ) from error


def _tiers(given: dict[str, Any]) -> dict[str, Any]:
    """What is not named, of a tier that is named as well, keeps its default."""
    defaults: dict[str, Any] = msgspec.to_builtins(default_tiers())
    changed = {
        tier: {**defaults.get(tier, {}), **limits} if isinstance(limits, dict) else limits
        for tier, limits in given.items()
    }
    return defaults | changed


def _parsed(name: str, text: str) -> Any:
    if name not in ("rates", "tiers", "observations_days"):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BadRequest(f"VADEMECUM_{name.upper()} is not JSON: {error}") from error


def _made(kind: type, value: Any) -> Any:
    if kind is Secret:
        return Secret(value)
    if kind is Path or issubclass(kind, Path):
        return Path(value)
    raise NotImplementedError(kind)
