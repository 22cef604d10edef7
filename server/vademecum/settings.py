"""Define the settings and their defaults. They come from VADEMECUM_<NAME> variables; flags of `serve` override them."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
import structlog
from msgspec import Meta

from vademecum.errors import BadRequest
from vademecum.model.agents.observations import KEPT_DAYS
from vademecum.model.chat.endpoint_url import base_address
from vademecum.model.chat.prompt import MIN_SCORE_SHARE
from vademecum.model.schema import constants
from vademecum.model.schema.collections import ObservationKind
from vademecum.model.sync.quotas import Limits, Tier

MB = 2**20
UPLOAD_MAX = 64 * MB  # the maximum size of a multipart body
# Maps old names of settings, which are still accepted, to their new names.
RENAMED = {
    "tidy_delay_s": "edited_text_erase_delay_s",
    "assistant_silence_s": "assistant_idle_timeout_s",
    "assistant_whole_s": "assistant_timeout_s",
    "observations_days": "observation_retention_days",
}
FILE_MAX = 63 * MB  # the maximum size of a file in every tier; leaves room for the rest of the upload's body


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


_log = structlog.get_logger("vademecum.settings")
AtLeastOne = Annotated[int, Meta(ge=1)]


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests per minute, for each account and for each address.

    The limit of an address that many people may share (the loopback, a proxy) is 20 times as high. Commands on the
    server's machine are exempt.
    """

    sign_in: AtLeastOne = 10
    push: AtLeastOne = 300
    write: AtLeastOne = 60
    read: AtLeastOne = 600
    upload: AtLeastOne = 30
    search: AtLeastOne = 120
    answer: AtLeastOne = 20


class Secret:
    """A setting that is not shown in messages, logs or dumps of the settings."""

    def __init__(self, text: str = "") -> None:
        if not (text.isascii() and text.isprintable()):
            raise ValueError("A key contains characters that cannot be sent in a header")
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
        Path | None, Meta(description="folder of models; by default one per machine, in the cache folder")
    ] = None
    host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 chooses a free one")] = 8787
    tls_certificate: Annotated[
        Path | None, Meta(description="PEM file; together with tls_key it turns on HTTPS")
    ] = None
    tls_key: Annotated[Path | None, Meta(description="PEM file of the private key")] = None
    trusted_proxies: Annotated[
        str, Meta(description="addresses of proxies whose X-Forwarded-* headers are trusted, comma-separated")
    ] = ""
    metrics_token: Annotated[
        Secret, Meta(description="bearer token for /metrics, in addition to those of administrators")
    ] = Secret()
    origin: Annotated[str, Meta(description="public URL behind a proxy, used for links and cookies")] = ""
    erase_delay_s: Annotated[
        float, Meta(ge=0, description="seconds from a deletion to its erasure from the disk")
    ] = 60
    edited_text_erase_delay_s: Annotated[
        float, Meta(ge=0, description="seconds from an edit to the erasure of the old text")
    ] = 86_400
    attached_max: Annotated[int, Meta(ge=1, description="how many accounts' files may stay open")] = 256
    attached_rows_max: Annotated[
        int, Meta(ge=1, description="how many rows the open files may have; each takes 600 bytes of memory")
    ] = 1_000_000
    statement_read_s: Annotated[
        float, Meta(gt=0, description="timeout of a database statement that reads; its request gets 503")
    ] = 10
    statement_write_s: Annotated[
        float, Meta(gt=0, description="timeout of a database statement that writes; longer for large files")
    ] = 30
    body_max: Annotated[int, Meta(ge=1, description="maximum bytes of a request body, except uploads")] = (
        32 * MB
    )
    search_wait_s: Annotated[float, Meta(ge=0, description="how long a search waits for the index")] = 5
    heartbeat_s: Annotated[float, Meta(gt=0, description="seconds between comments on a stream")] = 15
    streams_max: Annotated[int, Meta(ge=1, description="maximum open streams of an account")] = 64
    stream_queue: Annotated[
        int, Meta(ge=1, description="events that a slow stream may lag behind before it is closed")
    ] = 256
    stream_queue_bytes: Annotated[
        int, Meta(ge=1, description="bytes that a slow stream may lag behind before it is closed")
    ] = 16 * MB  # larger than a batch of an RxDB client, which is 100 blocks with vectors
    index_cache_bytes: Annotated[int, Meta(ge=0, description="memory for search matrices")] = 256 * MB
    assistant_url: Annotated[
        str,
        Meta(
            description="an OpenAI-compatible endpoint such as http://localhost:11434; empty: answers are quotations"
        ),
    ] = ""
    assistant_model: Annotated[
        str, Meta(max_length=200, description="name of the model at this endpoint")
    ] = ""
    assistant_key: Annotated[Secret, Meta(description="API key of the endpoint, if it needs one")] = Secret()
    assistant_environment: Annotated[
        bool, Meta(description="use HTTPS_PROXY, SSL_CERT_FILE etc. for requests to the endpoint")
    ] = False
    assistant_parallel: Annotated[
        int,
        Meta(
            ge=0,
            description="requests that the endpoint answers at the same time, such as OLLAMA_NUM_PARALLEL; further ones wait, "
            "and accounts take turns; 0: no limit",
        ),
    ] = 0
    assistant_connect_s: Annotated[float, Meta(gt=0, description="timeout of connecting to the endpoint")] = 5
    assistant_idle_timeout_s: Annotated[
        float, Meta(gt=0, description="timeout without any data of an answer; loading a model takes long")
    ] = 120
    assistant_timeout_s: Annotated[float, Meta(gt=0, description="timeout of a whole answer")] = 600
    assistant_characters: Annotated[int, Meta(ge=1, description="maximum length of an answer")] = 200_000
    prompt_score_share: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="after five passages, a prompt omits those below this share of the best score; 0: none",
        ),
    ] = MIN_SCORE_SHARE
    extraction_model: Annotated[
        str, Meta(max_length=200, description="model for memory and summaries; empty: the assistant's")
    ] = ""
    extraction_daily: Annotated[
        int,
        Meta(
            ge=0, description="requests a day for memory and summaries of an account; 0 turns extraction off"
        ),
    ] = 1000
    observation_retention_days: Annotated[
        dict[ObservationKind, float],
        Meta(description="retention of observations by kind in days, as JSON; other kinds are kept forever"),
    ] = msgspec.field(default_factory=lambda: dict(KEPT_DAYS))
    rates: Annotated[Rates, Meta(description="requests per minute, as JSON")] = Rates()
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
                raise ValueError("Set VADEMECUM_ASSISTANT_MODEL to the name of the assistant's model")

    def is_proxy(self, address: str) -> bool:
        """Return whether this is the address of a trusted proxy."""
        return _is_in(address, self.trusted_proxies)

    @property
    def extracts(self) -> bool:
        """Return whether memory is extracted from conversations."""
        return bool(self.assistant_url) and self.extraction_daily > 0

    @property
    def model_folders(self) -> tuple[Path, ...]:
        """Return the folders to search for models, in order. Earlier versions kept models in the data folder."""
        return (self.models,) if self.models else (self.data / "models", default_models())

    @property
    def models_folder(self) -> Path:
        """Return the folder for new models."""
        return self.model_folders[-1]

    def model_folder(self, name: str) -> Path:
        """Return the folder of the model, whether it is installed or not."""
        folders = [folder / name for folder in self.model_folders]
        return next((folder for folder in folders if (folder / "manifest.json").exists()), folders[-1])


def _check_origin(origin: str) -> None:
    url = urlsplit(origin)
    without_path = f"{url.scheme}://{url.netloc}"
    if origin and (url.scheme not in ("http", "https") or not url.hostname or origin != without_path):
        raise ValueError("The origin must be a scheme and a host, such as https://docs.example.org")


def _check_proxies(addresses: str) -> None:
    for address in filter(None, (part.strip() for part in addresses.split(","))):
        try:
            network = ipaddress.ip_network(address, strict=False)
        except ValueError as error:
            raise ValueError(
                f"The trusted proxy {address!r} is neither an IP address nor a network"
            ) from error
        if network.prefixlen == 0:
            raise ValueError(f"{address!r} would trust every address. Use the address of the proxy")


@lru_cache(maxsize=1024)
def _is_in(address: str, networks: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    parts = (part.strip() for part in networks.split(","))
    return any(parsed in ipaddress.ip_network(network, strict=False) for network in parts if network)


def _check_tiers(tiers: Mapping[Tier, Limits]) -> None:
    for tier, limits in tiers.items():
        if limits.file_bytes > FILE_MAX:
            raise ValueError(
                f"A file of the tier {tier} can have at most {FILE_MAX >> 20} MB (`fileBytes` <= {FILE_MAX})"
            )


def from_environment(environment: Mapping[str, str], **flags: Any) -> Settings:
    """Return settings from VADEMECUM_* variables, overridden by the flags that are not None. Raises BadRequest."""
    values: dict[str, Any] = {}
    for old, new in RENAMED.items():
        if (text := environment.get(_variable(old))) is not None:
            _warn_renamed(old, new)
            values[new] = _parse(old, new, text)
    for name in Settings.__struct_fields__:
        if (text := environment.get(_variable(name))) is not None:
            values[name] = _parse(name, name, text)
    values.update({name: value for name, value in flags.items() if value is not None})
    if isinstance(values.get("tiers"), dict):
        values["tiers"] = _complete_tiers(values["tiers"])
    if isinstance(values.get("observation_retention_days"), dict):
        values["observation_retention_days"] = {**KEPT_DAYS, **values["observation_retention_days"]}
    try:
        return msgspec.convert(values, Settings, strict=False, dec_hook=_convert)
    except msgspec.ValidationError as error:
        raise BadRequest(
            f"A setting is invalid: {error}. Settings are VADEMECUM_* variables or flags."
        ) from error


def _variable(name: str) -> str:
    return f"VADEMECUM_{name.upper()}"


@cache
def _warn_renamed(old: str, new: str) -> None:
    """Log once per process that a setting was renamed."""
    _log.warning(f"{_variable(old)} was renamed to {_variable(new)}; the old name still works")


def _complete_tiers(given: dict[str, Any]) -> dict[str, Any]:
    """Return the limits of all tiers, with defaults for limits that are not given."""
    defaults: dict[str, Any] = msgspec.to_builtins(default_tiers())
    changed = {
        tier: {**defaults.get(tier, {}), **limits} if isinstance(limits, dict) else limits
        for tier, limits in given.items()
    }
    return defaults | changed


def _parse(variable: str, name: str, text: str) -> Any:
    if name not in ("rates", "tiers", "observation_retention_days"):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise BadRequest(f"{_variable(variable)} is not JSON: {error}") from error


def _convert(kind: type, value: Any) -> Any:
    if kind is Secret:
        return Secret(value)
    if kind is Path or issubclass(kind, Path):
        return Path(value)
    raise NotImplementedError(kind)
