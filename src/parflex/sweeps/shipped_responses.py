"""Responses that users added, on their way to workers that did not see them added."""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import CodeType
from typing import Any

from parflex.design.questions import ResponseQuestion
from parflex.design.registry import OWN_NAMES, RESPONSES, Response
from parflex.errors import InputError


def packed_responses(questions: Mapping[str, ResponseQuestion], far: bool) -> bytes:
    """Responses of users that are asked for, for workers that are `far`; nothing where there are none."""
    mine = _of_users(questions.values()) if far else []
    if not mine:
        return b""
    try:
        return _packed([(one.name, one.function, one.unit, one.help, one.worst) for one in mine])
    except Exception as error:  # whatever a function holds that cannot be sent
        raise InputError(
            f"the response '{mine[0].name}' cannot be sent to other processes ({error})",
            key="responses",
            value=mine[0].name,
            hint="use plain functions and numbers in it, or compute with jobs",
        ) from None


def take_responses(packed: bytes) -> None:
    """In a worker: know the responses that came with the task."""
    for name, *rest in pickle.loads(packed) if packed else ():
        RESPONSES[name] = Response(name, *rest)


def codes_of(questions: Iterable[ResponseQuestion]) -> list[tuple[str, str]]:
    """Names of responses of users, and digests of their code: a table belongs to it."""
    return [
        (one.name, hashlib.sha256(repr(_told(getattr(one.function, "__code__", None))).encode()).hexdigest())
        for one in _of_users(questions)
    ]


def _of_users(questions: Iterable[ResponseQuestion]) -> list[Response]:
    named = {question.response.name: question.response for question in questions}
    return [one for name, one in sorted(named.items()) if name not in OWN_NAMES]


def _packed(content: list[Any]) -> bytes:
    """By value: the module of a function may not be there on other machines. Dask brings what that takes."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(content)
    with ExitStack() as stack:
        for _, function, *_ in content:
            module = sys.modules.get(getattr(function, "__module__", ""), None)
            if module is not None and module.__name__ not in ("__main__", *cloudpickle.list_registry_pickle_by_value()):
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        return cloudpickle.dumps(content)


def _told(code: CodeType | None) -> Any:
    """What a function does, without the place where it stands."""
    if code is None:
        return None
    constants = [_told(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return code.co_code, constants, code.co_names
