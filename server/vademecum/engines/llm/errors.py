"""Errors of an endpoint. No message quotes the endpoint's text, which may contain the question, the prompt or the key."""

from __future__ import annotations

from http import HTTPStatus

from vademecum.errors import (
    AnswerTooSlow,
    AssistantBroke,
    AssistantBusy,
    AssistantKeyRefused,
    AssistantSilent,
    AssistantUnreachable,
    ModelUnknown,
    VademecumError,
)

RETRY_S = 30
RETRY_MAX_S = 3600
SAFE = "Nothing was changed; ask again later."  # an app keeps the question, the API does not


def unreachable() -> AssistantUnreachable:
    return AssistantUnreachable(f"The assistant cannot be reached. {SAFE}")


def silent(seconds: float) -> AssistantSilent:
    return AssistantSilent(
        f"The assistant sent nothing for {seconds:g} s. It may be busy or loading its model. {SAFE}"
    )


def broken_off() -> AssistantBroke:
    return AssistantBroke("The assistant broke off before its end. Ask again for the whole answer.")


def garbled() -> AssistantBroke:
    return AssistantBroke(
        "The assistant sent a reply that is not an answer. If it happens again, ask your administrator to check the "
        "assistant's address with `vademecum doctor`."
    )


def failed() -> AssistantBroke:
    return AssistantBroke("The assistant reported a failure of its own. Ask again.")


def empty(finish: str | None, max_tokens: int) -> AssistantBroke:
    """Return the error for an answer without text. `finish`: why the model stopped."""
    if finish == "length":
        return AssistantBroke(
            f"The assistant used all {max_tokens:,} tokens that an answer may have before it wrote any text, most "
            "likely on reasoning. Asking again rarely helps: ask for something smaller, or ask your administrator "
            "for a model that reasons less."
        )
    return (
        filtered()
        if finish == "content_filter"
        else AssistantBroke("The assistant ended without an answer. Ask again, or in other words.")
    )


def filtered() -> AssistantBroke:
    return AssistantBroke("The assistant's content filter withheld the answer. Ask in other words.")


def too_slow(seconds: float) -> AnswerTooSlow:
    return AnswerTooSlow(f"The assistant took longer than {seconds:g} s. {SAFE}")


def unknown_model(model: str) -> ModelUnknown:
    return ModelUnknown(
        f"The assistant does not know the model {model}. Whoever runs the server can choose another one "
        f"(VADEMECUM_ASSISTANT_MODEL) or bring it there. {SAFE}"
    )


def by_status(status: int, model: str, retry_after: str | None) -> VademecumError:
    """Return the error for an HTTP status other than 200."""
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return AssistantKeyRefused(
            "The assistant does not accept the server's key. Whoever runs the server can set another one "
            f"(VADEMECUM_ASSISTANT_KEY). {SAFE}"
        )
    if status == HTTPStatus.NOT_FOUND:
        return unknown_model(model)
    if status == HTTPStatus.TOO_MANY_REQUESTS or (status == HTTPStatus.SERVICE_UNAVAILABLE and retry_after):
        wait = _seconds(retry_after)
        return AssistantBusy(
            f"The assistant has too much to do. Nothing was changed; try again in {wait} s.",
            retry_after_s=wait,
        )
    if 300 <= status < 400:
        return AssistantBroke(
            "The assistant's address leads elsewhere, which was not followed. Whoever runs the server should set the "
            f"final one (VADEMECUM_ASSISTANT_URL). {SAFE}"
        )
    if 400 <= status < 500:
        return AssistantBroke(
            f"The assistant refused the question ({status}). It may be longer than its model can read: ask something "
            "shorter, or borrow fewer documents."
        )
    return AssistantBroke(f"The assistant failed ({status}). {SAFE}")


def _seconds(retry_after: str | None) -> int:
    """Return the seconds of a Retry-After header, from 1 to RETRY_MAX_S. Dates are not supported and give RETRY_S."""
    if retry_after is None or not (retry_after.isascii() and retry_after.isdigit()) or len(retry_after) > 9:
        return RETRY_S
    return min(max(int(retry_after), 1), RETRY_MAX_S)
