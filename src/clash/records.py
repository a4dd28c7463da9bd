"""The records of a run: one class for each kind of line in a run folder.

The names are a contract (``docs/run-folder.md``). A reader ignores keys it does not know, so that
a newer clash may add some.
"""

from __future__ import annotations

from operator import not_
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA_VERSION = 1

Role = Literal["voting", "observer"]
Purpose = Literal["generate", "user", "criteria", "judge"]
SELF = "self:"
"""Prefix of the judge id under which a candidate judges."""
Outcome = Literal["ok", "truncated", "refusal", "blocked", "empty", "error"]
Parse = Literal["clean", "repaired", "failed"]
JsonMode = Literal["schema", "json", "text"]
"""How JSON is requested: with a schema that the provider enforces, as any JSON, or in words."""
Kind = Literal["eval", "validate", "rerun", "redteam"]
Status = Literal["running", "complete", "partial", "failed"]
Groups = list[list[str]]
"""A ranking: groups, best first; a group of two is a tie."""
CONTRADICTION = "the scores contradict the ranking"
MISSING_REASON = "a low score without a reason"
"""Flags of the judgment itself; all other flags are of the responses that the judge read."""
Dollars = Annotated[float, Field(ge=0), msgspec.Meta(ge=0)]
"""US dollars of a record. A negative cost would add to what a resumed run may spend."""
Seconds = Annotated[float, Field(ge=0), msgspec.Meta(ge=0)]
"""A duration."""


class Record(BaseModel):
    """A line of a run folder.

    A field with ``exclude_if`` is left out where it is empty, so that a run without it writes what
    it wrote before the field existed.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    v: int = SCHEMA_VERSION


def _is_unset(value: object) -> bool:
    return value is None


WhereSet = Field(default=None, exclude_if=_is_unset)
"""A field of runs that judge one text at a time: records of other runs do not have it."""


class Turn(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["user", "assistant", "system"]
    content: str


class Tokens(BaseModel):
    """Tokens of a call as the provider counted them; null is unknown, not zero.

    ``input`` includes cached tokens, ``output`` includes reasoning, whatever the vendor's own
    convention is.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class Criterion(BaseModel):
    """One criterion; the weights of an item's criteria add up to 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    weight: float = Field(gt=0)
    description: str = ""


def weigh_names(rows: Any) -> Any:  # noqa: ANN401 - what a file or a model may write
    """Criteria that are plain names, as rows of equal weight; whatever else it is, unchanged."""
    if not isinstance(rows, list) or not rows or not all(isinstance(row, str) for row in rows):
        return rows
    return [{"name": name, "weight": round(1 / len(rows), 6)} for name in rows]


class Control(BaseModel):
    """What makes an item a control item: one response is known to be worse.

    Attributes:
        pair: id of the control; its clean item and its attacked items share it.
        family: the kind of injection in the worse response; null in the clean item.
        language: the language of the injection.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    pair: str
    family: str | None = None
    language: str | None = None


class UserGoal(BaseModel):
    """What a simulated user of one item is told; null is what the configuration says.

    Attributes:
        goal: what the user wants to reach.
        model: who plays the user, as ``provider/model``.
        turns: the most user turns of the conversation, those of the prompts file included.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: str | None = Field(default=None, min_length=1)
    model: str | None = None
    turns: int | None = Field(default=None, ge=2, le=50)


class Item(Record):
    """A prompt with its system message, reference, tags and label.

    Its responses are in ``responses.jsonl``.

    Attributes:
        group: the prompt that this item repeats, where ``--repeat`` made several items of it;
            intervals are clustered by it.
        control: set where clash added the item to test the judges; it never counts in a result.
        user: a simulated user that continues the conversation.
        text_labels: what people say of each response by itself, by candidate.
    """

    item_id: str
    prompt: str | None = None
    messages: list[Turn] | None = None
    system: str | None = None
    reference: str | None = None
    tags: list[str] = []
    label: str | None = None
    criteria: list[Criterion] | None = None
    group: str | None = None
    control: Control | None = None
    user: UserGoal | None = Field(default=None, exclude_if=not_)
    text_labels: dict[str, str] | None = WhereSet

    @property
    def turns(self) -> list[Turn]:
        """The conversation: ``messages``, or ``prompt`` as a single user turn."""
        if self.messages is not None:
            return self.messages
        return [Turn(role="user", content=self.prompt or "")]

    @property
    def cluster(self) -> str:
        """The unit that intervals are clustered by: the group, or the item alone."""
        return self.group or self.item_id


class AnsweredTurn(BaseModel):
    """One turn of a conversation with a candidate.

    Attributes:
        user: what a simulated user said; null where the item holds the user's message.
        text: the candidate's answer.
        user_call_id: the call that the user's message came from.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    user: str | None = None
    text: str
    tokens: Tokens | None = None
    cost_usd: Dollars | None = None
    latency_s: Seconds | None = None
    ttft_s: Seconds | None = None
    finish_reason: str | None = None
    call_id: str | None = None
    user_call_id: str | None = None


class Response(Record):
    """One candidate's text for one item, or the error that left it without one.

    Attributes:
        turns: the conversation, where the user has several turns; ``text`` is then the
            :func:`~clash.conversations.transcript` of the answers, cost, tokens and latency are sums over the turns, and
            ``call_id`` is the last call. One that failed has the turns before the failure.
    """

    item_id: str
    candidate: str
    text: str | None = None
    source: Literal["generated", "injected"]
    model: str | None = None
    tokens: Tokens | None = None
    cost_usd: Dollars | None = None
    latency_s: Seconds | None = None
    ttft_s: Seconds | None = None
    finish_reason: str | None = None
    error: str | None = None
    call_id: str | None = None
    turns: list[AnsweredTurn] = Field(default=[], exclude_if=not_)


class Scrub(BaseModel):
    """A statement of authorship that is masked for judges; offsets are in the original text."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    candidate: str
    start: int
    end: int
    text: str


def candidates_of(responses: Iterable[Response]) -> list[str]:
    """The candidates that have a response, in order of appearance."""
    return list(dict.fromkeys(response.candidate for response in responses))


class Blinding(Record):
    """One shuffle of an item's responses. ``judge`` is null where all judges share it.

    Attributes:
        labels: the candidate behind each label (``A0``, ``A1``, …).
        normalised: number of hidden characters removed for judges, by candidate and kind.
        choices: the labels in the order in which the page lists them, or the ends of the scale;
            of a page with a single text.
    """

    item_id: str
    presentation: int
    judge: str | None = None
    labels: dict[str, str]
    scrubbed: list[Scrub] = []
    normalised: dict[str, dict[str, int]] = {}
    choices: list[str] | None = WhereSet


class Criteria(Record):
    """The criteria of an item, and where they come from."""

    item_id: str
    source: Literal["dynamic", "fallback", "fixed", "none"]
    criteria: list[Criterion]
    error: str | None = None
    call_id: str | None = None


class Call(Record):
    """One attempt of one API call, complete with request and raw response.

    Attributes:
        call_id: the id of the call, shared by its attempts.
        attempt: the number of the attempt, from 1.
        status: the HTTP status; null where no answer arrived.
        outcome: how the attempt ended.
        cost_usd: the cost; null means unknown, never free.
        cost_bound_usd: the highest possible cost, where ``cost_usd`` is unknown.
        usage_doubt: why the reported usage is impossible; the counts that cannot be true are then
            null, and so is ``cost_usd``.
        request_hash: SHA-256 of the request, independent of vendor and time; the key that replay
            looks up.
        structured: how JSON was requested in the end; null where none was wanted.
        address: the server, where the model has several (``base_urls``).
    """

    call_id: str
    purpose: Purpose
    item_id: str
    judge: str | None = None
    candidate: str | None = None
    presentation: int | None = None
    attempt: int
    model: str
    request: dict[str, Any] | None = None
    request_hash: str
    response: Any = None
    text: str | None = None
    status: int | None = None
    outcome: Outcome
    finish_reason: str | None = None
    error_class: str | None = None
    error: str | None = None
    served_model: str | None = None
    request_id: str | None = None
    tokens: Tokens | None = None
    cost_usd: Dollars | None = None
    cost_bound_usd: Dollars | None = None
    cost_source: str | None = None
    usage_doubt: str | None = None
    latency_s: Seconds | None = None
    ttft_s: Seconds | None = None
    structured: JsonMode | None = None
    degraded: list[str] = []
    address: str | None = Field(default=None, exclude_if=lambda address: address is None)
    time: str


class TokenCounts(msgspec.Struct, frozen=True):
    """Tokens of a :class:`CallSummary`; null is unknown."""

    input: int | None = None
    output: int | None = None


class CallSummary(msgspec.Struct, frozen=True):
    """The fields of a :class:`Call` that are counted, without request and response.

    ``calls.jsonl`` may be too large to parse completely; decoding a struct skips all other fields.
    """

    call_id: str
    attempt: int
    purpose: Purpose
    outcome: Outcome
    item_id: str = ""
    model: str = ""
    served_model: str | None = None
    judge: str | None = None
    candidate: str | None = None
    error_class: str | None = None
    tokens: TokenCounts | None = None
    cost_usd: Dollars | None = None
    cost_bound_usd: Dollars | None = None
    usage_doubt: str | None = None
    latency_s: Seconds | None = None
    ttft_s: Seconds | None = None

    @property
    def actor(self) -> str:
        """The judge or the candidate; ``criteria``, or the model that plays the user."""
        if self.purpose == "user":
            return self.model
        return self.judge or self.candidate or "criteria"


class Reservation(Record):
    """The most that an attempt may cost, written before it is sent.

    A reservation without its call is an attempt with an unknown end; it counts as spent.
    """

    call_id: str
    attempt: int
    usd: Dollars


class BatchRow(BaseModel):
    """One request of a batch.

    Attributes:
        custom_id: its id at the provider: the id of the call and the name of the batch.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    call_id: str
    attempt: int
    custom_id: str
    request_hash: str


class Batch(Record):
    """Requests submitted together. Each change of state writes a line; the last one counts.

    Attributes:
        batch: its name, chosen by clash and sent to the provider.
        state: ``submitting`` is written before it is submitted and ``submitted`` after, so that a
            batch whose confirmation was lost is looked up and never submitted twice.
        rows: in the first line only.
        refused: features that the model was known to refuse and that were therefore not sent.
        provider_id: its id at the provider.
        outcome: how it ended, in the provider's word.
        answered: number of rows with an answer; ``failed`` counts those without.
    """

    batch: str
    model: str
    state: Literal["submitting", "submitted", "ended"]
    rows: list[BatchRow] = []
    refused: list[str] = []
    provider_id: str | None = None
    outcome: str | None = None
    answered: int = 0
    failed: int = 0
    time: str


class JudgmentFacts:
    """What follows from the fields of a judgment, whether all of them were read or a part."""

    __slots__ = ()
    if TYPE_CHECKING:
        item_id: str
        presentation: int
        judge: str
        stands_in_for: str | None
        ranking: Groups | None
        vote: str | int | None

    @property
    def is_usable(self) -> bool:
        """Whether it holds a ranking, a label or a score."""
        return self.ranking is not None or self.vote is not None

    @property
    def seat(self) -> str:
        """The judge of the panel in whose place this judgment was made."""
        return self.stands_in_for or self.judge


class Judgment(JudgmentFacts, Record):
    """What one judge says of one presentation; ``ranking`` is null where the judge failed.

    Attributes:
        call_id: the call that it was read from; where the model has stopped, the call that stopped
            it, which several judgments may share.
        stands_in_for: the judge whose model has stopped, where ``judge`` is one of its fallbacks.
        vote: the label or the score of a single text, in place of a ranking.
    """

    item_id: str
    presentation: int
    judge: str
    role: Role
    weight: float
    ranking: Groups | None
    scores: dict[str, dict[str, int]] = {}
    reasons: dict[str, dict[str, str]] = {}
    parse: Parse
    repairs: list[str] = []
    flags: list[str] = []
    call_id: str | None = None
    error: str | None = None
    stands_in_for: str | None = None
    vote: str | int | None = WhereSet


class Verdict(Record):
    """The aggregated outcome of an item.

    Attributes:
        ranking: candidates in groups, best first; null where there is no verdict.
        winner: null where tied or abstained.
        confidence: normalised margin, 0 to 1; null without a verdict.
        unanimous: every voting judge of the panel judged, and all agree.
        split: voting judges for and against the winner, as ``2-1``.
        abstained: why there is no verdict, or null.
        p: posterior by candidate, where the method gives one; without labels a share of the votes
            as the method weighs them.
        model: the model that ``auto`` selected.
        borda: the ranking by Borda count, where another method decides.
        fallback: why the method of the run could not decide, so that ``method`` is another.
        candidate: whose text the verdict is on, where each text is judged by itself.
        label: of the text; null where tied or abstained. ``scores`` and ``p`` are then by label.
        score: of the text.
        passed: whether the text passes, where the run says what passes.
    """

    item_id: str
    method: str
    ranking: Groups | None
    winner: str | None
    scores: dict[str, float] = {}
    confidence: float | None = None
    unanimous: bool = False
    split: str | None = None
    abstained: str | None = None
    p: dict[str, float] | None = None
    model: str | None = None
    borda: Groups | None = None
    fallback: str | None = None
    candidate: str | None = WhereSet
    label: str | None = WhereSet
    score: float | None = WhereSet
    passed: bool | None = WhereSet

    @property
    def outcome(self) -> str | None:
        """The winner of a ranking, or ``tie``; null where there is none."""
        return None if self.ranking is None else self.winner or "tie"

    @property
    def is_decided(self) -> bool:
        """Whether there is a verdict: a ranking, a label or a score."""
        return not (self.ranking is None and self.label is None and self.score is None)


class PoolItem(Record):
    """An item that a run with a stopping rule (``--until``) may judge, with injected responses."""

    item: Item
    responses: list[Response] = []


class LabelDraw(BaseModel):
    """How an item came to be labelled: drawn, so that its chance of a label is known.

    Attributes:
        seed: of the draw; with the item's id it gives the number that decides its place.
        rate: how much likelier the item is drawn than one of rate 1.
        equal: all items of the draw have rate 1.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    seed: int
    rate: float = Field(ge=1e-3, le=1e3)
    equal: bool = False


class Label(Record):
    """A person's decision on an item: ``winner`` is a candidate, ``tie`` or ``both bad``.

    Attributes:
        draw: how a review drew the item; null where nobody drew it.
        candidate: whose text ``vote``, a label or a score, is about; null where the item has one.
    """

    item_id: str
    annotator: str
    winner: str | None = None
    ranking: Groups | None = None
    scores: dict[str, dict[str, int]] = {}
    note: str | None = None
    time: str | None = None
    draw: LabelDraw | None = None
    candidate: str | None = WhereSet
    vote: str | float | None = WhereSet
