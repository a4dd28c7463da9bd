"""The schema of ``clash.yaml`` and of panel files, and the checks on them.

The names are a contract (``docs/configuration.md``). No model is named here: defaults that name
models live in ``configs/``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from operator import not_
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeGuard, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from clash.conversations import transcript
from clash.records import Criterion, Role, Turn, UserGoal, weigh_names
from clash.secrets.destinations import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

PROVIDERS = (
    "openai",
    "anthropic",
    "google",
    "openrouter",
    "compatible",
    "vllm",
    "baseline",
    "replay",
    "python",
)
_RESERVED_NAMES = frozenset({"tie"})
"""What a label can be beside the name of a candidate."""
_KEY = re.compile(r"^(sk-|AIza|gsk_|xai-)[\w-]{8,}")
_CONNECTION_HEADERS = frozenset(
    {"connection", "content-length", "host", "te", "transfer-encoding", "upgrade"}
)
"""Headers that decide which server receives a request and where it ends. Many servers share the
address of a CDN, which forwards a request, its key included, to the server that ``Host`` names."""
_ASK = "write what models are asked, or remove the item"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def hinted(problem: str, hint: str) -> PydanticCustomError:
    """An error of a validator whose message ends in ``fix: hint``."""
    return PydanticCustomError("hinted", "{problem}", {"problem": problem, "hint": hint})


class Strict(BaseModel):
    """A section of a file. Unknown keys are refused, because most of them are typing errors."""

    # An infinite weight would be null in the run folder, and the folder unreadable.
    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False
    )


class Options(Strict):
    """How a model is called. An option that is not set is not sent.

    Attributes:
        max_tokens: cap on the answer, reasoning included.
        temperature: many current models refuse it, so it has no default.
        reasoning: the vendor's effort word (``low``, ``medium``, ``high``, …).
        structured: how JSON is requested; falls back from ``schema`` to what the model accepts.
        api: which OpenAI API; ``auto`` is chat, and responses where the model requires it.
        api_version: Google's API version; null leaves it to the SDK.
        stream: stream the answer, so that the time to first token is known.
        headers: extra HTTP headers (no keys).
        extra: extra fields of the request body, as the vendor spells them.
    """

    max_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    reasoning: str | None = None
    structured: Literal["schema", "json", "text"] = "schema"
    api: Literal["auto", "chat", "responses"] = "auto"
    api_version: str | None = None
    stream: bool | None = None
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}

    @field_validator("headers")
    @classmethod
    def _leaves_connection_alone(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if _CONTROL.search(name + value):
                raise ValueError(f"the header {name!r} has a line break or a control character")
            if name.strip().lower() in _CONNECTION_HEADERS:
                raise ValueError(f"{name} is part of the address, which base_url sets")
        return headers


class TokenPrice(Strict):
    """US dollars per million tokens, for a model that the price table lacks or prices wrongly."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class SourcedSection(Strict):
    """A section that knows who chose its values. No file can set this itself.

    A section created without a source counts as one of a run folder, the least trusted source.
    """

    _source: Source = PrivateAttr(default="run")

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - as pydantic passes it
        """Take the source from the validation context, which reaches every section of a file."""
        self._source = (context or {}).get("source", "run")

    @property
    def source(self) -> Source:
        """Who chose the values of this section."""
        return self._source

    def chosen_by(self, source: Source) -> Self:
        """A copy of this section with another source."""
        copy = self.model_copy()
        copy._source = source  # noqa: SLF001 - its own class
        return copy


class Engine(Strict):
    """How batches of a model run on a Ray cluster: Ray Data feeds engines of vLLM.

    Attributes:
        folder: where the rows of a batch and its answers lie. This machine and the head node of
            the cluster see it under the same path.
        source: the weights: a path on the nodes, ``s3://…``, or a name on the hub; null is the
            model's own name.
        replicas: the most engines at once.
        rows: questions that an engine is handed at a time; it has several such portions in work.
        accelerator: the kind of GPU, as Ray names it (``H100``); null takes any.
        arguments: arguments of vLLM's engine, as vLLM spells them.
    """

    folder: str = Field(min_length=1)
    source: str | None = Field(default=None, min_length=1)
    replicas: int = Field(default=1, gt=0)
    rows: int = Field(default=64, gt=0)
    accelerator: str | None = Field(default=None, min_length=1)
    arguments: dict[str, Any] = {}


ModelName = Annotated[
    str, WithJsonSchema({"type": "string", "pattern": f"^({'|'.join(PROVIDERS)})/.+"})
]
"""``provider/model``. The pattern is for editors; the message of a wrong one is written below."""


class ModelRef(SourcedSection):
    """A model, as ``provider/model``, and how to reach and call it.

    Attributes:
        base_urls: addresses of several servers of the same model, which share its calls;
            ``base_url`` is then the first of them.
        api_key_env: the NAME of the variable that holds the key.
        engine: how batches of a model of one's own cluster run (``vllm/MODEL``).
        concurrency: the most calls in flight to this model.
        price: overrides the price table.
    """

    model: ModelName
    base_url: str | None = None
    base_urls: list[str] = Field(default=[], exclude_if=lambda urls: not urls)
    engine: Engine | None = Field(default=None, exclude_if=lambda engine: engine is None)
    api_key_env: str | None = None
    options: Options = Options()
    price: TokenPrice | None = None
    concurrency: int | None = Field(default=None, gt=0)

    @property
    def provider(self) -> str:
        """The part before the first slash."""
        return self.model.partition("/")[0]

    @property
    def name(self) -> str:
        """The model as its provider names it."""
        return self.model.partition("/")[2]

    @property
    def vendor(self) -> str:
        """The maker of the model, as far as its id shows."""
        parts = self.model.split("/")
        return parts[1] if parts[0] in ("openrouter", "replay") and len(parts) > 2 else parts[0]

    @property
    def is_function(self) -> bool:
        """Whether this is a Python function, called or replayed, and no model."""
        return self.vendor == "python"

    @property
    def identity(self) -> str:
        """The model itself, whichever provider serves it and however its version is spelled."""
        name = self.model.removeprefix("replay/").removeprefix("openrouter/")
        return name.partition(":")[0].lower().replace(".", "-")

    @field_validator("model")
    @classmethod
    def _provider_is_known(cls, model: str) -> str:
        provider, _, name = model.partition("/")
        if provider not in PROVIDERS or not name:
            choices = ", ".join(PROVIDERS)
            raise ValueError(f"expected provider/model with a provider of {choices}")
        return model

    @model_validator(mode="before")
    @classmethod
    def _has_first_address(cls, value: object) -> object:
        if not isinstance(value, dict) or value.get("base_url") is not None:
            return value
        urls = value.get("base_urls")
        return {**value, "base_url": urls[0]} if isinstance(urls, list) and urls else value

    @model_validator(mode="after")
    def _has_several_addresses(self) -> Self:
        if not self.base_urls:
            return self
        if self.provider != "compatible":
            raise ValueError("base_urls is for servers of your own (compatible/MODEL)")
        if len(set(self.base_urls)) < len(self.base_urls):
            raise ValueError("base_urls names an address twice")
        if self.base_url != self.base_urls[0]:
            raise ValueError("give base_url or base_urls, not both")
        return self

    @model_validator(mode="after")
    def _engine_is_for_vllm(self) -> Self:
        if self.engine is not None and self.provider != "vllm":
            raise ValueError("engine is for batches on a cluster of your own (vllm/MODEL)")
        return self

    @property
    def servers(self) -> tuple[Self, ...]:
        """This model at each of its addresses; itself alone where it has no several."""
        if not self.base_urls:
            return (self,)
        return tuple(
            self.model_copy(update={"base_url": url, "base_urls": []}) for url in self.base_urls
        )

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        if name is not None and (_KEY.match(name) or not re.fullmatch(r"[A-Za-z_]\w*", name)):
            # The value is not repeated: it may be a key.
            raise ValueError("expected the NAME of an environment variable, not a key")
        return name


def _model_or_ref(value: object) -> object:
    return {"model": value} if isinstance(value, str) else value


Ref = Annotated[
    ModelRef, BeforeValidator(_model_or_ref, json_schema_input_type=ModelName | ModelRef)
]


def _with_defaults(value: object, defaults: Callable[[ModelRef], dict[str, str]]) -> object:
    """``value`` with defaults derived from its model, for the keys that it leaves out."""
    if not isinstance(value, dict) or not isinstance(value.get("model"), str):
        return value
    default_fields = defaults(ModelRef.model_construct(model=value["model"]))
    return {**value, **{key: text for key, text in default_fields.items() if not value.get(key)}}


class Candidate(ModelRef):
    """A model or system under evaluation.

    Attributes:
        id: its name in reports. In a list of candidates without ids, the shortest end of the model
            that no other has (``openrouter/openai/gpt-6-luna`` is ``gpt-6-luna``).
    """

    id: str = ""
    system: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill_id(cls, value: object) -> object:
        return _with_defaults(value, lambda ref: {"id": ref.model})


def short_names(models: Sequence[str], reserved_names: Iterable[str] = ()) -> list[str]:
    """A short name for each model: its last part, or as many parts as tell it from the others.

    Args:
        models: as ``provider/model``.
        reserved_names: names that others have already.

    Returns:
        One name a model, in their order; the whole model where no shorter end of it is free.
    """
    ends = [_ends(model) for model in models]
    uses = Counter(end for model_ends in ends for end in model_ends)
    unavailable = {*reserved_names, *_RESERVED_NAMES}
    return [
        next((end for end in model_ends if uses[end] == 1 and end not in unavailable), model)
        for model, model_ends in zip(models, ends, strict=True)
    ]


def _ends(model: str) -> list[str]:
    """``a/b/c`` as ``c``, ``b/c``, ``a/b/c``, without ends that begin with an empty part."""
    parts = model.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts) - 1, -1, -1) if parts[start]]


def _with_short_ids(listed_candidates: object) -> object:
    """Candidates as a file has them, with a short id for each that names a model and no id."""
    if not isinstance(listed_candidates, list):
        return listed_candidates
    candidates = [_model_or_ref(settings) for settings in listed_candidates]
    models = [settings["model"] for settings in candidates if _is_nameless(settings)]
    explicit_ids = [
        str(settings.get("id")) for settings in candidates if isinstance(settings, dict)
    ]
    explicit_ids += [settings.id for settings in candidates if isinstance(settings, Candidate)]
    names = iter(short_names(models, explicit_ids))
    return [
        {**settings, "id": next(names)} if _is_nameless(settings) else settings
        for settings in candidates
    ]


def _is_nameless(candidate: object) -> TypeGuard[dict[str, Any]]:
    return (
        isinstance(candidate, dict)
        and isinstance(candidate.get("model"), str)
        and not candidate.get("id")
    )


def _family(ref: ModelRef) -> str:
    """Models of one vendor are expected to err alike; two functions need not be."""
    return ref.name if ref.is_function else ref.vendor


class Judge(ModelRef):
    """A model that reads a blinded item and ranks the responses.

    Attributes:
        fallbacks: models that judge in its place, in this order, once its own model has stopped
            for good.
    """

    id: str = ""
    role: Role = "voting"
    weight: float = Field(default=1, ge=0)
    family: str = ""
    fallbacks: list[Ref] = []

    @model_validator(mode="before")
    @classmethod
    def _fill_id_and_family(cls, value: object) -> object:
        return _with_defaults(value, lambda ref: {"id": ref.model, "family": _family(ref)})

    @property
    def seat(self) -> str:
        """The seat on the panel: the id of this judge, or of the judge that a fallback replaces."""
        return self.id

    @model_validator(mode="after")
    def _voting_weight_is_positive(self) -> Self:
        if self.role == "voting" and self.weight == 0:
            raise ValueError("a voting judge needs a weight above 0; or set role: observer")
        return self


class Panel(Strict):
    """The judges of a run.

    Attributes:
        quorum: voting weight (number of judges where all weigh 1) that an item's verdict needs;
            null is a majority of the voting weight.
        ties: judges may rank responses as equal.
        criteria: the model that writes criteria for this panel.
        reask: after an answer that cannot be read, ask the judge once more and quote the error.
        exclude_self: a voting judge that is also a candidate does not judge its own responses.
    """

    name: str
    description: str = ""
    judges: list[Judge] = Field(min_length=1)
    quorum: float | None = Field(default=None, gt=0)
    ties: bool = True
    criteria: Ref | None = None
    reask: bool = True
    exclude_self: bool = False

    @model_validator(mode="after")
    def _judges_differ(self) -> Self:
        ids = [judge.id for judge in self.judges]
        twice = sorted({judge for judge in ids if ids.count(judge) > 1})
        if twice:
            raise ValueError(f"two judges have the id {twice[0]!r}; give each an id of its own")
        if not any(judge.role == "voting" for judge in self.judges):
            raise ValueError("no judge has role: voting, so there can be no verdict")
        if self.quorum is not None and self.quorum > self.voting_weight:
            raise ValueError(
                f"quorum {self.quorum:g} is more than the voting weight {self.voting_weight:g}"
            )
        return self

    @property
    def voting(self) -> list[Judge]:
        """The judges whose judgments count in verdicts."""
        return [judge for judge in self.judges if judge.role == "voting"]

    @property
    def voting_weight(self) -> float:
        """The summed weight of the voting judges."""
        return sum(judge.weight for judge in self.voting)


WeightedCriteria = Annotated[
    list[Criterion],
    BeforeValidator(weigh_names, json_schema_input_type=list[Criterion] | list[str]),
]
"""Criteria with their weights, or names alone, which weigh the same."""


class SimulatedUser(ModelRef):
    """A model that plays the user towards each candidate, after the messages of the prompts file.

    Attributes:
        goal: what the user wants to reach; an item may have its own.
        turns: the most user turns of a conversation, those of the prompts file included.
    """

    goal: str | None = Field(default=None, min_length=1)
    turns: int = Field(default=3, ge=2, le=50)

    @property
    def ref(self) -> ModelRef:
        """The model alone: items with goals of their own share its connection."""
        fields = {name: getattr(self, name) for name in ModelRef.model_fields}
        return ModelRef(**fields).chosen_by(self.source)

    def for_item(self, goal: UserGoal) -> SimulatedUser:
        """The user of an item that has a goal, a model or a number of turns of its own."""
        changes = {name: value for name, value in goal if value is not None}
        if goal.model in (None, self.model):
            return self.model_copy(update=changes)
        # Another model is not reached by this one's address and key.
        fields = {"goal": self.goal, "turns": self.turns, **changes}
        return SimulatedUser(**fields).chosen_by("file")


class CriteriaConfig(SourcedSection):
    """Where the criteria come from: a model, the file, or nowhere."""

    mode: Literal["dynamic", "fixed", "none"] = "dynamic"
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    options: Options = Options(temperature=0.3, max_tokens=150)
    price: TokenPrice | None = None
    items: WeightedCriteria = []
    reuse: str | None = None

    @model_validator(mode="after")
    def _fixed_has_items(self) -> Self:
        if self.mode != "fixed" and self.items:
            raise ValueError("items are for mode: fixed")
        return self

    @property
    def ref(self) -> ModelRef | None:
        """The model that writes the criteria; null where the file names none."""
        if self.model is None:
            return None
        ref = ModelRef(
            model=self.model,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            options=self.options,
            price=self.price,
        )
        return ref.chosen_by(self.source)


class BlindingConfig(Strict):
    """How responses are shuffled, what is masked in them, and how the judges are tested.

    Attributes:
        controls: number of attacked control items that are judged beside the prompts
            (``clash redteam``), each with its clean form; they never count in a result.
        show_names: tell the judges who wrote each response: the unblinded arm of
            ``clash favouritism``, no way to judge models.
    """

    per_judge: bool = False
    both_orders: bool = False
    scrub: Literal["mask", "flag", "off"] = "mask"
    controls: int = Field(default=0, ge=0, le=1000)
    show_names: bool = Field(default=False, exclude_if=not_)


JudgingMode = Literal["rank", "label", "score"]
"""What a judge is asked for: an order of the responses, or a label or a score of one text."""
_SCALE = re.compile(r"(-?\d{1,4}) ?(?:-|to|\.\.) ?(\d{1,4})")
_MOST_LABELS, _MOST_STEPS = 50, 1000


class JudgingConfig(Strict):
    """What a judge is asked: to rank an item's responses, or to judge one text by itself.

    Attributes:
        labels: the labels to choose from, with ``mode: label``; a map adds what each means.
        scale: the whole numbers to choose from, with ``mode: score``, as ``1-5``.
        question: what is asked of each text.
        passing: which texts pass: those with one of these labels, or with this score or more.
    """

    mode: JudgingMode = "rank"
    labels: dict[str, str] = {}
    scale: str | None = None
    question: str | None = Field(default=None, min_length=1)
    passing: list[str] | float | None = None

    @field_validator("labels", mode="before", json_schema_input_type=list[str] | dict[str, str])
    @classmethod
    def _labels_with_meanings(cls, labels: object) -> object:
        if isinstance(labels, list):
            names = [label_name(label) for label in labels]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"the label {twice!r} is named twice")
            return dict.fromkeys(names, "")
        if isinstance(labels, dict):
            return {label_name(name): meaning or "" for name, meaning in labels.items()}
        return labels

    @field_validator(
        "passing", mode="before", json_schema_input_type=str | list[str] | float | None
    )
    @classmethod
    def _one_or_many(cls, passing: object) -> object:
        if isinstance(passing, list):
            return [label_name(label) for label in passing]
        return [label_name(passing)] if isinstance(passing, str | bool) else passing

    @model_validator(mode="after")
    def _mode_has_its_choices(self) -> Self:
        given_parts = {"labels": self.labels, "scale": self.scale, "passing": self.passing}
        for name, mode in (("labels", "label"), ("scale", "score")):
            if given_parts[name] and self.mode != mode:
                raise ValueError(f"{name} are for mode: {mode}, and the mode is {self.mode}")
        if self.mode == "rank" and (self.question or self.passing is not None):
            raise ValueError("question and passing are for mode: label or score")
        if self.mode == "label":
            self._check_labels()
        if self.mode == "score":
            low, high = self.bounds
            if self.passing is not None and (
                isinstance(self.passing, list) or not low <= self.passing <= high
            ):
                raise ValueError(f"passing has to be a score from {low} to {high}")
        return self

    def _check_labels(self) -> None:
        if not 2 <= len(self.labels) <= _MOST_LABELS:
            raise ValueError(f"mode: label needs 2 to {_MOST_LABELS} labels")
        looks = set(map(_look_of_label, self.labels))
        if len(looks) < len(self.labels) or "" in looks:
            raise ValueError(
                "the labels have to differ in more than upper case, blanks and hidden characters"
            )
        if self.passing is None:
            return
        names = self.passing if isinstance(self.passing, list) else [f"{self.passing:g}"]
        unknown = [name for name in names if name not in self.labels]
        if unknown or not names:
            raise ValueError(f"passing names {unknown or 'nothing'}, which is not in labels")
        if names != self.passing:
            raise ValueError("write a label that passes in quotes")

    @property
    def is_single(self) -> bool:
        """Whether each text is judged by itself."""
        return self.mode != "rank"

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest score.

        Raises:
            ValueError: the scale is not two whole numbers, the lower one first.
        """
        match = _SCALE.fullmatch((self.scale or "1-5").strip())
        low, high = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 0 < high - low <= _MOST_STEPS:
            raise ValueError(f"expected a scale of whole numbers such as 1-5, not {self.scale!r}")
        return low, high

    @property
    def choices(self) -> list[str] | None:
        """The labels, or the ends of the scale, in their order; null where responses are ranked."""
        if self.mode == "score":
            return [str(end) for end in self.bounds]
        return list(self.labels) or None

    def passes(self, outcome: str | float) -> bool | None:
        """Whether a text with this label or score passes; null where nothing says what passes."""
        if self.passing is None:
            return None
        if isinstance(self.passing, list):
            return outcome in self.passing
        return float(outcome) >= self.passing

    def outcome(self, label: object) -> str | float | None:
        """What a person's label says of a text in these terms; null where it is none of them."""
        if self.mode == "label":
            name = label_name(label)
            return name if name in self.labels else None
        try:
            score = float(str(label))
        except ValueError:
            return None
        low, high = self.bounds
        return score if low <= score <= high else None


def _look_of_label(label: str) -> str:
    """What two labels that look alike have in common."""
    words = unicodedata.normalize("NFKC", label).casefold().split()
    return " ".join("".join(filter(str.isprintable, word)) for word in words)


def label_name(value: object) -> str:
    """A label as text: YAML reads ``yes`` and ``no`` as true and false, and ``1`` as a number."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


VerdictMethod = Literal[
    "borda",
    "majority",
    "weighted-majority",
    "dawid-skene",
    "ising-shared",
    "ising-class",
    "factor",
    "auto",
    "bradley-terry",
    "mean",
    "median",
]
"""What decides the verdicts of a run."""
_METHODS_BY_MODE: dict[str, frozenset[str]] = {
    "rank": frozenset(get_args(VerdictMethod)) - {"mean", "median"},
    "label": frozenset(get_args(VerdictMethod)) - {"bradley-terry", "mean", "median"},
    "score": frozenset({"borda", "mean", "median"}),
}
_METHODS_OF_MANY_LABELS = frozenset({"borda", "majority", "weighted-majority", "dawid-skene"})


METHOD_ALIASES = {"weighted": "weighted-majority"}
"""Short names of methods, in runs and in ``clash aggregate``."""


def _method_of_alias(name: object) -> object:
    return METHOD_ALIASES.get(name, name) if isinstance(name, str) else name


class AggregateConfig(Strict):
    """How judgments become a verdict.

    Attributes:
        method: ``borda`` decides item by item; ``bradley-terry`` too; the others weigh the judges by
            what the votes of the whole run show (docs/statistics.md). ``weighted`` is
            ``weighted-majority``.
        min_confidence: a winner whose confidence (0 to 1) is below this is no verdict: the item
            abstains and is left for review. By default 0 with ``borda``, else 0.02.
        calibrator: a file written by ``clash calibrate``, which then decides the verdicts of pairs.
        max_risk: highest share of wrong verdicts, on average; items above it abstain.
        risk_confidence: keep ``max_risk`` with this confidence, and not only on average.
    """

    method: Annotated[VerdictMethod, BeforeValidator(_method_of_alias)] = "borda"
    tie_break: Literal["none", "scores"] = "none"
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    calibrator: str | None = None
    max_risk: float | None = Field(default=None, gt=0, lt=1)
    risk_confidence: float | None = Field(default=None, gt=0, lt=1)

    @model_validator(mode="after")
    def _risk_needs_a_calibrator(self) -> Self:
        if self.max_risk is not None and self.calibrator is None:
            raise ValueError("max_risk needs a calibrator")
        if self.risk_confidence is not None and self.max_risk is None:
            raise ValueError("risk_confidence needs max_risk")
        return self

    @model_validator(mode="after")
    def _one_decides(self) -> Self:
        if self.calibrator is None:
            return self
        if self.method != "borda":
            raise ValueError(
                f"a calibrator decides the verdicts itself: leave out method {self.method}"
            )
        if self.min_confidence is not None:
            raise ValueError("with a calibrator, max_risk says which verdicts to leave out")
        return self


@dataclass(frozen=True, slots=True)
class RayCluster:
    """The Ray cluster that makes the calls of a run, or computes.

    Attributes:
        address: ``HOST:PORT``, ``auto``, or ``local`` for one of this machine and command.
        send_keys: send the keys to the nodes; else they are in the environment of each node.
    """

    address: str
    send_keys: bool = False


def _by_command_line(value: object) -> RayCluster | None:
    """A cluster is trusted with prompts and keys, so no file names one."""
    if value is None or isinstance(value, RayCluster):
        return value
    raise ValueError("a Ray cluster is named on the command line only: --ray ADDRESS")


class Limits(Strict):
    """Limits of a run: cost, concurrency, time and failures.

    Attributes:
        batch: use the batch APIs of providers that have one: half the price, and answers within a
            day.
        workers: processes that make the calls; 0 makes them in the process of the run. It is part of
            no run folder, for it changes no result.
        ray: the cluster that makes the calls; in no file either.
        batch_poll_s: seconds until a batch is first polled; later polls are up to twenty times as
            far apart.
    """

    max_cost: float | None = Field(default=None, gt=0)
    allow_unknown_price: bool = False
    concurrency: int = Field(default=64, gt=0)
    max_failed: float = Field(default=0.1, ge=0, le=1)
    timeout_s: float = Field(default=120, gt=0)
    connect_timeout_s: float = Field(default=10, gt=0)
    max_attempts: int = Field(default=8, ge=1)
    batch: bool = False
    batch_poll_s: float = Field(default=30, gt=0)
    workers: int = Field(default=0, ge=0, le=64, exclude=True)
    ray: Annotated[SkipJsonSchema[RayCluster | None], BeforeValidator(_by_command_line)] = Field(
        default=None, exclude=True
    )

    def with_changes(self, changes: Mapping[str, Any]) -> Limits:
        """The limits with these changes; a null changes nothing."""
        fields = {name: value for name, value in changes.items() if value is not None}
        return self.model_copy(update=fields)


class Observers(Strict):
    """Judges that are recorded and shown. With ``role: voting`` they vote, at a lower weight.

    Attributes:
        judges: ``candidates`` (each candidate judges blind: self-evaluation) or a list of judges.
        panel_weight: weight of each judge of the panel where observers vote.
    """

    judges: Literal["candidates"] | list[Judge] = "candidates"
    role: Role = "observer"
    weight: float = Field(default=1, gt=0)
    panel_weight: float = Field(default=2, gt=0)


def _observers(value: object) -> object:
    return {"judges": value} if isinstance(value, str | list) else value


class Config(Strict):
    """``clash.yaml``, resolved.

    The command line takes precedence over the environment, the environment over the file, the file
    over the defaults below.

    Attributes:
        generation: options of every candidate that does not set its own.
        system: system message of every item that has none.
        templates: a folder whose files replace the shipped templates of the same name.
        judging: what the judges are asked; a run that ranks leaves it out.
        repeat: how often each item is generated and judged.
        exclude_self: overrides the panel's, where it is set.
        user: a simulated user, who continues the conversation of every item that has a goal.
        compress: how raw answers are compressed; the manifest says so under ``codecs``.
    """

    prompts: str | None = None
    candidates: Annotated[
        list[Candidate],
        BeforeValidator(_with_short_ids, json_schema_input_type=list[ModelName | Candidate]),
    ] = []
    panel: str | Panel | None = None
    observers: Annotated[
        Observers,
        BeforeValidator(
            _observers, json_schema_input_type=Literal["candidates"] | list[Judge] | Observers
        ),
    ] = Observers()
    criteria: CriteriaConfig = CriteriaConfig()
    judging: JudgingConfig = Field(
        default=JudgingConfig(), exclude_if=lambda judging: not judging.is_single
    )
    blinding: BlindingConfig = BlindingConfig()
    aggregate: AggregateConfig = AggregateConfig()
    limits: Limits = Limits()
    generation: Options = Options()
    system: str | None = None
    templates: str | None = None
    repeat: int = Field(default=1, ge=1)
    exclude_self: bool | None = None
    user: SimulatedUser | None = Field(default=None, exclude_if=not_)
    seed: int = Field(default=42, ge=0)
    out: str = "runs"
    compress: Literal["zstd"] | None = Field(default=None, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _single_texts_need_no_criteria(cls, value: object) -> object:
        """Criteria written from a prompt say how to rank answers to it: here only where asked for."""
        if not isinstance(value, dict) or "criteria" in value:
            return value
        judging = value.get("judging")
        mode = judging.get("mode") if isinstance(judging, dict) else getattr(judging, "mode", None)
        return {**value, "criteria": {"mode": "none"}} if mode in ("label", "score") else value

    @model_validator(mode="after")
    def _method_fits_the_judging(self) -> Self:
        method, judging = self.aggregate.method, self.judging
        if method not in _METHODS_BY_MODE[judging.mode]:
            choices = ", ".join(sorted(_METHODS_BY_MODE[judging.mode]))
            raise ValueError(
                f"aggregate.method {method} does not fit judging.mode {judging.mode}: {choices}"
            )
        if len(judging.labels) > 2 and method not in _METHODS_OF_MANY_LABELS:
            raise ValueError(
                f"aggregate.method {method} knows two labels, and there are {len(judging.labels)}:"
                " majority, weighted-majority or dawid-skene"
            )
        if judging.is_single and self.aggregate.calibrator is not None:
            raise ValueError("a calibrator decides pairs; with judging.mode label or score: none")
        if judging.is_single and self.blinding.controls:
            raise ValueError("control items are pairs; with judging.mode label or score: none")
        if judging.is_single and self.blinding.show_names:
            raise ValueError("blinding.show_names is of runs that rank; leave it or judging out")
        return self

    @model_validator(mode="after")
    def _candidates_differ(self) -> Self:
        ids = [candidate.id for candidate in self.candidates]
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if twice:
            raise ValueError(f"two candidates have the id {twice[0]!r}; give each an id of its own")
        return self


def _turns_as_text(value: object) -> object:
    is_list = isinstance(value, list) and value and all(isinstance(text, str) for text in value)
    return transcript(value) if is_list else value  # type: ignore[arg-type] # checked


SINGLE = "single"
"""Key of the context in which a prompts file is read whose texts are judged by themselves."""
SOLE = "response"
"""The candidate of an item that has a single response without a name."""
PROMPT = "prompt"
"""The candidate of an item whose prompt is the text to judge."""


class PromptEntry(Strict):
    """One entry of a prompts file.

    Attributes:
        id: its name in reports; q1, q2, … where it is left out.
        messages: a conversation that ends with the user, in place of a prompt. A user message that
            no assistant message follows is answered by the candidate before the next is sent.
        turns: the user's messages alone, in place of a prompt, as MT-Bench writes its questions.
        user: a simulated user, who goes on after the last message.
        reference: a right answer, which the judges are shown; a list has one for each turn.
        label: the candidate that a person prefers, or tie.
        criteria: what its responses are judged by, in place of derived criteria.
        responses: what candidates have answered already; missing ones are generated. A list holds
            the answers turn by turn, or the messages that follow the prompt.
        response: the one text to judge, where texts are judged by themselves.
        labels: what people say of each response by itself, by candidate.
        group: items of one group count as one source in intervals.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["prompt"]},
                {"required": ["messages"]},
                {"required": ["turns"]},
            ]
        }
    )

    id: str | None = None
    prompt: str | None = None
    messages: list[Turn] | None = None
    turns: list[str] | None = None
    user: UserGoal | None = None
    system: str | None = None
    reference: Annotated[
        str | None,
        BeforeValidator(_turns_as_text, json_schema_input_type=str | list[str] | None),
    ] = None
    tags: list[str] = []
    label: str | None = None
    criteria: WeightedCriteria | None = None
    responses: dict[str, str | list[str] | list[Turn]] = {}
    response: str | list[str] | list[Turn] | None = None
    labels: dict[str, str] = {}
    group: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_question(cls, value: object) -> object:
        """Accept a line of MT-Bench's question files, with its names for id and tag."""
        if not isinstance(value, dict) or "turns" not in value:
            return value
        names = {"question_id": "id", "category": "tags"}
        return {names.get(key, key): part for key, part in value.items()}

    @model_validator(mode="after")
    def _ends_with_a_question(self, validation: ValidationInfo) -> Self:
        if sum(part is not None for part in (self.prompt, self.messages, self.turns)) != 1:
            raise hinted("expected either prompt or messages (or turns)", "keep one of them")
        if self.turns is not None and not (self.turns and all(map(str.strip, self.turns))):
            raise hinted("turns must be user messages that are not empty", _ASK)
        if self.prompt is not None and not self.prompt.strip():
            raise hinted("the prompt is empty", _ASK)
        if self.messages is not None:
            last_turn = self.messages and self.messages[-1]
            if not last_turn or last_turn.role != "user" or not last_turn.content.strip():
                raise hinted("messages must end with a user message that is not empty", _ASK)
            if not all(turn.content.strip() for turn in self.messages if turn.role == "user"):
                raise hinted("a user message is empty", _ASK)
        if self.response is not None and self.responses:
            raise hinted("expected either response or responses", "keep one of them")
        if not (validation.context or {}).get(SINGLE):
            self._check_ranked()
        return self

    def _check_ranked(self) -> None:
        """Where responses are ranked, a label names one of them."""
        if self.response is not None or self.labels:
            name = "labels" if self.labels else "response"
            raise hinted(
                f"{name} is for judging one text by itself",
                "--labels A,B or --scale 1-5, or judging.mode in clash.yaml",
            )
        if self.label is not None and self.responses:
            choices = {*self.responses, "tie"}
            if self.label not in choices:
                raise ValueError(f"label {self.label!r} is not one of {', '.join(sorted(choices))}")

    @property
    def texts(self) -> dict[str, str | list[str] | list[Turn]]:
        """The texts that are there, by candidate; a single ``response`` has that name."""
        return self.responses if self.response is None else {SOLE: self.response}

    @field_validator("labels", mode="before", json_schema_input_type=dict[str, str | float | bool])
    @classmethod
    def _labels_as_text(cls, labels: object) -> object:
        if not isinstance(labels, dict):
            return labels
        return {str(name): label_name(label) for name, label in labels.items()}

    @field_validator("tags", mode="before", json_schema_input_type=list[str] | str)
    @classmethod
    def _one_or_many(cls, tags: object) -> object:
        return [tags] if isinstance(tags, str) else tags

    @field_validator(
        "id", "label", "group", mode="before", json_schema_input_type=str | int | float | None
    )
    @classmethod
    def _as_text(cls, value: object) -> object:
        """YAML reads ``id: 12`` as a number; it is meant as a name."""
        return label_name(value) if isinstance(value, int | float) else value


_SNAPSHOT = re.compile(
    r"(?:-(?:latest|\d{4}-\d{2}-\d{2}|\d{8}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4})){1,4}$"
)
"""Version suffixes: ``-2026-01-01``, ``-20260101``, ``-0613``, ``-001``."""
_VARIANT = re.compile(r"[:@][\w.-]+$")
"""Variant suffixes: OpenRouter's ``:free``, an engine's ``@version``."""


def is_same_model(model: str, served_model: str) -> bool:
    """Whether ``served_model`` names ``model``: unchanged, as a dated snapshot or as a variant.

    Args:
        model: as a configuration names it, ``provider/model``.
        served_model: as the server names it, with a vendor or without.
    """
    (base, variant), (served_base, served_variant) = _parts(model), _parts(served_model)
    # Ollama's `qwen3:4b` is not `qwen3:14b`; OpenRouter leaves `:free` out of its answers.
    return base == served_base and (variant == served_variant or not (variant and served_variant))


def _parts(name: str) -> tuple[str, str]:
    """The last part of a name without its version, and its variant."""
    last = name.lower().rpartition("/")[2].replace(".", "-").replace("_", "-")
    variant = _VARIANT.search(last)
    return _SNAPSHOT.sub("", _VARIANT.sub("", last)), variant[0] if variant else ""
