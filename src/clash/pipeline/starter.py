"""The files of a new project: which models and panel the keys at hand allow, and their texts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash import assets
from clash.collect.checkup import canonical, read_retirements
from clash.collect.resolve import KEYLESS_PANEL, read_panel
from clash.config import Candidate, Config, ModelRef, Panel, short_names
from clash.documents import Document, read_yaml, validate
from clash.errors import ConfigError
from clash.providers import has_key, key_variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


SCHEMAS = ".clash"
"""The folder beside ``clash.yaml`` that its editor hint leads to, so that it works offline."""
_JUDGE_TOKENS = 4000
_CRITERIA_TOKENS = 2000
_PLAIN = re.compile(r"[A-Za-z][\w./-]*")
"""What YAML reads as a text without quotes."""


@dataclass(frozen=True)
class Starter:
    """What a new project compares, and who judges.

    Attributes:
        panel: the name or path of a panel file, or a panel that is written out in ``clash.yaml``.
        variables: the keys that its models need, and whether each is set.
    """

    candidates: tuple[Candidate, ...]
    panel: str | Panel
    variables: Mapping[str, bool]

    @property
    def missing(self) -> list[str]:
        """The environment variables that must be set before the first call."""
        return [name for name, is_set in self.variables.items() if not is_set]


def key_report(environ: Mapping[str, str]) -> dict[str, bool]:
    """Which of the keys that ``clash init`` can use are set, by the name of their variable."""
    refs = [ModelRef(model=starter["models"][0]) for starter in _starters().values()]
    return {str(key_variable(ref, environ)): has_key(ref, environ) for ref in refs}


def default_models(environ: Mapping[str, str]) -> list[str]:
    """Two or more models that the keys at hand can call; those of OpenRouter where none is set."""
    providers = [starter["models"] for starter in _usable(environ)]
    if not providers:
        providers = [next(iter(_starters().values()))["models"]]
    return providers[0] if len(providers) == 1 else [models[0] for models in providers]


def make_starter(models: Sequence[str], panel: str | None, environ: Mapping[str, str]) -> Starter:
    """Decide on a panel for these models.

    Raises:
        ConfigError: a model has no known provider, there are fewer than two, or no such panel.
    """
    document = Document(Path("--models"), {"candidates": list(models)})
    candidates = tuple(validate(Config, document).candidates)
    if len(candidates) < 2:
        raise ConfigError(
            "a comparison needs two models", field="--models", hint="--models provider/a,provider/b"
        )
    if panel is not None:
        read_panel(panel, "owner")
    panel_spec = panel or _panel(candidates, environ)
    members = read_panel(panel_spec, "owner") if isinstance(panel_spec, str) else panel_spec
    refs = [*candidates, *members.judges, *([members.criteria] if members.criteria else [])]
    variables = {
        variable: has_key(ref, environ)
        for ref in refs
        if (variable := key_variable(ref, environ)) is not None
    }
    return Starter(candidates, panel_spec, variables)


def retirement_warnings(starter: Starter) -> list[str]:
    """Candidates that their vendor retires, with the day and a successor."""
    retirements = read_retirements()
    return [
        f"{candidate.model} is being retired ({retirement.day}); fix: use {retirement.instead}"
        for candidate in starter.candidates
        if (retirement := retirements.get(canonical(candidate))) is not None
    ]


def files(starter: Starter) -> dict[str, str]:
    """The text of each file of the project, by its path in the project's folder."""
    names = [candidate.id for candidate in starter.candidates]
    schemas = {f"{SCHEMAS}/{name}.schema.json": _schema(name) for name in ("config", "prompts")}
    return {
        "clash.yaml": _hint("config") + _config_text(starter),
        "prompts.yaml": _hint("prompts") + _prompts_text(names),
        ".github/workflows/clash.yaml": _workflow_text(starter),
        **schemas,
    }


def _starters() -> dict[str, Any]:
    return dict(read_yaml(assets.path("configs", "starters.yaml")).value)


def _usable(environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """The providers whose keys are set: OpenRouter alone where it can, which has all vendors."""
    starters = _starters()
    usable = {
        name: starter
        for name, starter in starters.items()
        if has_key(ModelRef(model=starter["models"][0]), environ)
    }
    aggregator = next(iter(starters))
    return [usable[aggregator]] if aggregator in usable else list(usable.values())


def _panel(candidates: Sequence[Candidate], environ: Mapping[str, str]) -> str | Panel:
    """A panel whose keys are set; where none are, one with the keys that the candidates need."""
    providers = {candidate.provider for candidate in candidates}
    starters = _usable(environ) or [s for name, s in _starters().items() if name in providers]
    if not starters:
        return KEYLESS_PANEL
    candidate_models = {candidate.identity for candidate in candidates}
    free_judges = [
        [
            model
            for model in starter["judges"]
            if ModelRef(model=model).identity not in candidate_models
        ]
        for starter in starters
    ]
    judges = [models for models in free_judges if models] or [
        starter["judges"] for starter in starters
    ]
    models = judges[0] if len(judges) == 1 else [models[0] for models in judges]
    return _own_panel(models, starters[0]["models"][0])


def _own_panel(models: Sequence[str], criteria_model: str) -> Panel:
    names = short_names(models)
    judges = [
        {"id": name, "model": model, "options": {"max_tokens": _JUDGE_TOKENS}}
        for name, model in zip(names, models, strict=True)
    ]
    criteria = {"model": criteria_model, "options": {"max_tokens": _CRITERIA_TOKENS}}
    return Panel.model_validate({"name": "own", "judges": judges, "criteria": criteria})


# -- texts ------------------------------------------------------------------------------------------


def _schema(name: str) -> str:
    return _text(assets.path("configs", "schemas", f"{name}.schema.json"))


def _hint(name: str) -> str:
    """The line by which editors find the schema of a YAML file."""
    return f"# yaml-language-server: $schema={SCHEMAS}/{name}.schema.json\n"


def _config_text(starter: Starter) -> str:
    text = _text(assets.path("configs", "examples", "clash.yaml"))
    lines = "".join(_candidate_lines(candidate) for candidate in starter.candidates)
    return _replace(
        _replace(text, r"(^candidates:\n)(?:  (?!# - ).*\n)+", lines),
        r"()^panel: .*\n",
        "".join(_panel_lines(starter.panel)),
    )


def _candidate_lines(candidate: Candidate) -> str:
    return f"  - model: {_scalar(candidate.model)}\n    id: {_scalar(candidate.id)}\n"


def _panel_lines(panel: str | Panel) -> Iterator[str]:
    if isinstance(panel, str):
        yield f"panel: {_scalar(panel)}\n"
        return
    yield f"panel:\n  name: {panel.name}\n  judges:\n"
    for judge in panel.judges:
        yield f"    - model: {_scalar(judge.model)}\n      id: {_scalar(judge.id)}\n"
        yield f"      options: {{max_tokens: {judge.options.max_tokens}}}\n"
    if panel.criteria is not None:
        yield f"  criteria:\n    model: {_scalar(panel.criteria.model)}\n"
        yield f"    options: {{max_tokens: {panel.criteria.options.max_tokens}}}\n"


def _prompts_text(names: Sequence[str]) -> str:
    """The example prompts, with the responses of its last one under the first two candidates."""
    text = _text(assets.path("configs", "examples", "prompts.yaml"))
    for example, name in zip(("luna", "haiku"), names, strict=False):
        text = _replace(text, rf"^(    |  label: ){example}\b", _scalar(name))
    return text


def _workflow_text(starter: Starter) -> str:
    text = _text(assets.path("configs", "examples", "github-workflow.yaml"))
    secret_lines = [f"{name}: ${{{{ secrets.{name} }}}}" for name in starter.variables]
    lines = f"\n{' ' * 10}".join(secret_lines or ["{}"])
    text = _replace(text, r"( {10})OPENROUTER_API_KEY: .*", lines)
    secrets_line = f"Needs the repository secrets {', '.join(starter.variables)}."
    return text.replace(
        "Needs the repository secret OPENROUTER_API_KEY.",
        f"{secrets_line}\n#" if starter.variables else "No model here needs a key.",
    )


def _scalar(text: str) -> str:
    """A text as a YAML scalar, quoted unless it is plain."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _replace(text: str, pattern: str, replacement: str) -> str:
    """Replace a part of an example by a text; a group of the pattern before it stays."""
    return re.sub(pattern, lambda match: (match[1] or "") + replacement, text, flags=re.MULTILINE)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
