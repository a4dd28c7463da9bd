"""Figure 4 and theorems 1 and 2: panels that agree, now and then, on the wrong side."""

from __future__ import annotations

import numpy as np

from clash.reproduction.simulations.exchangeable_panels import (
    FITTED_SIZE,
    N_ITEMS,
    curves_by_judges,
    exact_curve,
    excess_risk,
    fitted_rows,
    sampled_curve,
)
from clash.reproduction.simulations.experiment import (
    CurvePlot,
    PaperComparison,
    RiskCurve,
    SampleMean,
    Simulation,
)
from clash.stats.simulate.panels import CountLaw
from clash.stats.simulate.spins import CurieWeiss

JUDGES = (5, 7, 9, 15, 21, 31, 51, 75, 101, 151, 201)
SAMPLED_SIZES = (5, 15, 51, 101)
MANY = 2001
GLAUBER_JUDGES, GLAUBER_SWEEPS = 101, 30
NEGLIGIBLE = 5e-4
PANELS = {
    "beta 2, c 1.5": CurieWeiss((0.5, 2.0), -0.5, 1.5, 0.7),
    "beta 5, c 1": CurieWeiss((0.5, 5.0), -0.5, 1.0, 0.7),
}


def curie_weiss(seed: int, replications: int) -> Simulation:
    """Both rows of figure 4: exact risks, Monte Carlo beside them, fits without labels."""
    rng = np.random.default_rng(seed)
    rows = [row for name in PANELS for row in _rows(name, replications, rng)]
    return Simulation(
        name="curie-weiss",
        title="Curie-Weiss panels with informative marginals: dependence against independence",
        source="theorem 2, appendix G.2, figure 4",
        setting={
            "prevalence": "0.7",
            "beta of class 0": "0.5",
            "field of class 0": "-0.5",
            "items": f"{N_ITEMS} a replication",
            "judges": f"{JUDGES[0]} to {JUDGES[-1]}; {MANY} stands for many",
        },
        rows=tuple(rows),
        findings=_findings(),
        seed=seed,
        replications=replications,
        plots=(_risk_plot(replications, rng), _separation_plot()),
    )


def _rows(name: str, replications: int, rng: np.random.Generator) -> list[PaperComparison]:
    panel = PANELS[name]
    many = panel.counts(MANY)
    limit = panel.independent_limit
    figure_se = (limit * (1 - limit) / N_ITEMS) ** 0.5
    return [
        PaperComparison(
            f"{name}: risk if taken for independent, {MANY} judges",
            many.risk(many.if_independent()),
            limit,
            "theorem 2, pi (1 - p)",
            paper_se=figure_se,
        ),
        *_vanishing_risks(name, panel, many, "|M| >= t", "theorem 2"),
        _glauber(name, replications, rng),
        *fitted_rows(name, panel.counts(FITTED_SIZE), replications, rng),
    ]


def _vanishing_risks(
    name: str, panel: CurieWeiss, many: CountLaw, threshold: str, source: str
) -> list[PaperComparison]:
    """The risks of the threshold rule and of Bayes' rule, which go to zero with many judges."""
    rules = {threshold: panel.threshold_rule(MANY), "Bayes' rule": many.bayes()}
    return [
        PaperComparison(
            f"{name}: risk of {rule}, {MANY} judges",
            many.risk(decision),
            0.0,
            source,
            resolution=NEGLIGIBLE,
        )
        for rule, decision in rules.items()
    ]


def _glauber(name: str, replications: int, rng: np.random.Generator) -> PaperComparison:
    """How often Glauber dynamics puts class 1 into the right phase."""
    panel = PANELS[name]
    shares = []
    for _ in range(min(replications, 10)):
        sample = panel.glauber(GLAUBER_JUDGES, N_ITEMS // 2, GLAUBER_SWEEPS, rng)
        leaning = sample.votes[sample.labels == 1].mean(axis=1) > 0.5
        shares.append(leaning.mean())
    mean = SampleMean.of(shares)
    exact = panel.counts(GLAUBER_JUDGES).pmf[1]
    return PaperComparison.of(
        f"{name}: class 1 in the right phase, Glauber, {GLAUBER_JUDGES} judges",
        mean,
        float(exact[GLAUBER_JUDGES // 2 + 1 :].sum()),
        "equation 7, exact",
        note="the chain keeps the phase it starts in",
    )


def _risk_plot(replications: int, rng: np.random.Generator) -> CurvePlot:
    panels = {}
    for name, panel in PANELS.items():
        curve = sampled_curve(
            f"independence, {replications} x {N_ITEMS} items",
            [panel.counts(K) for K in SAMPLED_SIZES],
            replications,
            rng,
        )
        panels[name] = (*_exact_curves(panel, "|M| >= t"), curve, _limit(panel))
    return curves_by_judges("curie-weiss-risk", panels)


def _exact_curves(panel: CurieWeiss, threshold: str) -> tuple[RiskCurve, RiskCurve, RiskCurve]:
    """The risks of Bayes' rule, of the threshold rule and of independence."""
    laws = [panel.counts(K) for K in JUDGES]
    risks = tuple(law.risk(panel.threshold_rule(law.n_judges)) for law in laws)
    return (
        exact_curve("Bayes", laws, CountLaw.bayes),
        RiskCurve(threshold, JUDGES, risks),
        exact_curve("independence", laws, CountLaw.if_independent),
    )


def _limit(panel: CurieWeiss) -> RiskCurve:
    return RiskCurve("pi (1 - p)", (), (panel.independent_limit,), level=True)


def _separation_plot() -> CurvePlot:
    panels = {}
    for name, panel in PANELS.items():
        gap = tuple(excess_risk(panel.counts(K)) for K in JUDGES)
        panels[name] = RiskCurve("independence - Bayes", JUDGES, gap), _limit(panel)
    return curves_by_judges("curie-weiss-separation", panels, "excess risk")


def _findings() -> tuple[str, ...]:
    first = PANELS["beta 2, c 1.5"].counts(21)
    return (
        "Theorem 2 holds in the exact laws: the independence rule stays at pi (1 - p) whatever "
        "the number of judges, Bayes' rule and the threshold on |M| go to zero.",
        "The threshold |M| >= t is no near-Bayes rule for small panels: with 21 judges (beta 2) "
        f"it errs on {first.risk(PANELS['beta 2, c 1.5'].threshold_rule(21)):.1%} where "
        f"independence errs on {first.risk(first.if_independent()):.1%} and Bayes on "
        f"{first.risk(first.bayes()):.1%}.",
        "Glauber dynamics with a burn-in, which the paper suggests for sampling, does not sample "
        "this law: a chain stays in the phase it starts in, so that the wrong phase comes out "
        "many times too often and the risk of independence far above pi (1 - p). We draw the "
        "vote count from its exact law instead.",
    )


# -- theorem 1: no field at all, so that no judge says anything on its own -------------------------


ZERO_FIELD = {
    f"beta 0.5 and {cold:g}, prevalence {prevalence:g}": CurieWeiss(
        (0.5, cold), 0.0, 0.0, prevalence
    )
    for cold, prevalence in ((1.5, 0.7), (2.0, 0.7), (2.0, 0.3))
}


def zero_field(seed: int, replications: int) -> Simulation:
    """Theorem 1: each judge alone is a coin, and how they agree tells everything."""
    rng = np.random.default_rng(seed)
    rows = [row for name in ZERO_FIELD for row in _zero_rows(name, replications, rng)]
    return Simulation(
        name="zero-field",
        title="Curie-Weiss panels without a field: independence ignores every vote",
        source="theorem 1",
        setting={
            "class 0": "beta 0.5, no field",
            "class 1": "beta as named, no field",
            "judges": f"{JUDGES[0]} to {JUDGES[-1]}; {MANY} stands for many",
        },
        rows=tuple(rows),
        findings=_zero_findings(),
        seed=seed,
        replications=replications,
        plots=(
            curves_by_judges(
                "zero-field-risk",
                {name: _exact_curves(panel, "M^2 >= t") for name, panel in ZERO_FIELD.items()},
            ),
        ),
    )


def _zero_rows(name: str, replications: int, rng: np.random.Generator) -> list[PaperComparison]:
    panel = ZERO_FIELD[name]
    laws = [panel.counts(K) for K in (*JUDGES, MANY)]
    many = laws[-1]
    least = min(panel.prevalence, 1 - panel.prevalence)
    off = max(float(np.abs(law.marginals() - 0.5).max()) for law in laws)
    risks = [law.risk(law.if_independent()) for law in laws]
    furthest = max(risks, key=lambda risk: abs(risk - least))
    return [
        PaperComparison(
            f"{name}: P(vote 1) less 1/2, largest over classes and sizes",
            off,
            0.0,
            "theorem 1, part 1",
            resolution=1e-9,
        ),
        PaperComparison(
            f"{name}: risk if taken for independent, of all sizes the furthest from min(pi, 1 - pi)",
            furthest,
            least,
            "theorem 1, part 1",
            resolution=1e-9,
        ),
        *_vanishing_risks(name, panel, many, "M^2 >= t", "theorem 1, part 2"),
        PaperComparison(
            f"{name}: excess risk of independence, {MANY} judges",
            excess_risk(many),
            least,
            "theorem 1, part 3",
            resolution=NEGLIGIBLE,
        ),
        *fitted_rows(name, panel.counts(FITTED_SIZE), replications, rng),
    ]


def _zero_findings() -> tuple[str, ...]:
    law = next(iter(ZERO_FIELD.values())).counts(FITTED_SIZE)
    return (
        "Theorem 1 holds in the exact laws: every judge votes 1 as often in either class, independence"
        " always says the more frequent class, and the squared mean vote tells the classes apart.",
        f"With {FITTED_SIZE} judges the classes overlap: Bayes' rule, which knows the law, errs on"
        f" {law.risk(law.bayes()):.1%}. Which class is which cannot be learned from votes alone: both"
        " are symmetric, so labels or a prior have to say it.",
    )
