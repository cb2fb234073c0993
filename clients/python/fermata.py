"""A client of a Fermata server: ask people, wait for the answer, and run approved tools.

One file without dependencies, for Python 3.9 or newer. Copy it into your project::

    import fermata

    client = fermata.Client("https://fermata.example", token)

    answer = client.ask("refund", {"order": 17}, state_key="refund-17")
    print(answer.value, answer.by)

    @client.approve_tool
    def refund(order: int, cents: int) -> str: ...

    refund(order=17, cents=8000)   # runs after a person has approved it, maybe with other arguments

A client may be used by several threads. Every call can be repeated: starts, requests and decisions
have ids and are applied once. So the client repeats calls without a response, or with status 429,
502, 503 or 504, always with the same ids.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import functools
import hashlib
import http.client
import inspect
import itertools
import json
import logging
import os
import pathlib
import random
import re
import ssl
import threading
import time
import typing
import urllib.parse
import urllib.request
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, TypedDict, Union

__all__ = [
    "AlreadyDecided", "AlreadyRun", "Answer", "BadAnswer", "Client", "ConditionsNotMet", "ConnectionFailed", "Expired",
    "FermataError", "Forbidden", "InDoubt", "NotApproved", "NotFound", "Problem", "RateLimited", "Rejected", "RequestChanged",
    "Returned", "StateKeyInUse", "ToolFailed", "Unauthenticated", "Unavailable", "WaitTimeout", "Withdrawn", "digest", "new_id",
]

__version__ = "0.1.0"

_log = logging.getLogger("fermata")

_MAX_RESPONSE = 16 << 20  # bytes
_MAX_RESULT = 64 << 10  # bytes of the result in a receipt


# The JSON objects of the API, as far as agents need them. A server may send more fields.


class Interrupt(TypedDict, total=False):
    """An open question of a run."""

    id: str
    requestId: str
    address: str
    kind: str
    data: Any
    answerSchema: Any
    deadline: str


class Outcome(TypedDict, total=False):
    """The outcome of a run, or what it waits for. The status is completed, needs_input, error or pending."""

    status: str
    runId: str
    stateKey: str
    content: str
    output: Any
    finishReason: str
    interrupts: List[Interrupt]
    error: str
    message: str
    deduplicated: bool
    effectiveAt: str


class Conditions(TypedDict, total=False):
    """Conditions of an approval; they must hold when the action begins."""

    until: str
    onlyIf: str


class Decision(TypedDict, total=False):
    verdict: str
    answer: Any
    by: str
    at: str
    source: str
    via: str
    approvedDigest: str
    conditions: Conditions


class Request(TypedDict, total=False):
    """A request to people. ``shown`` is the digest of what is shown."""

    id: str
    stateKey: str
    graphId: str
    kind: str
    state: str
    data: Any
    answerSchema: Any
    shown: str
    masked: List[str]
    createdAt: str
    deadline: str
    decision: Decision
    activity: Dict[str, Any]


class Receipt(TypedDict, total=False):
    """The action of the agent after the decision on its approval."""

    digest: str
    outcome: str
    result: Any
    by: str
    at: str


class Run(TypedDict, total=False):
    stateKey: str
    runId: str
    graphId: str
    generation: int
    status: str
    attempts: int
    createdAt: str
    updatedAt: str


class RunView(Run, total=False):
    """A run with its outcome and its requests."""

    outcome: Outcome
    requests: List[Request]
    receipt: Receipt
    problem: Dict[str, Any]


class AnsweredRequest(TypedDict, total=False):
    """A closed request of the account: an answer, a refusal, expired or withdrawn."""

    stateKey: str
    runId: str
    graphId: str
    interrupt: str
    kind: str
    answer: Any
    by: str
    at: str
    approvedDigest: str
    refusal: Dict[str, Any]
    expired: bool
    withdrawn: bool


class AnswersPage(TypedDict, total=False):
    items: List[AnsweredRequest]
    next: str


class Page(TypedDict, total=False):
    items: List[Any]
    next: str


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a person, or of a rule. ``value`` is not in the repr, because it may be secret."""

    value: Any = dataclasses.field(repr=False)
    kind: str
    by: str = ""
    at: str = ""
    auth: str = ""
    rule: str = ""
    approved_digest: str = ""
    state_key: str = ""
    run_id: str = ""


class FermataError(Exception):
    """The base of all errors of this module."""


class ConnectionFailed(FermataError):
    """No response after all attempts. The call may have been applied: repeat it with the same ids."""


class WaitTimeout(FermataError, TimeoutError):
    """The run has no answer within the given time. The request stays open: wait again with its state key."""

    def __init__(self, state_key: str) -> None:
        super().__init__(f"{state_key}: no answer within the given time; the request stays open")
        self.state_key = state_key


class Problem(FermataError):
    """An error response. ``code`` is stable, see docs/problems.md; the message is for people."""

    def __init__(self, body: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        super().__init__(": ".join(str(p) for p in (body.get("code"), body.get("detail")) if p))
        self.status: int = body.get("status", 0)
        self.code: str = body.get("code", "")
        self.title: str = body.get("title", "")
        self.detail: str = body.get("detail", "")
        #: The invalid parts of the request, each with location and message.
        self.fields: List[Dict[str, str]] = body.get("errors") or []
        #: The decision that was recorded first, with the code already_decided.
        self.decided: Optional[Dict[str, str]] = body.get("decided")
        #: The Retry-After delay in seconds.
        self.retry_after = retry_after

    @property
    def again(self) -> bool:
        """Whether the same call may succeed later. It is applied once."""
        return self.status in (429, 502, 503, 504) and self.code != "agent_limit"


class Unauthenticated(Problem):
    """The token is missing, wrong or revoked."""


class Forbidden(Problem):
    """The role of the token, or the rules of the request, do not allow this."""


class NotFound(Problem):
    """The account has no such object."""


class StateKeyInUse(Problem):
    """Another question with this state key is open. Choose another state key."""


class AlreadyDecided(Problem):
    """Another decision was recorded first; ``decided`` says by whom and when."""


class BadAnswer(Problem):
    """The answer does not match the schema. The request is still open."""


class RequestChanged(Problem):
    """The request differs from what was shown. Read it again and decide again."""


class RateLimited(Problem):
    """Too many calls or requests; ``retry_after`` has the delay in seconds, if the server knows it."""


class Unavailable(Problem):
    """The server is unavailable. The call may have been applied: repeat it with the same ids."""


_PROBLEMS: Dict[str, type] = {
    "unauthenticated": Unauthenticated, "forbidden": Forbidden, "not_eligible": Forbidden, "stronger_auth_required": Forbidden,
    "identity_mismatch": Forbidden, "not_found": NotFound, "unknown_graph": NotFound, "state_key_in_use": StateKeyInUse,
    "already_decided": AlreadyDecided, "bad_answer": BadAnswer, "digest_mismatch": RequestChanged, "superseded": RequestChanged,
    "rate_limited": RateLimited, "agent_limit": RateLimited, "too_many_open": RateLimited, "too_many_runs": RateLimited,
    "unavailable": Unavailable,
}


class NotApproved(FermataError):
    """The request has no usable answer. The tool did not run."""

    def __init__(self, state_key: str, code: str, reason: str = "", by: str = "") -> None:
        super().__init__(f"{state_key}: {code}" + (f" by {by}" if by else "") + (f": {reason}" if reason else ""))
        self.state_key, self.code, self.reason, self.by = state_key, code, reason, by


class Rejected(NotApproved):
    """A person rejected it, or a rule denied it (code ``denied``)."""


class Returned(NotApproved):
    """A person returned it for redesign, with a reason."""


class Expired(NotApproved):
    """It was not decided in time: neither approved nor rejected."""


class Withdrawn(NotApproved):
    """The run was cancelled or superseded."""


class ConditionsNotMet(NotApproved):
    """The conditions of the approval do not hold now, or could not be checked."""


_REFUSALS: Dict[str, type] = {
    "rejected": Rejected, "denied": Rejected, "reject": Rejected, "returned": Returned, "return": Returned, "expired": Expired,
    "expire": Expired, "cancelled": Withdrawn, "superseded": Withdrawn,
}


class InDoubt(FermataError):
    """A call with this state key began the tool, and sent no receipt: it may have had its effect.

    Find out what happened, and send the receipt with :meth:`Client.send_receipt`; the next call uses it.
    """


class ToolFailed(FermataError):
    """An earlier call with this state key ran the tool, and its receipt says that the tool failed."""


class AlreadyRun(FermataError):
    """An earlier call with this state key ran the tool, and its receipt has no result."""


class _Secret:
    """Keeps the token out of reprs and ``vars(client)``."""

    __slots__ = ("get",)

    def __init__(self, value: str) -> None:
        self.get = lambda: value

    def __repr__(self) -> str:
        return "***"


class _Number(float):
    """A float that remembers its JSON text, which the digest of an action covers."""

    text: str

    def __new__(cls, text: str) -> "_Number":
        number = super().__new__(cls, text)
        number.text = str(text)
        return number


def new_id() -> str:
    """Return a unique id."""
    return uuid.uuid4().hex


def digest(action: str, args: Any) -> str:
    """Return the digest of an action with its arguments, as the server computes it."""
    name = _quote(action).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return hashlib.sha256(f"{name}\n{_canonical(args)}".encode()).hexdigest()


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _canonical(value: Any) -> str:
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_quote(name)}:{_canonical(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return value.text if isinstance(value, _Number) else json.dumps(value, allow_nan=False)


def _encode(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode()  # an error for NaN, which is not JSON


def _decode(data: bytes) -> Any:
    return json.loads(data, parse_float=_Number, parse_int=lambda text: _Number(text) if text == "-0" else int(text))


def _time(text: str) -> datetime:
    """Parse an RFC 3339 time; fractions of a second are ignored."""
    parts = re.fullmatch(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", text)
    if not parts:
        raise ValueError("not an RFC 3339 time")
    day, clock, sign, hours, minutes = parts.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=timezone(-offset if sign == "-" else offset))


def _name(value: str) -> str:
    """Escape an id for a path. An empty one, ``.`` or ``..`` would be about another object: nothing is sent."""
    if value in ("", ".", ".."):
        raise ValueError(f"{value!r} is not a valid id: nothing was sent")
    return urllib.parse.quote(value, safe="")


def _given(**values: Any) -> Dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


class Client:
    """A client of one server.

    ``url`` and ``token`` default to the environment variables FERMATA_URL and FERMATA_TOKEN. ``tries`` is how often a
    call is attempted. ``timeout`` is how long a connection may be silent during a call, ``idle_timeout`` how long during
    an event stream, both in seconds; a server sends a heartbeat every 15 seconds. The proxies of the environment are
    used (HTTPS_PROXY, NO_PROXY). Redirects are not followed: a server never redirects.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, tries: int = 5, timeout: float = 90.0,
                 idle_timeout: float = 60.0, ssl_context: Optional[ssl.SSLContext] = None) -> None:
        base = urllib.parse.urlsplit(url or os.environ.get("FERMATA_URL", ""))
        if base.scheme not in ("http", "https") or not base.hostname:
            raise ValueError("the URL of the server is missing or not an http or https URL (or set FERMATA_URL)")
        if base.username or base.password:
            raise ValueError("the URL of the server must not contain a password; pass the token")
        self._base = base
        self._prefix = base.path.rstrip("/") + "/api/v1"
        token = token or os.environ.get("FERMATA_TOKEN", "")
        if not re.fullmatch(r"[!-~]*", token):  # http.client would name it in its error
            raise ValueError("the token has characters that a header cannot have")
        self._token = _Secret(token)
        self._tries, self._timeout, self._idle_timeout, self._ssl = max(tries, 1), timeout, idle_timeout, ssl_context
        host = base.hostname if base.port is None else f"{base.hostname}:{base.port}"
        proxy = None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(base.scheme)
        self._proxy = urllib.parse.urlsplit(proxy if "://" in proxy else "http://" + proxy) if proxy else None

    def __repr__(self) -> str:
        return f"Client({self._base.scheme}://{self._base.netloc}{self._base.path})"

    # Runs

    def start(self, graph_id: str, input: Any, *, state_key: Optional[str] = None, start_id: Optional[str] = None,
              supersede: Optional[bool] = None, wait: Optional[int] = None) -> Outcome:
        """Start a run and return its outcome. The same start with the same state key is applied once.

        ``wait`` is how long the server waits for the outcome, in seconds; then the status is ``pending``.
        """
        body = _given(graphId=graph_id, stateKey=state_key or "key_" + new_id(), startId=start_id, supersede=supersede)
        body["input"] = input
        return self._post("/ai/chat", body, wait)

    def resume(self, state_key: str, value: Any, *, interrupt_id: Optional[str] = None, resume_id: Optional[str] = None,
               wait: Optional[int] = None) -> Outcome:
        """Answer the only open interrupt of a run. An approval needs its interrupt id."""
        body = _given(stateKey=state_key, resumeId=resume_id or new_id(), interruptId=interrupt_id)
        body["resumeValue"] = value
        return self._post("/ai/chat", body, wait)

    def resume_targets(self, state_key: str, values: Mapping[str, Any], *, resume_id: Optional[str] = None,
                       wait: Optional[int] = None) -> Outcome:
        """Answer some of the open interrupts of a run, by id. The others stay open."""
        body = {"stateKey": state_key, "resumeId": resume_id or new_id(), "resumeTargets": dict(values)}
        return self._post("/ai/chat", body, wait)

    def runs(self, *, status: Optional[List[str]] = None, graph_id: Optional[str] = None, cursor: Optional[str] = None,
             limit: Optional[int] = None) -> Page:
        """List the runs of the account, newest first."""
        return self._get("/runs", _given(status=",".join(status) if status else None, graphId=graph_id, cursor=cursor, limit=limit))

    def run(self, state_key: str) -> RunView:
        """Return a run with its outcome and its requests."""
        return self._get("/runs/" + _name(state_key))

    def cancel(self, state_key: str) -> None:
        """Cancel a run; its request can no longer be answered. An earlier decision remains valid."""
        self._call("POST", "/runs/" + _name(state_key) + "/cancel")

    def graphs(self) -> Page:
        """List the graphs and agents."""
        return self._get("/graphs")

    def graph(self, graph_id: str) -> Dict[str, Any]:
        """Return a graph with its drawing."""
        return self._get("/graphs/" + _name(graph_id))

    def run_graph(self, state_key: str) -> Dict[str, Any]:
        """Return the graph of a run; its drawing marks the waiting nodes."""
        return self._get("/runs/" + _name(state_key) + "/graph")

    def wait(self, state_key: str, *, over: bool = False, timeout: Optional[float] = None) -> Outcome:
        """Wait until a run has an open interrupt or has ended; with ``over``, only until it has ended.

        Without a timeout it waits forever. After ``timeout`` seconds it raises :class:`WaitTimeout`.
        """
        for event in self.events(state_key, timeout=timeout):
            if event["type"] == "outcome" and (not over or _over(event["outcome"])):
                return event["outcome"]
        raise ConnectionFailed(f"the events of {state_key} ended without an outcome")

    def events(self, state_key: str, *, after: Optional[str] = None, timeout: Optional[float] = None,
               stop: Optional[threading.Event] = None) -> Iterator[Dict[str, Any]]:
        """Follow the events of a run until it ends.

        Stored events have an ``id``: pass the last one as ``after`` to continue. Others have the type outcome, step or
        token. After a lost connection it reconnects and continues after the last event. If the server cannot be reached
        at first, it raises after the usual attempts. ``stop`` ends it, with the next event or heartbeat.
        """
        path = "/runs/" + _name(state_key) + "/events"
        deadline = None if timeout is None else time.monotonic() + timeout
        met, lost = False, 1  # after a first connection, an outage is not a reason to give up

        def left() -> float:
            remaining = float("inf") if deadline is None else deadline - time.monotonic()
            if remaining <= 0 or (stop is not None and stop.is_set()):
                raise WaitTimeout(state_key)
            return remaining

        while True:
            problem: Optional[FermataError] = None
            try:
                headers = {"Accept": "text/event-stream", **({"Last-Event-ID": after} if after else {})}
                with self._open("GET", path, headers=headers, timeout=min(self._idle_timeout, left())) as (response, sock):
                    _expect_type(response, "text/event-stream")  # otherwise a proxy's page would be read again and again
                    met = True
                    for kind, data in _messages(response, sock, lambda: min(self._idle_timeout, left())):
                        lost = 0  # back off from a server that closes the stream after the first event
                        event = _decode(data)
                        if kind == "outcome":
                            event = {"type": "outcome", "outcome": event}
                        elif kind in ("step", "token"):
                            event["type"] = kind
                        else:
                            after = event.get("id") or after
                        yield event
                        if kind == "outcome" and _over(event["outcome"]):
                            return
            except (Problem, ConnectionFailed) as error:
                left()
                if not _may_repeat(error) or (not met and lost >= self._tries):
                    raise
                problem = error
            lost += 1
            _pause(max(lost - 1, 1), problem, left())

    # Requests

    def create_request(self, kind: str, data: Any, *, answer_schema: Optional[Mapping[str, Any]] = None,
                       state_key: Optional[str] = None, timeout: Optional[int] = None, receipt: Optional[bool] = None,
                       allow_duplicate: Optional[bool] = None, callback: Optional[Mapping[str, str]] = None,
                       default_answer: Any = None, requester: Optional[str] = None, environment: Optional[str] = None,
                       facts: Optional[Mapping[str, Any]] = None, wait: Optional[int] = None) -> Outcome:
        """Create a request of an external agent and return at once, usually with the status ``needs_input``.

        Without a state key it returns the open request of the agent with the same kind and data, if there is one. With
        ``allow_duplicate`` the request gets a state key. ``timeout`` is the time until the request expires, in seconds.
        ``default_answer`` is the answer at the deadline, if the rules of the server use it. ``requester`` is the person
        for whom the agent works, and ``environment`` is that of the request: the rules of the server see both as
        ``req.stated``, people read them, and they replace nothing that the server knows. Only the rules see ``facts``.
        """
        if state_key is None and allow_duplicate:
            state_key = "ask_" + new_id()
        body = _given(stateKey=state_key, answerSchema=answer_schema, timeout=timeout, receipt=receipt,
                      allowDuplicate=allow_duplicate, callback=callback, defaultAnswer=default_answer,
                      requester=requester, environment=environment, facts=facts)
        body.update(kind=kind, data=data)
        return self._post("/requests", body, wait)

    def ask(self, kind: str, data: Any, *, answer_schema: Optional[Mapping[str, Any]] = None, state_key: Optional[str] = None,
            timeout: Optional[int] = None, allow_duplicate: Optional[bool] = None, default_answer: Any = None,
            requester: Optional[str] = None, environment: Optional[str] = None, facts: Optional[Mapping[str, Any]] = None,
            wait_timeout: Optional[float] = None) -> Answer:
        """Create a request and wait for its answer.

        With a state key, the same call after a crash continues to wait, or returns the answer. It raises a
        :class:`NotApproved` if there is no answer, and :class:`WaitTimeout` after ``wait_timeout`` seconds.
        """
        outcome = self.create_request(kind, data, answer_schema=answer_schema, state_key=state_key, timeout=timeout,
                                      allow_duplicate=allow_duplicate, default_answer=default_answer,
                                      requester=requester, environment=environment, facts=facts)
        return self._answer(outcome.get("stateKey") or state_key or "", outcome, wait_timeout)

    def _answer(self, key: str, outcome: Outcome, wait_timeout: Optional[float], stop: Optional[threading.Event] = None) -> Answer:
        if not _over(outcome):
            events = self.events(key, timeout=wait_timeout, stop=stop)
            outcome = next(e["outcome"] for e in events if e["type"] == "outcome" and _over(e["outcome"]))
        if outcome["status"] == "error":
            code = outcome.get("error", "failed")
            raise _REFUSALS.get(code, NotApproved)(key, code, outcome.get("message", ""))
        made = outcome.get("output")
        if not isinstance(made, dict) or "kind" not in made:
            raise FermataError(f"{key}: the run is not a request of an external agent")
        return Answer(value=made.get("answer"), kind=made["kind"], by=made.get("by", ""), at=made.get("at", ""), auth=made.get("auth", ""),
                      rule=made.get("rule", ""), approved_digest=made.get("approvedDigest", ""), state_key=key, run_id=outcome.get("runId", ""))

    def requests(self, *, state: Optional[str] = None, kind: Optional[str] = None, search: Optional[str] = None,
                 order: Optional[str] = None, cursor: Optional[str] = None, limit: Optional[int] = None) -> Page:
        """List requests: open ones and oldest first by default."""
        return self._get("/requests", _given(state=state, kind=kind, q=search, order=order, cursor=cursor, limit=limit))

    def request(self, id: str) -> Request:
        """Return a request. Sensitive values are masked; see :meth:`reveal`."""
        return self._get("/requests/" + _name(id))

    def reveal(self, id: str) -> Request:
        """Return a request with its masked values. The audit log records who saw them."""
        return self._call("POST", "/requests/" + _name(id) + "/reveal")

    def decide(self, request: Union[Request, str], answer: Any, *, shown: Optional[str] = None, resume_id: Optional[str] = None,
               wait: Optional[int] = None) -> Outcome:
        """Decide a request. Given a request and not only its id, the decision is rejected if the request has changed."""
        id = request if isinstance(request, str) else request["id"]
        if shown is None and not isinstance(request, str):
            shown = request.get("shown")
        body = _given(resumeId=resume_id or new_id(), shown=shown)
        body["answer"] = answer
        return self._post("/requests/" + _name(id) + "/decision", body, wait)

    def reply(self, id: str, question: int, text: str) -> Request:
        """Reply to a clarification request, numbered from 1. The request stays open."""
        return self._call("POST", "/requests/" + _name(id) + "/reply", body={"question": question, "text": text},
                          headers={"Idempotency-Key": new_id()})

    def answers(self, *, cursor: Optional[str] = None, limit: Optional[int] = None) -> AnswersPage:
        """List requests that were closed after a cursor, in order and each once.

        Store ``next`` after processing the page. There are no more yet if it equals the given cursor.
        """
        return self._get("/answers", _given(cursor=cursor, limit=limit))

    def send_receipt(self, state_key: str, digest: str, outcome: str, result: Any = None) -> Receipt:
        """Say what was done after an approval: done, failed or not_done. The same receipt can be sent again."""
        body = {"digest": digest, "outcome": outcome, **_given(result=result)}
        return self._call("POST", "/runs/" + _name(state_key) + "/receipt", body=body)

    def approve_tool(self, func: Optional[Callable[..., Any]] = None, *, action: Optional[str] = None,
                     summary: Optional[Callable[..., str]] = None, editable: bool = True,
                     args_schema: Optional[Mapping[str, Any]] = None, state_key: Optional[Callable[..., str]] = None,
                     idempotent: bool = False, journal: Optional[Union[str, "os.PathLike[str]"]] = None,
                     only_if: Optional[Callable[[str, Dict[str, Any]], bool]] = None, timeout: Optional[int] = None,
                     wait_timeout: Optional[float] = None, send_result: bool = True) -> Any:
        """Run a function only after an approval, with the approved arguments, and send the receipt.

        The function gets its arguments as JSON values, because those are what people approve. It may be async.

        - ``action``: the name that the policy knows; the name of the function by default.
        - ``summary``: returns one line for the approver, from the arguments of the call.
        - ``editable``: approvers may change the arguments where the policy allows it. Their schema is derived from the
          type hints, unless ``args_schema`` is given.
        - ``state_key``: returns the state key of a call, from its arguments. After a crash the same call continues: it
          waits for the same request, and returns the recorded result if the tool has run. Without it each call asks.
          It needs ``idempotent`` (the tool may be called again with the same arguments) or ``journal`` (a directory
          that survives a crash; it records that the tool was begun. If there is no receipt then, :class:`InDoubt`).
        - ``only_if``: evaluates a condition of the approval, a CEL expression, with the arguments. Without it an
          approval with such a condition raises :class:`ConditionsNotMet`.
        - ``timeout``: seconds until the request expires. ``wait_timeout``: seconds until :class:`WaitTimeout`.
        - ``send_result``: the receipt contains the result, if it is JSON of at most 64 KiB.
        """
        if state_key is not None and not idempotent and journal is None:
            raise ValueError("approve_tool: a state_key needs idempotent=True or a journal, so that a crash does not run the tool twice")

        def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
            tool = _Tool(self, func, action or func.__name__, summary, (args_schema or _args_schema(func)) if editable else None, state_key,
                         idempotent, None if journal is None else pathlib.Path(journal), only_if, timeout, wait_timeout, send_result)
            return tool.wrap_async() if inspect.iscoroutinefunction(func) else tool.wrap()

        return decorate if func is None else decorate(func)

    # HTTP

    def _get(self, path: str, query: Optional[Mapping[str, Any]] = None) -> Any:
        return self._call("GET", path, query=query)

    def _post(self, path: str, body: Any, wait: Optional[int]) -> Any:
        return self._call("POST", path, body=body, headers=None if wait is None else {"Prefer": f"wait={wait}"})

    def _call(self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None, body: Any = None,
              headers: Optional[Mapping[str, str]] = None) -> Any:
        """Make a call, with retries. The body is created once, so every attempt has the same ids."""
        data = None if body is None else _encode(body)
        for tried in itertools.count(1):
            try:
                with self._open(method, path, query=query, data=data, headers=headers, timeout=self._timeout) as (response, _):
                    if response.status == 204:
                        return None
                    _expect_type(response, "application/json")
                    return _parse(response, _read(response))
            except (Problem, ConnectionFailed) as error:
                if tried >= self._tries or not _may_repeat(error):
                    raise
                _pause(tried, error)
        return None

    @contextlib.contextmanager
    def _open(self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None, data: Optional[bytes] = None,
              headers: Optional[Mapping[str, str]] = None, timeout: float) -> Iterator[Tuple[http.client.HTTPResponse, Any]]:
        """Make one attempt. An error response is raised as a :class:`Problem`."""
        target = self._prefix + path + ("?" + urllib.parse.urlencode(query) if query else "")
        sent = {"Accept": "application/json", "User-Agent": "fermata-python/" + __version__, **(headers or {})}
        if self._token.get():
            sent["Authorization"] = "Bearer " + self._token.get()
        if data is not None:
            sent["Content-Type"] = "application/json"
        conn = self._connection(timeout)
        if self._proxy and self._base.scheme == "http":
            target = f"http://{self._base.netloc}{target}"
            sent.update(_proxy_auth(self._proxy))
        try:
            try:
                conn.connect()
                sock = conn.sock
                conn.request(method, target, body=data, headers=sent)
                response = conn.getresponse()
                if response.status >= 300:
                    raise _problem(response, _read(response))
                yield response, sock
            except (OSError, http.client.HTTPException) as error:
                raise ConnectionFailed(f"{method} {path}: {type(error).__name__}: {error}") from error
        finally:
            conn.close()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        host, port = typing.cast(str, self._base.hostname), self._base.port
        where = (self._proxy.hostname or "", self._proxy.port or 80) if self._proxy else (host, port)
        if self._base.scheme == "http":
            return http.client.HTTPConnection(where[0], where[1], timeout=timeout)
        conn = http.client.HTTPSConnection(where[0], where[1], timeout=timeout, context=self._ssl or ssl.create_default_context())
        if self._proxy:
            conn.set_tunnel(host, port or 443, headers=_proxy_auth(self._proxy))
        return conn


def _proxy_auth(proxy: urllib.parse.SplitResult) -> Dict[str, str]:
    if not proxy.username:
        return {}
    user = urllib.parse.unquote(proxy.username) + ":" + urllib.parse.unquote(proxy.password or "")
    return {"Proxy-Authorization": "Basic " + base64.b64encode(user.encode()).decode()}


def _read(response: http.client.HTTPResponse) -> bytes:
    """Read a body. A truncated one is a lost connection, so that it is retried."""
    data = b""
    while len(data) <= _MAX_RESPONSE:
        chunk = response.read(1 << 16)
        data += chunk
        if not chunk:
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return data
    raise Problem({"status": response.status, "code": "http", "detail": "the response is too large"})


def _problem(response: http.client.HTTPResponse, data: bytes) -> Problem:
    after = response.headers.get("Retry-After", "")
    retry_after = float(after) if after.isdecimal() else None
    try:
        body = json.loads(data)
        if isinstance(body, dict) and isinstance(body.get("code"), str) and body["code"]:
            return _PROBLEMS.get(body["code"], Problem)({**body, "status": response.status}, retry_after)
    except ValueError:
        pass  # a proxy's page: the status is sufficient
    return Problem({"status": response.status, "code": "http", "detail": f"{response.status} {response.reason}".strip()}, retry_after)


def _expect_type(response: http.client.HTTPResponse, media_type: str) -> None:
    """Raise unless a response has a media type. A proxy's sign-in page must not count as success."""
    if response.headers.get("Content-Type", "").split(";")[0].strip().lower() != media_type:
        raise Problem({"status": response.status, "code": "http", "detail": f"not a response of a Fermata server: {response.status}"})


def _parse(response: http.client.HTTPResponse, data: bytes) -> Any:
    try:
        return _decode(data)
    except ValueError:
        raise Problem({"status": response.status, "code": "http", "detail": "the response is not JSON"}) from None


def _may_repeat(error: FermataError) -> bool:
    return error.again if isinstance(error, Problem) else True


def _pause(tried: int, error: Optional[FermataError], longest: float = 60.0) -> None:
    """Wait before the next attempt, with exponential backoff, jitter, and at least the Retry-After delay."""
    asked = (error.retry_after or 0.0) if isinstance(error, Problem) else 0.0
    delay = min(max(asked, 0.05 * 2 ** min(tried, 7)), 60.0) * (1 + random.random() / 2)
    time.sleep(min(delay, longest))


def _over(outcome: Mapping[str, Any]) -> bool:
    return outcome.get("status") in ("completed", "error")


def _messages(response: http.client.HTTPResponse, sock: Any, limit: Callable[[], float]) -> Iterator[Tuple[str, bytes]]:
    """Parse server-sent events. An incomplete message before a lost connection is ignored."""
    kind, data = "message", []
    while True:
        sock.settimeout(limit())
        line = response.readline(_MAX_RESPONSE)
        if not line.endswith(b"\n"):
            return
        line = line.rstrip(b"\r\n")
        if not line:
            if data:
                yield kind, b"\n".join(data)
            kind, data = "message", []
            continue
        name, _, text = line.partition(b":")
        text = text[1:] if text.startswith(b" ") else text
        if name == b"event":
            kind = text.decode()
        elif name == b"data":
            data.append(text)


# Approved tools


@dataclasses.dataclass
class _Call:
    """A call of a tool that was approved: either its recorded result, or what to run."""

    key: str
    run_id: str
    args: Dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    digest: str = ""
    conditions: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    done: bool = False
    result: Any = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass
class _Tool:
    client: Client
    func: Callable[..., Any]
    action: str
    summary: Optional[Callable[..., str]]
    schema: Optional[Mapping[str, Any]]
    state_key: Optional[Callable[..., str]]
    idempotent: bool
    journal: Optional[pathlib.Path]
    only_if: Optional[Callable[[str, Dict[str, Any]], bool]]
    timeout: Optional[int]
    wait_timeout: Optional[float]
    send_result: bool

    def wrap(self) -> Callable[..., Any]:
        @functools.wraps(self.func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            call = self.approved(args, kwargs)
            if call.done:
                return call.result
            bound = self.begin(call)
            try:
                result = self.func(*bound.args, **bound.kwargs)
            except BaseException as error:
                self.failed(call, error)
                raise
            self.finished(call, result)
            return result

        return wrapper

    def wrap_async(self) -> Callable[..., Any]:
        @functools.wraps(self.func)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            stop = threading.Event()
            try:
                call = await asyncio.to_thread(self.approved, args, kwargs, stop)
            except asyncio.CancelledError:
                stop.set()
                raise
            if call.done:
                return call.result
            bound = await asyncio.to_thread(self.begin, call)
            try:
                result = await self.func(*bound.args, **bound.kwargs)
            except BaseException as error:
                await asyncio.to_thread(self.failed, call, error)
                raise
            await asyncio.to_thread(self.finished, call, result)
            return result

        return wrapper

    def approved(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], stop: Optional[threading.Event] = None) -> _Call:
        """Ask, and wait for the approval."""
        bound = inspect.signature(self.func).bind(*args, **kwargs)
        bound.apply_defaults()
        asked = _decode(_encode(dict(bound.arguments)))  # what people see is what the tool gets
        key = self.state_key(*args, **kwargs) if self.state_key else "tool_" + new_id()
        data = {"action": self.action, "args": asked, **_given(argsSchema=self.schema, summary=self.summary and self.summary(*args, **kwargs))}
        outcome = self.client.create_request("approval", data, state_key=key, timeout=self.timeout, receipt=True)
        answer = self.client._answer(key, outcome, self.wait_timeout, stop)
        decision = answer.value if isinstance(answer.value, dict) else {}
        if decision.get("verb") != "approve":
            verb = str(decision.get("verb", "rejected"))
            raise _REFUSALS.get(verb, Rejected)(key, verb, str(decision.get("reason", "")), answer.by)
        call = _Call(key, answer.run_id, decision.get("args", asked), answer.approved_digest, decision.get("conditions") or {})
        if self.state_key:
            self.check_receipt(call)
        return call

    def check_receipt(self, call: _Call) -> None:
        """Use the receipt of an earlier call with the same state key."""
        receipt = self.client.run(call.key).get("receipt")
        if receipt is None:
            return
        if receipt["outcome"] == "failed":
            raise ToolFailed(f"{call.key}: the receipt of an earlier call says that the tool failed")
        if receipt["outcome"] == "not_done":
            raise ConditionsNotMet(call.key, "not_done", "the receipt of an earlier call says that the tool did not run")
        if "result" not in receipt and self.send_result:
            raise AlreadyRun(f"{call.key}: the tool has run, and its receipt has no result")
        call.done, call.result = True, receipt.get("result")

    def begin(self, call: _Call) -> inspect.BoundArguments:
        """Check the approval once more, right before the tool runs, and record that it is begun."""
        computed = digest(self.action, call.args)
        if computed != call.digest:
            self.refuse(call, "the arguments differ from the approved ones")
        until, only_if = call.conditions.get("until"), call.conditions.get("onlyIf")
        if until and datetime.now(timezone.utc) >= _time(until):
            self.refuse(call, f"the approval ended at {until}")
        if only_if and not (self.only_if and self.only_if(only_if, call.args)):
            self.refuse(call, "the condition does not hold, or there is no only_if to check it")
        try:
            bound = inspect.signature(self.func).bind_partial()
            bound.arguments.update(call.args)
            inspect.signature(self.func).bind(*bound.args, **bound.kwargs)
            if set(call.args) - set(inspect.signature(self.func).parameters):
                raise TypeError("unknown argument")
        except (TypeError, ValueError):
            self.refuse(call, "the approved arguments do not fit the function")
        if self.journal is not None and not self.note(call) and not self.idempotent:
            raise InDoubt(f"{call.key}: the tool was begun and has no receipt; find out what happened and send the receipt")
        return bound

    def note(self, call: _Call) -> bool:
        """Record on disk that the tool is begun. It returns false if an earlier call has recorded it."""
        assert self.journal is not None
        self.journal.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(f"{self.client!r}\n{call.run_id}".encode()).hexdigest()
        try:
            with open(self.journal / name, "x", encoding="utf-8") as file:
                file.write(json.dumps({"stateKey": call.key, "digest": call.digest}) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            return False
        with contextlib.suppress(OSError):  # Windows cannot open a directory
            place = os.open(self.journal, os.O_RDONLY)
            try:
                os.fsync(place)
            finally:
                os.close(place)
        return True

    def refuse(self, call: _Call, reason: str) -> typing.NoReturn:
        self.receipt(call, "not_done")
        raise ConditionsNotMet(call.key, "not_done", reason)

    def failed(self, call: _Call, error: BaseException) -> None:
        self.receipt(call, "failed", {"error": type(error).__name__})  # the text may contain secrets

    def finished(self, call: _Call, result: Any) -> None:
        with contextlib.suppress(TypeError, ValueError):
            if self.send_result and len(_encode(result)) <= _MAX_RESULT:
                self.receipt(call, "done", result)
                return
        self.receipt(call, "done")

    def receipt(self, call: _Call, outcome: str, result: Any = None) -> None:
        """Send the receipt. An error does not hide the result of the tool; the server reports a missing receipt."""
        try:
            self.client.send_receipt(call.key, call.digest, outcome, result)
        except FermataError as error:
            _log.warning("receipt not sent", extra={"state_key": call.key, "outcome": outcome, "error": str(error)})


def _args_schema(func: Callable[..., Any]) -> Dict[str, Any]:
    """Derive the JSON Schema of edited arguments from the type hints. Unknown types accept any value."""
    try:
        hints = typing.get_type_hints(func)
    except Exception:  # a name in a hint that is not defined at run time
        hints = {}
    parameters = inspect.signature(func).parameters.values()
    return {
        "type": "object",
        "properties": {p.name: _type_schema(hints.get(p.name, Any)) for p in parameters},
        "required": [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)],
        "additionalProperties": False,
    }


def _type_schema(hint: Any) -> Dict[str, Any]:
    simple: Dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    if hint in simple:
        return {"type": simple[hint]}
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin is Union or type(hint).__name__ == "UnionType":
        return {"anyOf": [_type_schema(part) for part in parts]}
    if hint is list or origin is list:
        return {"type": "array", **({"items": _type_schema(parts[0])} if parts else {})}
    if hint is dict or origin is dict:
        return {"type": "object", **({"additionalProperties": _type_schema(parts[1])} if len(parts) == 2 else {})}
    return {}
