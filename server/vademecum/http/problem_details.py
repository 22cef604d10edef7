"""Send every error as `application/problem+json` (RFC 9457) with a stable `code` and `error: true`.

A sync client could mistake any other body, such as an array or an HTML page, for a successful response.
"""

from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.datastructures import ResponseSpec

from vademecum import errors
from vademecum.model.schema.validation_messages import describe_problem

STATUS: dict[type[errors.VademecumError], int] = {
    errors.BadRequest: 400,
    errors.SignedOut: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.TooLarge: 413,
    errors.LimitReached: 409,
    errors.UnreadableFile: 422,
    errors.NothingToSummarise: 422,
    errors.Outdated: 426,
    errors.RateLimited: 429,
    errors.TooNew: 503,
    errors.Busy: 503,
    errors.NoAssistant: 503,
    errors.AnswerTooSlow: 504,
    errors.AssistantError: 502,
    errors.Broken: 500,
    errors.Fenced: 503,
}
CODES = {
    400: "BAD_REQUEST",
    401: "SIGNED_OUT",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    416: "RANGE",
}
CODE_LISTS = {
    errors.LimitReached: "`DOCUMENT_LIMIT`, `STORAGE_LIMIT`",
    errors.UnreadableFile: "Why the file has no readable text: `NO_TEXT`, `ENCRYPTED`, `DAMAGED` …",
}
MEDIA_TYPE = "application/problem+json"
_log = structlog.get_logger("vademecum.http")


class Problem(msgspec.Struct):
    """An error response (RFC 9457). `code` is stable. `detail` tells people what happened, what is safe and what to do.
    `epoch` is present only with the code `EPOCH` and contains the current epoch."""

    title: str
    detail: str
    status: int
    code: str
    error: bool = True
    type: str = "about:blank"
    epoch: str | msgspec.UnsetType = msgspec.UNSET


def status_of(kind: type[errors.VademecumError]) -> int:
    return next(STATUS[k] for k in kind.__mro__ if k in STATUS)


def problem_specs(*kinds: type[errors.VademecumError]) -> dict[int, ResponseSpec]:
    """Describe the errors of a route for the OpenAPI document, beyond the errors that every route can return."""
    codes: dict[int, list[str]] = {}
    for kind in kinds:
        codes.setdefault(status_of(kind), []).append(CODE_LISTS.get(kind, f"`{kind.code}`"))
    return {
        status: ResponseSpec(Problem, False, ", ".join(names), MEDIA_TYPE) for status, names in codes.items()
    }


def problem_response(
    status: int, code: str, message: str, retry_after_s: int | None = None
) -> Response[Problem]:
    body = Problem(HTTPStatus(status).phrase, message, status, code)
    headers = {"Retry-After": str(retry_after_s)} if retry_after_s is not None else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(body, status_code=status, media_type=MEDIA_TYPE, headers=headers)


def handle_vademecum_error(_: Request[Any, Any, Any], error: errors.VademecumError) -> Response[Problem]:
    answer = problem_response(status_of(type(error)), error.code, error.message, error.retry_after_s)
    if isinstance(error, errors.OtherEpoch) and error.epoch:
        answer.content.epoch = error.epoch
    return answer


def handle_http_exception(request: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    detail = error.detail
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        detail = " ".join(_validation_sentence(e) for e in error.extra if isinstance(e, dict))
    if error.status_code == 413 and (max_bytes := request.route_handler.resolve_request_max_body_size()):
        detail = f"The body is larger than the limit of {max_bytes:,} bytes. Nothing was changed. Send smaller batches or files."
    code = CODES.get(error.status_code, "ERROR")
    answer = problem_response(
        error.status_code, code, detail or "The server cannot process this request. Nothing was changed."
    )
    answer.headers.update(error.headers or {})  # for headers that Litestar sets, such as Allow
    return answer


def _validation_sentence(error: dict[str, Any]) -> str:
    key, message = str(error.get("key", "")), str(error.get("message", ""))
    if message.startswith("Unsupported type: "):  # occurs only in forms: text was sent where a file belongs
        return f"`{key}` must be one file: one part of that name, with a filename. Nothing was changed."
    text = describe_problem(message, "The body" if key == "data" else f"`{key}`")
    return text if text != message else f"{key}: {message}."


def handle_recursion_error(_: Request[Any, Any, Any], __: RecursionError) -> Response[Problem]:
    return problem_response(400, "BAD_REQUEST", "The body is nested too deeply. Nothing was changed.")


def handle_unexpected_error(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """Log an unexpected error and hide its details from the client. Report a full disk as a temporary error."""
    if errors.is_full(error):
        _log.error("the disk is full", path=request.scope.get("path_template", ""), exc_info=error)
        return handle_vademecum_error(request, errors.not_now())
    _log.error("defect", path=request.scope.get("path_template", ""), method=request.method, exc_info=error)
    return problem_response(
        500, "BROKEN", "The server failed. Nothing that it acknowledged is lost. Try again."
    )


HANDLERS: dict[Any, Any] = {
    errors.VademecumError: handle_vademecum_error,
    HTTPException: handle_http_exception,
    RecursionError: handle_recursion_error,
    Exception: handle_unexpected_error,
}
