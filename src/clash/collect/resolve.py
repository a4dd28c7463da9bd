"""From the command line and files to a configuration and a panel.

Command line over environment over ``clash.yaml`` over defaults; the environment's values arrive
here as command line values, since Typer reads both.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clash import assets
from clash.collect.load import TEXT_SUFFIXES
from clash.config import Config, CriteriaConfig, ModelRef, Observers, Panel
from clash.documents import Document, read_text, read_yaml, validate
from clash.errors import ConfigError
from clash.files.inputs import without_gz
from clash.providers import STEERING, has_key, key_variable
from clash.secrets.destinations import Environ, read_confirmed, trusted_hosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clash.config import Candidate, Judge
    from clash.secrets.destinations import Source
    from clash.store.folder import RunFolder

R = TypeVar("R", bound=ModelRef)
_SECTIONS = frozenset({"criteria", "blinding", "aggregate", "limits", "generation"})
"""Parts of a configuration that are set value by value; the others are set whole."""
_OF_ONE_RUN = frozenset({"prompts", "out", "templates", "repeat"})
"""What a replay does not take from the run: paths, and copies that its items hold already."""
_MOST_ENV = 100_000
"""Characters of ``.env``: every value in it may be a secret, of which each form is looked for everywhere."""
DEFAULT_CONFIG = "clash.yaml"
DEFAULT_PANEL = "supreme-court"
KEYLESS_PANEL = "baseline"
_KEYS = (
    "OPENROUTER_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
)


@dataclass(frozen=True)
class ResolvedConfig:
    """A configuration, and the panel and criteria model that it means here and now.

    Attributes:
        criteria_ref: the model that writes criteria; null where none does.
        criteria_why: why none does, where dynamic criteria were asked for.
        notes: what was decided for the user, one line each, to be shown before anything runs.
    """

    config: Config
    panel: Panel
    criteria_ref: ModelRef | None
    criteria_why: str | None
    notes: list[str] = field(default_factory=list)


def read_config(
    path: Path | None, overrides: Mapping[str, Any], *, ignore_file: bool = False
) -> Config:
    """``clash.yaml`` (or ``path``) with the command line laid over it.

    Args:
        path: a file; null reads ``clash.yaml`` where there is one.
        overrides: values by dotted name, as ``limits.max_cost``; null where not set.
        ignore_file: do not look for ``clash.yaml``.

    Raises:
        ConfigError: a file or a value is wrong.
    """
    file = path or Path(DEFAULT_CONFIG)
    has_file = path is not None or (file.is_file() and not ignore_file)
    document = read_yaml(file) if has_file else Document(file, {})
    if document.value is None:
        document = Document(file, {})
    if not isinstance(document.value, dict):
        hint = "as in `panel: budget`; `clash init` writes one"
        raise ConfigError("expected keys and values", path=file, line=1, hint=hint)
    own_candidates = validate(Config, document).candidates
    overrides = {
        **overrides,
        "candidates": _select_candidates(overrides.get("candidates"), own_candidates, document),
    }
    source: Source = "auto" if path is None else "file"
    overlaid = Document(Path("command line"), _with_overrides(document.value, overrides))
    config = _relative(validate(Config, overlaid, context={"source": source}), file)
    if source == "auto":
        _check_within(config, file)
    if not isinstance(config.panel, str):
        return config
    panel = read_panel(config.panel, "file" if overrides.get("panel") is not None else source)
    return config.model_copy(update={"panel": panel})


def _select_candidates(
    models: Sequence[Any] | None, own_candidates: Sequence[Candidate], document: Document
) -> list[Any] | None:
    """Candidates of the command line: those that the file describes are taken as it has them.

    Args:
        models: what the command line names; null where it names none.
        own_candidates: the candidates of the file, by their id or model.
        document: the file, with the entries of ``own_candidates`` in the same order.
    """
    if models is None:
        return None
    roles: dict[str, Any] = {}
    for candidate, settings in zip(
        own_candidates, document.value.get("candidates") or (), strict=True
    ):
        fields = {"model": settings} if isinstance(settings, str) else settings
        for name in (candidate.model, candidate.id):
            roles[name] = {**fields, "id": candidate.id}
    return [roles.get(model, model) if isinstance(model, str) else model for model in models]


def _with_overrides(value: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {k: dict(v) if isinstance(v, dict) else v for k, v in value.items()}
    for path, override in overrides.items():
        if override is None:
            continue
        section, _, name = path.rpartition(".")
        if section:
            values.setdefault(section, {})[name] = override
        else:
            values[name] = override
    if overrides.get("criteria.mode") not in (None, "fixed"):
        # Another mode on the command line replaces the criteria that the file fixes.
        values["criteria"].pop("items", None)
    return values


def _relative(config: Config, file: Path) -> Config:
    """The configuration with its paths, which are relative to ``file``, made usable from here."""
    update: dict[str, Any] = {}
    for name in ("prompts", "panel", "templates"):
        value = getattr(config, name)
        if isinstance(value, str) and not Path(value).exists():
            path = file.parent / value
            if path.exists():
                update[name] = str(path)
    return config.model_copy(update=update)


def _check_within(config: Config, file: Path) -> None:
    """Refuse texts elsewhere that a ``clash.yaml`` names which nobody named.

    It may have come with the folder, as may a link in it, and any file can be read as a text: a key
    or a diary would be sent to a server that the same file names.
    """
    folder = os.path.realpath(file.parent)
    for name, value in (("prompts", config.prompts), ("templates", config.templates)):
        path = Path(value or "")
        is_text = path.is_dir() or without_gz(path).suffix.lower() in TEXT_SUFFIXES
        if value and is_text and not Path(os.path.realpath(path)).is_relative_to(folder):
            raise ConfigError(
                f"{value} leads out of the folder",
                path=file,
                field=name,
                hint=f"if you trust this file: --config {file}",
            )


def read_panel(name_or_path: str, source: Source) -> Panel:
    """A panel by name or path, named by ``source``.

    Raises:
        ConfigError: there is none, or it is wrong.
    """
    return validate(Panel, read_yaml(assets.panel(name_or_path)), context={"source": source})


def resolve(config: Config, environ: Mapping[str, str]) -> ResolvedConfig:
    """The panel and the criteria model that this configuration means here and now.

    Raises:
        ConfigError: the panel is wrong.
    """
    notes: list[str] = []
    panel = _panel(config, environ, notes)
    ref, reason = _criteria(config, panel, environ)
    if reason is not None and panel.name != KEYLESS_PANEL:
        notes.append(f"criteria: the four generic ones for every item ({reason})")
    return ResolvedConfig(config, panel, ref, reason, notes)


def _panel(config: Config, environ: Mapping[str, str], notes: list[str]) -> Panel:
    if isinstance(config.panel, Panel):
        return config.panel
    if config.panel is not None:
        return read_panel(config.panel, "run")
    if any(environ.get(name, "").strip() for name in _KEYS):
        for name in (DEFAULT_PANEL, f"{DEFAULT_PANEL}-native"):
            panel = read_panel(name, "owner")
            if all(has_key(judge, environ) for judge in panel.judges):
                notes.append(f"panel: {name} (--panel names another)")
                return panel
        notes.append(
            "no shipped panel has all its keys here: using the built-in non-LLM baselines, "
            "which show"
            " the pipeline, not quality (--panel FILE names your own panel)"
        )
    else:
        notes.append(
            "no API key is set and no panel named: using the built-in non-LLM baselines, which show"
            " the pipeline, not quality (`clash doctor` lists the keys)"
        )
    return read_panel(KEYLESS_PANEL, "owner")


def _criteria(
    config: Config, panel: Panel, environ: Mapping[str, str]
) -> tuple[ModelRef | None, str | None]:
    """The model that writes criteria, or why none does."""
    if config.criteria.mode != "dynamic":
        return None, None
    if panel.name == KEYLESS_PANEL and config.criteria.ref is None:
        return None, "the baseline panel works without any model"
    ref = criteria_model(config.criteria, panel)
    if ref is None:
        return None, "no model is configured to write them"
    if has_key(ref, environ) or key_variable(ref, environ) in _missing_keys(config, panel, environ):
        return ref, None
    return None, f"{ref.model} needs {key_variable(ref, environ)}"


def _missing_keys(config: Config, panel: Panel, environ: Mapping[str, str]) -> set[str | None]:
    """Variables without which no run can begin: once they are set, criteria can be had too."""
    refs = [*panel.judges, *config.candidates]
    return {key_variable(ref, environ) for ref in refs if not has_key(ref, environ)}


def criteria_model(config: CriteriaConfig, panel: Panel) -> ModelRef | None:
    """The model that is named to write criteria; null where none is."""
    return config.ref or panel.criteria or _default_criteria().ref


def _default_criteria() -> CriteriaConfig:
    """The criteria model of ``configs/defaults.yaml``."""
    return validate(
        CriteriaConfig, read_yaml(assets.path("configs", "defaults.yaml")).at("criteria")
    )


def replay_config(config: Config, run: RunFolder) -> Config:
    """The configuration of ``run`` under this one, with every model answered from its calls.

    Seed, blinding, criteria, panel and candidates are those of the run, unless the configuration
    sets others; calls missing from the recording fail, and are never paid.
    """
    config = _with_changes(own_config(run), config)
    panel = read_panel(config.panel, "run") if isinstance(config.panel, str) else config.panel
    if panel is None:
        raise ConfigError("the run to replay names no panel", field="--replay")
    update: dict[str, Any] = {
        "panel": panel.model_copy(
            update={"judges": [_judge_from(run, j) for j in panel.judges], "criteria": None}
        ),
        "candidates": [_from(run, c) for c in config.candidates],
        "criteria": _criteria_from(run, config.criteria, panel),
        "observers": _observers_from(run, config.observers),
    }
    return config.model_copy(update=update)


def own_config(run: RunFolder) -> dict[str, Any]:
    """The configuration of a run; criteria that it took from an earlier run now come from itself."""
    config = run.manifest().config
    if config.get("criteria", {}).get("reuse"):
        config = {**config, "criteria": {**config["criteria"], "reuse": str(run.path)}}
    return config


def _criteria_from(run: RunFolder, config: CriteriaConfig, panel: Panel) -> CriteriaConfig:
    """Criteria without a paid call: by the recorded model, or as they are where it asked none."""
    ref = criteria_model(config, panel)
    if config.mode != "dynamic" or ref is None or panel.name == KEYLESS_PANEL:
        return config
    again = _from(run, ref)
    update = {name: getattr(again, name) for name in ("model", "base_url", "options")}
    if config.reuse is None and not any(record.call_id for record in run.criteria()):
        update["reuse"] = str(run.path)
    return config.model_copy(update=update)


def _observers_from(run: RunFolder, observers: Observers) -> Observers:
    if not isinstance(observers.judges, list):
        return observers
    return observers.model_copy(update={"judges": [_from(run, j) for j in observers.judges]})


def _with_changes(old: Mapping[str, Any], config: Config) -> Config:
    """The configuration of an earlier run, with what ``config`` sets laid over it."""
    changes = config.model_dump(mode="json", exclude_unset=True)
    values = {name: value for name, value in old.items() if name not in _OF_ONE_RUN}
    for name, value in changes.items():
        sections = isinstance(value, dict) and isinstance(values.get(name), dict)
        values[name] = {**values[name], **value} if sections and name in _SECTIONS else value
    if changes.get("criteria", {}).get("mode") not in (None, "fixed"):
        values["criteria"]["items"] = []
    return Config.model_validate(values)


def _judge_from(run: RunFolder, judge: Judge) -> Judge:
    """A judge and its fallbacks with their answers read from ``run``."""
    fallbacks = [_from(run, ref) for ref in judge.fallbacks]
    return _from(run, judge).model_copy(update={"fallbacks": fallbacks})


def _from(run: RunFolder, ref: R) -> R:
    """``ref`` with its answers read from ``run``."""
    if ref.provider in (KEYLESS_PANEL, "replay"):
        return ref
    return ref.model_copy(
        update={
            "model": f"replay/{ref.model}",
            "base_url": str(run.path),
            "base_urls": [],
            "engine": None,
        }
    )


def load_environ(
    environ: Mapping[str, str], env_file: Path | None, trust_hosts: Iterable[str] = ()
) -> Environ:
    """The environment, the keys that ``.env`` adds to it, and the hosts that the owner trusts.

    The environment wins over ``.env``. Hosts come from the command line and from the environment itself.

    Raises:
        ConfigError: a named file does not exist, or the file sets what decides where keys go, or is too
            long.
    """
    hosts = [*trust_hosts, *trusted_hosts(environ)]
    keys = _keys(env_file, environ)
    return Environ({**keys, **environ}, destinations=read_confirmed(), hosts=hosts)


def _keys(env_file: Path | None, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of ``.env``, a file that often came with somebody else's folder."""
    file = env_file or Path(".env")
    if not file.is_file():
        if env_file is not None:
            raise ConfigError("no such file", path=file, field="--env-file")
        return {}
    from dotenv.parser import parse_stream

    text = read_text(file)
    if len(text) > _MOST_ENV:
        raise ConfigError(
            f"has more than {_MOST_ENV:,} characters", path=file, hint="leave only keys in it"
        )
    values: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(text)):
        name = binding.key
        if name is None or not binding.value:
            continue
        if name in STEERING and name not in environ:
            raise ConfigError(
                "is not read from this file, since it decides where keys are sent",
                path=file,
                line=binding.original.line,
                field=name,
                hint=f"remove the line; if you mean it, export {name} in the shell",
            )
        values[name] = binding.value
    return values
