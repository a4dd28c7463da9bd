"""No SDK gains an exception behind our back."""

from __future__ import annotations

import inspect

import aiohttp.client_exceptions
import anthropic  # noqa: TID253 - the subject
import httpx2
import openai  # noqa: TID253 - the subject
import pytest
from anthropic import _error_classes  # noqa: TID253 - the subject
from google.genai import errors as google_errors  # noqa: TID253 - the subject

from clash.providers import anthropic as our_anthropic
from clash.providers import google as our_google
from clash.providers import http as our_http
from clash.providers import openai as our_openai
from clash.providers import sdk, transport
from clash.providers.failures import from_answer


def exceptions(module):
    """The exceptions that a module offers, whether it defines or imports them."""
    return {
        name: cls
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, BaseException)
        and cls.__module__.startswith(module.__name__.split(".")[0])
    }


@pytest.mark.parametrize(
    ("module", "our_failure"),
    [
        (openai, our_openai.ERRORS),
        (openai._exceptions, our_openai.ERRORS),
        (anthropic._exceptions, our_anthropic.ERRORS),
        (google_errors, our_google.ERRORS),
        (httpx2, sdk.ERRORS),
        (aiohttp.client_exceptions, our_http.ERRORS),
    ],
    ids=["openai", "openai._exceptions", "anthropic", "google", "httpx2", "aiohttp"],
)
def test_every_exception_has_a_meaning(module, our_failure):
    exception_names = {n for n, cls in exceptions(module).items() if not issubclass(cls, Warning)}
    assert exception_names
    assert {cls.__name__ for n, cls in exceptions(module).items() if n in exception_names} <= set(
        our_failure
    )


def test_under_an_sdk_each_exception_of_aiohttp_may_be_as_well_billed():
    for name, cls in exceptions(aiohttp.client_exceptions).items():
        if not issubclass(cls, aiohttp.ClientError):  # of web sockets, and warnings
            continue
        _, may_be_billed = sdk.ERRORS[transport.counterpart(cls).__name__]
        assert may_be_billed or not our_http.ERRORS[name][1], name


def test_anthropics_classes_for_single_codes_have_a_base_with_a_meaning():
    for cls in exceptions(_error_classes).values():
        assert any(base.__name__ in our_anthropic.ERRORS for base in cls.__mro__), cls


MONEY = {
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
    "linked_organization_spend_limit_reached",
    "linked_organization_billing_unavailable",
    "organization_on_hold",
}


def test_anthropics_codes_about_money_stop_and_its_other_429s_do_not():
    """The codes come from the SDK's own table, so that a new one about money is noticed."""
    for status, code in _error_classes.ERROR_CLASSES:
        if code is None:
            continue
        body = {"error": {"type": "x", "message": "", "details": {"error_code": code}}}
        failure = from_answer(status, {}, body)
        if code in MONEY:
            assert (failure.error_class, failure.action) == ("quota", "stop"), code
        elif status == 429:
            assert (failure.error_class, failure.action) == ("rate_limit", "retry"), code
        if "spend_limit" in code and status in (402, 429):
            assert code in MONEY, f"a new code about money: {code}"


def test_openais_codes_about_money_stop():
    from typing import get_args

    from openai.types.beta import session_turn_error

    codes = get_args(session_turn_error.SessionTurnError.model_fields["code"].annotation)
    literal = {c for part in codes for c in (get_args(part) or (part,)) if isinstance(c, str)}
    money = {c for c in literal if any(word in c for word in ("spend", "credit", "usage_limit"))}
    assert money
    for code in money:
        body = {"error": {"message": "", "type": code, "code": code}}
        assert from_answer(429, {}, body).action == "stop", code
