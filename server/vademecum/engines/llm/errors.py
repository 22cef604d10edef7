"""Create the errors of an endpoint. No message quotes the endpoint, which may repeat the question, the prompt or the key."""

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
SAFE = "Nothing was changed. Try again later."


def unreachable_error() -> AssistantUnreachable:
    return AssistantUnreachable(f"The assistant cannot be reached. {SAFE}")


def silence_error(seconds: float) -> AssistantSilent:
    return AssistantSilent(
        f"The assistant sent nothing for {seconds:g} s. It may be busy or loading its model. {SAFE}"
    )


def interrupted_error() -> AssistantBroke:
    return AssistantBroke("The assistant's answer was interrupted. Ask again for the complete answer.")


def invalid_reply_error() -> AssistantBroke:
    return AssistantBroke(
        "The assistant sent an invalid reply. If it happens again, ask your administrator to check the assistant's address "
        "with `vademecum doctor`."
    )


def endpoint_failure() -> AssistantBroke:
    return AssistantBroke("The assistant reported an internal error. Ask again.")


def empty_answer_error(finish: str | None, max_tokens: int) -> AssistantBroke:
    """Return the error for an answer without text. `finish` is the reason why the model stopped."""
    if finish == "length":
        return AssistantBroke(
            f"The assistant used all {max_tokens:,} tokens of an answer before it wrote any text, most likely for "
            "reasoning. Asking again rarely helps: ask for something smaller, or ask your administrator for a model that "
            "reasons less."
        )
    if finish == "content_filter":
        return content_filter_error()
    return AssistantBroke("The assistant returned an empty answer. Ask again, or rephrase your question.")


def content_filter_error() -> AssistantBroke:
    return AssistantBroke("The assistant's content filter withheld the answer. Rephrase your question.")


def timeout_error(seconds: float) -> AnswerTooSlow:
    return AnswerTooSlow(f"The assistant took longer than {seconds:g} s. {SAFE}")


def unknown_model_error(model: str) -> ModelUnknown:
    return ModelUnknown(
        f"The assistant does not have the model {model}. Your administrator can install it there or choose another one "
        f"(VADEMECUM_ASSISTANT_MODEL). {SAFE}"
    )


def status_error(status: int, model: str, retry_after: str | None) -> VademecumError:
    """Return the error for an HTTP status other than 200."""
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return AssistantKeyRefused(
            "The assistant rejects the server's key. Your administrator can set another one "
            f"(VADEMECUM_ASSISTANT_KEY). {SAFE}"
        )
    if status == HTTPStatus.NOT_FOUND:
        return unknown_model_error(model)
    if status == HTTPStatus.TOO_MANY_REQUESTS or (status == HTTPStatus.SERVICE_UNAVAILABLE and retry_after):
        wait = _seconds(retry_after)
        return AssistantBusy(
            f"The assistant is busy. Nothing was changed. Try again in {wait} s.",
            retry_after_s=wait,
        )
    if 300 <= status < 400:
        return AssistantBroke(
            "The assistant's address redirects to another one, which was not followed. Your administrator should set the "
            f"final address (VADEMECUM_ASSISTANT_URL). {SAFE}"
        )
    if 400 <= status < 500:
        return AssistantBroke(
            f"The assistant rejected the question ({status}). It may be too long for the model: ask a shorter question or "
            "include fewer documents."
        )
    return AssistantBroke(f"The assistant failed ({status}). {SAFE}")


def _seconds(retry_after: str | None) -> int:
    """Return the seconds of a Retry-After header, from 1 to RETRY_MAX_S, or RETRY_S for a date or no header."""
    if retry_after is None or not (retry_after.isascii() and retry_after.isdigit()) or len(retry_after) > 9:
        return RETRY_S
    return min(max(int(retry_after), 1), RETRY_MAX_S)
