"""Hold a run to thresholds, and against a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.analysis import gate as gates
from clash.analysis.figures import FIXED_NAMES, is_figure_name
from clash.analysis.findings import compute_findings, figures
from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.errors import ConfigError, nearest
from clash.pipeline.options import DEFAULT_DROP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.figures import Figure
    from clash.analysis.gate import GateCheck, On, ThresholdRule, Way
    from clash.store.folder import RunFolder
    from clash.votes import LabelUse


@dataclass(frozen=True)
class GateChecks:
    """The thresholds of a run, each with its figure and whether it passed.

    Attributes:
        labels: what became of the labels of the run.
    """

    run: RunData
    folder: RunFolder
    checks: tuple[GateCheck, ...]
    on: On
    labels: LabelUse

    @property
    def passed(self) -> bool:
        """Whether all thresholds hold."""
        return all(check.passed for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """The JSON of ``clash gate``."""
        rules = [to_dict(check) for check in self.checks]
        run = str(self.folder.path)
        labels = to_dict(self.labels)
        return {"run": run, "passed": self.passed, "on": self.on, "rules": rules, "labels": labels}


def rules_of(thresholds: Mapping[str, Any], way: Way = "min") -> list[ThresholdRule]:
    """Thresholds by figure as rules: a number, or ``("max", number)``.

    Raises:
        ConfigError: one is not a number.
    """
    if not isinstance(thresholds, Mapping):
        raise ConfigError(
            f"no thresholds by figure: {thresholds!r:.60}", hint='{"concordance": 0.8}'
        )
    rules = []
    for name, threshold in thresholds.items():
        is_pair = isinstance(threshold, tuple | list) and len(threshold) == 2
        kind, value = threshold if is_pair else (way, threshold)
        if kind not in ("min", "max", "max-drop", "max-rise") or not _is_number(value):
            raise ConfigError(
                f"cannot be read: {threshold!r}", field=name, hint='0.8, or ("max", 2)'
            )
        rules.append(gates.ThresholdRule(name, kind, float(value)))
    return rules


def parse_rules(texts: Sequence[str], way: Way) -> list[ThresholdRule]:
    """Rules as ``FIGURE=VALUE``.

    Raises:
        ConfigError: one is none.
    """
    rules = []
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            limit = float(value)
        except ValueError:
            limit = float("nan")
        if not equals or not name or limit != limit:
            raise ConfigError(
                f"cannot be read: {text!r}", field=f"--{way}", hint="FIGURE=VALUE, concordance=0.8"
            )
        rules.append(gates.ThresholdRule(name.strip(), way, limit))
    return rules


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def check_run(
    folder: RunFolder,
    rules: Sequence[ThresholdRule],
    changes: Sequence[ThresholdRule],
    *,
    baseline: RunFolder | None,
    on: On,
    allow_partial: bool,
    use_labels: bool = True,
) -> GateChecks:
    """Check a run against thresholds and, where there is one, a baseline; with their labels or not.

    Raises:
        ConfigError: there is nothing to check, or a rule names a figure that no run has.
    """
    if on not in ("bound", "point"):
        raise ConfigError(f"no way {on!r}", field="on", hint="bound or point")
    _check_usable(rules, changes, has_baseline=baseline is not None)
    run, labels = RunData.load(folder).by_label_rule(use_labels=use_labels)
    now = figures(compute_findings(run))
    _check_names([*rules, *changes], now)
    checks = [] if allow_partial else [gates.complete(run.manifest.status)]
    checks += gates.check(rules, now, on)
    if baseline is not None:
        earlier, _ = RunData.load(baseline).by_label_rule(use_labels=use_labels)
        differences = gates.figure_changes(run, earlier, now, figures(compute_findings(earlier)))
        name = "concordance" if "concordance" in differences else "unanimity"
        default = [gates.ThresholdRule(name, "max-drop", DEFAULT_DROP)]
        checks += gates.check(changes or default, differences, on)
    return GateChecks(run, folder, tuple(checks), on, labels)


def _check_usable(
    rules: Sequence[ThresholdRule], changes: Sequence[ThresholdRule], *, has_baseline: bool
) -> None:
    if not rules and not has_baseline:
        raise ConfigError(
            "no rule was given, so nothing could fail",
            field="--min",
            hint="--min concordance=0.8, --max cost=2, or --baseline RUN; --list names the figures",
        )
    if changes and not has_baseline:
        raise ConfigError("against which run?", field="--max-drop", hint="--baseline RUN")


def _check_names(rules: Sequence[ThresholdRule], now: Mapping[str, Figure]) -> None:
    """A figure that this run lacks fails its rule; one that no run has is a misspelling."""
    for rule in rules:
        if rule.figure in now or is_figure_name(rule.figure):
            continue
        match = nearest(rule.figure, [*now, *FIXED_NAMES])
        suggestion = f'did you mean "{match}"? ' if match else ""
        raise ConfigError(
            f"no figure is called {rule.figure!r}",
            field=f"--{rule.way}",
            hint=f"{suggestion}`clash gate RUN --list` names the figures",
        )
