"""Everything that a run does, decided before anything is spent.

A plan is a pure function of configuration and prompts: ``--dry-run`` shows exactly what a run does,
and a resumed run gets the same plan from its folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import ValidationError

from clash.collect.conversation import Script
from clash.config import PROMPT, PROVIDERS, Candidate, Config, Judge, ModelRef, Panel, SimulatedUser
from clash.errors import ConfigError, InputError, one_of
from clash.labels import BOTH_BAD, TIE
from clash.records import SELF, Item, Response
from clash.secrets.redaction import NO_SECRETS, SECRET_HEADER, secret_fields
from clash.store.stored import ItemPart
from clash.store.table import ItemRows, Marks, RecordTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clash.collect.load import Prompts
    from clash.collect.templates import Templates
    from clash.config import JudgingConfig
    from clash.records import Criteria, UserGoal
    from clash.secrets.redaction import Redactor
    from clash.store.manifest import Shard

GENERATION_TOKENS = 4096
CRITERIA_TOKENS = 150
_SHARE_STEP = Decimal("1e-9")


class FallbackJudge(Judge):
    """A fallback, as a judge of its own.

    Attributes:
        stands_in_for: id of the judge whose place it takes.
    """

    stands_in_for: str

    @property
    def seat(self) -> str:
        """Id of the judge whose place on the panel this one takes."""
        return self.stands_in_for


@dataclass(frozen=True)
class Plan:
    """What a run does.

    Attributes:
        judges: panel and observers, with the role and weight each really has.
        responses: the injected ones.
        criteria_ref: the model that writes criteria; null where none does.
        criteria_why: why none does, where dynamic criteria were asked for.
        reused_criteria: criteria of an earlier run, by item.
        redactor: knows every secret that this run could write down.
        secret: the codes of the pages follow from it; null for runs made before there was one.
            Of several, separated by spaces, the items take turns
            (:func:`~clash.collect.shards.joined_secrets`).
        shard: the part of a run that this is; null for a whole run.
    """

    config: Config
    panel: Panel
    judges: tuple[Judge, ...]
    items: RecordTable[Item]
    responses: RecordTable[Response]
    templates: Templates
    criteria_ref: ModelRef | None = None
    criteria_why: str | None = None
    reused_criteria: Mapping[str, Criteria] = field(default_factory=dict)
    redactor: Redactor = field(default=NO_SECRETS, repr=False)
    secret: str | None = None
    shard: Shard | None = None

    @property
    def candidates(self) -> list[Candidate]:
        """The candidates that are models and generate the missing responses."""
        return self.config.candidates

    def missing(self) -> Iterator[tuple[Item, Candidate]]:
        """Every response that has to be generated."""
        if self.candidates:
            for item in self.items:
                for candidate in self.missing_from(item):
                    yield item, candidate

    def missing_from(self, item: Item) -> Iterator[Candidate]:
        """The candidates whose response to an item has to be generated."""
        # A control item has its two responses, and nobody else takes part in it.
        for candidate in () if item.control else self.candidates:
            if not self.given_marks.has(candidate.id, self.positions[item.item_id]):
                yield candidate

    @cached_property
    def given_marks(self) -> Marks:
        """The items that a candidate has a given response to, by candidate."""
        marks = Marks(len(self.items))
        for response in self.responses.parts(_Author):
            position = self.positions.get(response.item_id)
            if position is not None:
                marks.put(response.candidate, position)
        return marks

    @cached_property
    def _given_responses(self) -> ItemRows[Response]:
        return ItemRows(self.responses, self.positions)

    def given_to(self, item_id: str) -> Iterator[Response]:
        """The given responses to an item."""
        return self._given_responses.of(self.positions[item_id])

    @cached_property
    def names(self) -> list[str]:
        """The names of all candidates, which no judge and no simulated user may read.

        Those of a shard include candidates that respond to items of other shards only.
        """
        elsewhere = () if self.shard is None else self.shard.candidates
        names = {*map(str, self.given_marks), *elsewhere}
        return sorted(names | {c.id for c in self.candidates})

    def user_of(self, item: Item) -> SimulatedUser | None:
        """Who plays the user of an item; null where nobody does."""
        user = self.config.user
        if item.control is not None:
            return None
        if item.user is not None:
            user = simulated_user(item.user, user)
        return user if user is not None and user.goal is not None else None

    def goal(self, item: Item) -> str | None:
        """What the simulated user of an item wants to reach; null where there is no such user."""
        user = self.user_of(item)
        return None if user is None else user.goal

    def script(self, item: Item) -> Script:
        """The turns of an item."""
        return Script.of(item, self.user_of(item))

    def has_turns(self, item: Item) -> bool:
        """Whether the user of an item has several turns."""
        return item.item_id in self._conversations or self.script(item).is_conversation

    @cached_property
    def _conversations(self) -> frozenset[str]:
        """Items that an injected conversation responds to."""
        return frozenset(part.item_id for part in self.responses.parts(_Author) if part.turns)

    @cached_property
    def fallback_judges(self) -> dict[str, tuple[FallbackJudge, ...]]:
        """The fallbacks of each judge that has some, in their order."""
        return {
            judge.id: tuple(_fallback_judge(judge, ref) for ref in judge.fallbacks)
            for judge in self.judges
            if judge.fallbacks
        }

    @property
    def all_judges(self) -> Iterator[Judge]:
        """Every judge that may be asked, fallbacks included."""
        yield from self.judges
        for judges in self.fallback_judges.values():
            yield from judges

    def refs(self) -> Iterator[ModelRef]:
        """Every model that this run may call."""
        yield from self.all_judges
        if self._generates:
            yield from self.candidates
            yield from self.users
        if self.criteria_ref is not None:
            yield self.criteria_ref

    @cached_property
    def _generates(self) -> bool:
        """Whether a response has to be generated."""
        return any(True for _ in self.missing())

    @cached_property
    def users(self) -> list[ModelRef]:
        """Every model that plays a user, once for each way to call it."""
        users = (user for item, _ in self.missing() if (user := self.user_of(item)) is not None)
        return list({user.ref.model_dump_json(): user.ref for user in users}.values())

    @property
    def quorum(self) -> float | None:
        """The quorum of the panel, in the actual weights of its judges."""
        observers = self.config.observers
        if self.panel.quorum is None or observers.role != "voting":
            return self.panel.quorum
        return self.panel.quorum * observers.panel_weight

    @property
    def excludes_self(self) -> bool:
        """Whether a judge is kept from judging its own responses."""
        exclude_self = self.config.exclude_self
        return self.panel.exclude_self if exclude_self is None else exclude_self

    @cached_property
    def own_candidates(self) -> dict[str, frozenset[str]]:
        """The candidates that are the same model as a voting judge, by judge."""
        models: dict[str, str | None] = {c.id: c.identity for c in self.candidates}
        for name in self.names:
            models.setdefault(name, _identity(name))
        voting = (judge for judge in self.all_judges if judge.role == "voting")
        candidates = {
            judge.id: frozenset(name for name, model in models.items() if model == judge.identity)
            for judge in voting
        }
        return {judge: names for judge, names in candidates.items() if names}

    @property
    def excluded_candidates(self) -> dict[str, frozenset[str]]:
        """Candidates whose responses a judge is not shown, by judge."""
        return self.own_candidates if self.excludes_self else {}

    @property
    def panel_record(self) -> dict[str, Any]:
        """The panel as a manifest lists it: every judge, and whose responses it is not shown."""
        excluded_lists = {judge: sorted(names) for judge, names in self.excluded_candidates.items()}
        return {
            "name": self.panel.name,
            "quorum": self.quorum,
            "ties": self.panel.ties,
            "judges": [
                judge.model_dump(mode="json", exclude={"fallbacks"}) for judge in self.all_judges
            ],
            **({"excluded": excluded_lists} if excluded_lists else {}),
        }

    @property
    def max_cost(self) -> Decimal | None:
        """The cap in US dollars; of a shard its share by items, rounded down."""
        limit = self.config.limits.max_cost
        if limit is None:
            return None
        dollars = Decimal(repr(limit))
        if self.shard is None:
            return dollars
        share = dollars * len(self.items) / self.shard.items
        return share.quantize(_SHARE_STEP, ROUND_DOWN)

    def secret_of(self, item_id: str) -> str | None:
        """The secret that the codes of an item follow from."""
        if self.secret is None or " " not in self.secret:
            return self.secret
        secrets = self.secret.split()
        return secrets[self.positions[item_id] % len(secrets)]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Where each item is in :attr:`items`, by id."""
        return {part.item_id: position for position, part in enumerate(self.items.parts(ItemPart))}

    @property
    def presentations(self) -> int:
        """How often each judge sees each item."""
        return 2 if self.config.blinding.both_orders else 1


class _Author(msgspec.Struct, gc=False):
    """The author of a line's response; of ``turns`` only their presence is read."""

    item_id: str
    candidate: str
    turns: list[msgspec.Raw] = []


def simulated_user(goal: UserGoal, user: SimulatedUser | None) -> SimulatedUser | None:
    """The run's simulated user with the goal of an item; null without a model.

    Raises:
        InputError: the model is none.
    """
    try:
        if user is not None:
            return user.for_item(goal)
        fields = goal.model_dump(exclude_none=True)
        return SimulatedUser(**fields).chosen_by("file") if goal.model is not None else None
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]["msg"]
        raise InputError(problem, field="user.model", hint="such as openai/gpt-5-mini") from None


def make_plan(
    config: Config,
    panel: Panel,
    prompts: Prompts,
    templates: Templates,
    *,
    criteria_ref: ModelRef | None = None,
    criteria_why: str | None = None,
    reused_criteria: Mapping[str, Criteria] | None = None,
    redactor: Redactor = NO_SECRETS,
    secret: str | None = None,
    shard: Shard | None = None,
) -> Plan:
    """Plan a run.

    Raises:
        InputError: an item has fewer than two responses and no model to write more, or its label
            names no candidate.
        ConfigError: a candidate and a judge cannot be told apart, or a header may hold a key.
    """
    judges = tuple(_judges(config, panel))
    if config.judging.is_single and not config.candidates:
        prompts = _with_prompts_as_texts(prompts)
    items, responses = _repeat(prompts, config.repeat)
    plan = Plan(
        config,
        panel,
        judges,
        items,
        responses,
        templates,
        criteria_ref,
        criteria_why,
        reused_criteria or {},
        redactor,
        secret,
        shard,
    )
    _check(plan, prompts)
    template_names = templates.of_run(
        has_turns=any(map(plan.has_turns, items)), shows_names=config.blinding.show_names
    )
    plan = replace(plan, templates=template_names)
    for ref in plan.refs():
        _check_options(ref)
    return plan


def _with_prompts_as_texts(prompts: Prompts) -> Prompts:
    """The prompts file, where an item without a response is judged by its prompt."""
    item_ids = {response.item_id for response in prompts.responses}
    texts = (
        Response(
            item_id=item.item_id,
            candidate=PROMPT,
            text=_prompt_text(item),
            source="injected",
        )
        for item in prompts.items
        if item.item_id not in item_ids
    )
    return prompts.with_records(prompts.items, chain(prompts.responses, texts))


def _prompt_text(item: Item) -> str:
    return "\n\n".join(turn.content for turn in item.turns)


def self_votes(plan: Plan) -> list[str]:
    """Warnings about voting judges that judge their own responses."""
    if plan.excludes_self:
        return []
    return [
        f"the voting judge {judge} is also the candidate {name}, and votes on its own responses;"
        " fix: --exclude-self, or exclude_self: true in the panel"
        for judge, names in plan.own_candidates.items()
        for name in sorted(names)
    ]


def candidate_names(config: Config, prompts: Prompts) -> dict[str, str]:
    """The id of each candidate by its model, where a file names its responses by the model.

    A model that several candidates share names none of them.
    """
    if not config.candidates:
        return {}
    models = [_plain_model(candidate) for candidate in config.candidates]
    names_in_file = {*prompts.candidates, *(item.label for item in prompts.items)}
    ids = {candidate.id for candidate in config.candidates}
    return {
        model: candidate.id
        for model, candidate in zip(models, config.candidates, strict=True)
        if models.count(model) == 1 and model in names_in_file and model not in ids
    }


def unwritten_responses(plan: Plan) -> list[str]:
    """Warnings about candidates of the prompts file that no model writes responses for.

    Such a candidate is judged only where the file has its response. It may be meant: then nothing
    is lost by the warning. Where its name is nearly that of a model, it is a mistake.
    """
    if not plan.candidates:
        return []
    models = {candidate.id for candidate in plan.candidates}
    n_items = sum(not item.control for item in plan.items)
    controls = [number for number, item in enumerate(plan.items) if item.control]
    counts = {
        name: plan.given_marks.count(name)
        - sum(plan.given_marks.has(name, number) for number in controls)
        for name in map(str, plan.given_marks)
        if name not in models
    }
    warnings = []
    for name, count in counts.items():
        match = similar_candidate(name, plan.candidates)
        if not count or (match is None and count == n_items):
            continue
        text = f"{name} has responses to {count} of {n_items} items, and no model generates more"
        if match is not None:
            text += (
                f"; fix: if it is {match.model}, write `id: {name}` beside that model in "
                "clash.yaml,"
                f" or call its responses {match.id} in the prompts file"
            )
        else:
            text += "; fix: add the others, or add its model to candidates"
        warnings.append(text)
    return warnings


def similar_candidate(name: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The candidate that a name may be meant for: parts of its model, or a spelling like its id."""
    parts = _name_parts(name)
    for candidate in candidates:
        if parts and parts <= {*_name_parts(candidate.id), *_name_parts(_plain_model(candidate))}:
            return candidate
    spellings = {candidate.id.lower(): candidate for candidate in candidates}
    matches = get_close_matches(name.lower(), spellings, n=1, cutoff=0.8)
    return spellings[matches[0]] if matches else None


def _name_parts(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9.]+", name.lower()))


def _plain_model(candidate: Candidate) -> str:
    return candidate.model.removeprefix("replay/")


def _identity(candidate: str) -> str | None:
    """The model that a response is named after; null where no model has this name."""
    provider, _, name = candidate.partition("/")
    return ModelRef(model=candidate).identity if provider in PROVIDERS and name else None


def _fallback_judge(judge: Judge, ref: ModelRef) -> FallbackJudge:
    ref_fields = {name: getattr(ref, name) for name in ModelRef.model_fields}
    return FallbackJudge(
        id=f"{judge.id}~{ref.model.removeprefix('replay/')}",
        role=judge.role,
        weight=judge.weight,
        stands_in_for=judge.id,
        **ref_fields,
    )


def _judges(config: Config, panel: Panel) -> Iterator[Judge]:
    observers = config.observers
    observers_vote = observers.role == "voting"
    for judge in panel.judges:
        heavier = observers_vote and judge.role == "voting"
        weight = judge.weight * observers.panel_weight if heavier else judge.weight
        yield judge.model_copy(update={"weight": weight if judge.role == "voting" else 0.0})
    panel_ids = {judge.id for judge in panel.judges}
    for judge in observing(config):
        if judge.id in panel_ids:
            raise ConfigError(
                f"the observer {judge.id!r} is in the panel already", field="observers"
            )
        weight = observers.weight if observers_vote else 0.0
        yield judge.model_copy(update={"role": observers.role, "weight": weight})


def observing(config: Config) -> list[Judge]:
    """The observers that the configuration asks for; by default each candidate that is a model.

    A Python function that writes responses need not be able to judge any.
    """
    if isinstance(config.observers.judges, list):
        return config.observers.judges
    # A candidate's cap on its answers is not the cap on its judgments.
    return [
        Judge(
            id=SELF + candidate.id,
            model=candidate.model,
            role="observer",
            base_url=candidate.base_url,
            base_urls=candidate.base_urls,
            engine=candidate.engine,
            api_key_env=candidate.api_key_env,
            options=candidate.options.model_copy(update={"max_tokens": None, "stream": None}),
            price=candidate.price,
            concurrency=candidate.concurrency,
        ).chosen_by(candidate.source)
        for candidate in config.candidates
        if not candidate.is_function
    ]


def not_observing(config: Config) -> list[str]:
    """A note on candidates that would judge their own responses, and are functions."""
    names = [candidate.id for candidate in config.candidates if candidate.is_function]
    if not names or isinstance(config.observers.judges, list):
        return []
    return [f"no self-evaluation by {', '.join(names)}: a Python function that writes responses"]


def _repeat(prompts: Prompts, repeat: int) -> tuple[RecordTable[Item], RecordTable[Response]]:
    """Each item ``repeat`` times, grouped by the item it repeats."""
    if repeat == 1:
        return RecordTable.of(Item, prompts.items), RecordTable.of(Response, prompts.responses)
    controls = {item.item_id for item in prompts.items if item.control}
    items = (
        item.model_copy(update={"item_id": _again(item.item_id, n), "group": item.cluster})
        for item in prompts.items
        if item.item_id not in controls
        for n in range(repeat)
    )
    responses = (
        response.model_copy(update={"item_id": _again(response.item_id, n)})
        for response in prompts.responses
        if response.item_id not in controls
        for n in range(repeat)
    )
    control_items = (item for item in prompts.items if item.item_id in controls)
    control_responses = (r for r in prompts.responses if r.item_id in controls)
    return (
        RecordTable.of(Item, chain(items, control_items)),
        RecordTable.of(Response, chain(responses, control_responses)),
    )


def _again(item_id: str, n: int) -> str:
    return f"{item_id}~{n + 1}"


def _check_options(ref: ModelRef) -> None:
    """Refuse options that hold a key: the configuration is written into the run folder."""
    suspects = [
        ("header", "options.headers", name)
        for name in ref.options.headers
        if SECRET_HEADER.search(name)
    ]
    arguments = ref.engine.arguments if ref.engine else {}
    for section, fields in (("options.extra", ref.options.extra), ("engine.arguments", arguments)):
        suspects += [("field", section, name) for name, _ in secret_fields(fields)]
    for kind, section, name in suspects:
        raise ConfigError(
            f"the {kind} {name} of {ref.model} may contain a key, which would be recorded",
            field=section,
            hint="put the key into a variable and name it in api_key_env",
        )


def _check_fallbacks(plan: Plan) -> None:
    ids = [judge.id for judge in plan.all_judges]
    repeated_ids = sorted({judge for judge in ids if ids.count(judge) > 1})
    if repeated_ids:
        raise ConfigError(
            f"the fallback {repeated_ids[0]!r} is named twice",
            field="fallbacks",
            hint="name each once",
        )
    for judges in plan.fallback_judges.values():
        for judge in judges:
            if judge.id in plan.excluded_candidates:
                raise ConfigError(
                    f"{judge.model} is a candidate, so with exclude_self it cannot replace "
                    f"{judge.stands_in_for}",
                    field="fallbacks",
                    hint="name a model that is not a candidate",
                )


def _check_user(plan: Plan, item: Item, path: Path) -> None:
    """Refuse a simulated user that could not say anything."""
    user = plan.user_of(item)
    if item.user is not None and user is None:
        lacks = "goal" if item.user.goal is None else "model"
        raise InputError(
            f"item {item.item_id!r} has a simulated user without a {lacks}",
            path=path,
            field="user",
            hint=f"write {lacks}: … under user, here or in clash.yaml",
        )
    n_written = len(Script.of(item).parts)
    if user is not None and user.turns <= n_written:
        raise InputError(
            f"item {item.item_id!r} has {n_written} user messages already, and the simulated user"
            f" may have {user.turns} turns with them",
            path=path,
            field="user.turns",
            hint=f"user: {{turns: {n_written + 1}}} or more",
        )


def _check_text_labels(
    item: Item, candidates: set[str], judging: JudgingConfig, prompts: Prompts
) -> None:
    """Labels of texts are labels or scores of the run, of texts that exist.

    The label of an item with several texts names the better one, as where they are ranked.
    """
    is_winner = item.label in {*candidates, "tie"} and len(candidates) > 1
    if item.label is not None and len(candidates) > 1 and not is_winner:
        raise InputError(
            f"item {item.item_id!r} has {len(candidates)} texts, and one label",
            path=prompts.path,
            field="label",
            hint="give each its own, labels: {candidate: label}, or name the better text",
        )
    labels = dict(item.text_labels or {})
    unknown = next((name for name in labels if name not in candidates), None)
    if unknown is not None:
        raise InputError(
            f"item {item.item_id!r} has a label for {unknown!r}, which has no text",
            path=prompts.path,
            field="labels",
            hint=one_of(unknown, sorted(candidates)),
        )
    own_label = [] if item.label is None or is_winner else [item.label]
    for label in [*labels.values(), *own_label]:
        if judging.outcome(label) is None:
            low, high = judging.bounds
            raise InputError(
                f"item {item.item_id!r} has the label {label!r}, which no judge can give",
                path=prompts.path,
                field="label",
                hint=one_of(label, list(judging.labels))
                if judging.labels
                else f"a score from {low} to {high}",
            )


def _check(plan: Plan, prompts: Prompts) -> None:
    _check_fallbacks(plan)
    models = {candidate.id for candidate in plan.candidates}
    names = [str(name) for name in plan.given_marks]
    if reserved_names := {TIE, BOTH_BAD} & {*models, *names}:
        raise InputError(
            f"a candidate is called {min(reserved_names)!r}, and so is a label that names no candidate",
            path=prompts.path,
            field="responses",
            hint="give the candidate another name",
        )
    for position, item in enumerate(plan.items):
        authors = {name for name in names if plan.given_marks.has(name, position)}
        if not item.control and models - authors:
            _check_user(plan, item, prompts.path)
        if plan.config.judging.is_single:
            _check_text_item(plan, item, models | authors, prompts)
        else:
            _check_ranked_item(item, models | authors, prompts)


def _check_text_item(plan: Plan, item: Item, candidates: set[str], prompts: Prompts) -> None:
    """An item each text of which is judged by itself."""
    if item.control is not None:
        raise ConfigError(
            "control items are pairs of responses, and this run judges each text by itself",
            field="judging",
            hint="leave judging out of the configuration of `clash redteam`",
        )
    prompt_text = _prompt_text(item)
    prompt_as_text = (r for r in plan.given_to(item.item_id) if r.candidate == PROMPT)
    is_model = any(candidate.id == PROMPT for candidate in plan.candidates)
    if is_model or any(r.text != prompt_text for r in prompt_as_text):
        raise InputError(
            f"item {item.item_id!r} has a candidate called {PROMPT!r}, which is the name of"
            " the prompt where that is the text to judge",
            path=prompts.path,
            field="responses",
            hint="give the candidate another name",
        )
    _check_text_labels(item, candidates, plan.config.judging, prompts)


def _check_ranked_item(item: Item, candidates: set[str], prompts: Prompts) -> None:
    """An item whose responses are ranked: two of them at least, and a label that is one of them."""
    if len(candidates) < 2:
        problem = (
            f"one response ({min(candidates)}), and nothing to compare it with"
            if candidates
            else "no responses to compare"
        )
        raise InputError(
            f"item {item.item_id!r} has {problem}",
            path=prompts.path,
            field="responses",
            hint="write at least two under responses, or name models to write some: --models a,b",
        )
    if item.label is not None and item.label not in {*candidates, "tie"}:
        raise InputError(
            f"item {item.item_id!r} has the label {item.label!r}, which is not a candidate "
            "of this item",
            path=prompts.path,
            field="label",
            hint=one_of(item.label, [*sorted(candidates), "tie"]),
        )
