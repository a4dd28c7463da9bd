"""A run that another method than Borda decides: killed, resumed, repeated, audited, stopped early."""

from __future__ import annotations

import hashlib
import json
import re
import signal
from typing import TYPE_CHECKING

import pytest

from e2e.lab import PRICE, Folder, Lab
from wire.answers import deterministic, labels, schema_of, with_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wire import VendorRequest, WireServer

_SHOWN = re.compile(r'<response label="(A\d+)"[^>]*>\n(.*?)\n</response', re.DOTALL)
PLAIN = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
NOISE = {"a": 0.1, "b": 0.5, "c": 0.8, "d": 1.0, "e": 1.2}


def draw(*words: str) -> float:
    """A number between 0 and 1 that is always the same for the same words."""
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:4]) / 2**32


def ranks(request: VendorRequest) -> str:
    """A judge that sees how good a response is, the better the less noise it has."""
    fields = dict(_SHOWN.findall(request.prompt))
    model = request.model.rpartition("/")[2]
    if not fields:
        return deterministic(request)

    def score(label: str) -> float:
        text = fields[label]
        return draw(text) + NOISE[model] * draw(model, text)

    order = sorted(labels(schema_of(request)), key=score, reverse=True)
    return json.dumps(with_code({"ranking": [[label] for label in order]}, request))


@pytest.fixture
def lab(lab: Lab, server: WireServer) -> Iterator[Lab]:
    before, server.answer = server.answer, ranks
    yield lab
    server.answer = before


def lay(lab: Lab, n: int = 32, candidates: tuple[str, ...] = ("ada", "bob")) -> None:
    lab.prompts(n, candidates=candidates)
    lab.panel(*({"model": f"compatible/{j}", "price": PRICE} for j in NOISE))


def verdicts(run: Folder) -> list[dict]:
    return run.lines("verdicts")


def forge(run: Folder, **more: object) -> None:
    """The verdict of the first item with other fields."""
    file = run.path / "verdicts.jsonl"
    first, *rest = file.read_text(encoding="utf-8").splitlines()
    lines = [json.dumps(json.loads(first) | more), *rest]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def failed_checks(lab: Lab, run: str = "runs/run") -> set[str]:
    result = lab.here("verify", run, "--json")
    return {check["check"] for check in result.json["checks"] if check["problem"]}


@pytest.mark.parametrize(
    ("method", "candidates"),
    [("dawid-skene", ("ada", "bob")), ("ising-shared", ("ada", "bob", "cyd", "dan"))],
)
def test_killed_resumed_and_repeated_the_method_stays_and_a_forged_posterior_is_found(
    lab, method, candidates
):
    lay(lab, 30, candidates)
    words = (*PLAIN, "--method", method)
    full_run = lab.judged(*words, run="whole")
    lab.server.latency_s = 0.05
    n_calls = len(lab.server.calls)
    process = lab.start("eval", *words, "--run-id", "run", "--yes", "--concurrency", 6)
    lab.wait_for(lambda: len(lab.server.calls) > n_calls + 60, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    lab.server.latency_s = 0.0
    run = lab.resumed()
    assert verdicts(run) == verdicts(full_run)
    for verdict in verdicts(run):
        assert verdict["method"] == method
        assert sum(verdict["p"].values()) == pytest.approx(1)
        assert verdict["borda"]
        assert verdict["ranking"] or "min_confidence" in verdict["abstained"]
    assert failed_checks(lab) == set()
    again = lab.here("rerun", "runs/run", "--yes")
    assert again.code == 0, again.err
    assert {v["method"] for v in verdicts(lab.folder("run-r1"))} == {method}
    p = verdicts(run)[0]["p"]
    forge(run, p=p | {"ada": p["ada"] + 1e-4})
    assert "verdicts follow from the judgments" in failed_checks(lab)


@pytest.mark.parametrize(
    "method",
    ["weighted", "auto"],
)
def test_every_method_decides_a_run_offline_from_the_same_judgments(lab, method):
    lay(lab, 30)
    lab.judged(*PLAIN, run="first")
    lab.server.clear()
    result = lab.here("eval", *PLAIN, "--method", method, "--replay", "first", "--run-id", "run",
                    "--yes", "--json")  # fmt: skip
    assert result.code == 0, result.err
    assert lab.server.count() == 0
    beside = result.json["aggregation"]
    assert (
        beside["run_method"] == beside["method"] == method.replace("weighted", "weighted-majority")
    )
    assert beside["items"] == sum(v["ranking"] is not None for v in verdicts(lab.folder()))
    n_same = beside["items"] - len(beside["disagreements"])
    assert beside["agreement"]["estimate"] == pytest.approx(n_same / beside["items"])
    assert failed_checks(lab) == set()
    screen = " ".join(lab.here("report", "runs/run").out.split())
    assert f"same winner as Borda on {n_same} of {beside['items']}" in screen


def test_three_items_are_too_few_and_the_screen_the_records_and_the_audit_say_so(lab):
    lay(lab, 3)
    result = lab.here("eval", *PLAIN, "--method", "factor", "--run-id", "run", "--yes")
    assert result.code == 0, result.err
    screen = " ".join(result.out.split())
    assert "Decided by Borda, not factor: 3 items are too few to weigh the judges by" in screen
    run = lab.folder()
    assert {(v["method"], v["fallback"][:6]) for v in verdicts(run)} == {("borda", "factor")}
    assert run.manifest["config"]["aggregate"]["method"] == "factor"
    assert failed_checks(lab) == set()
    forge(run, fallback=None)
    assert "verdicts follow from the judgments" in failed_checks(lab)


def test_a_registered_method_is_held_to(lab):
    lay(lab)
    result = lab.here("prereg", "prompts.yaml", "--panel", "panel.yaml", "--method", "dawid-skene",
                    "--primary", "ada", "--min-confidence", 0.1)  # fmt: skip
    assert result.code == 0, result.err
    words = (*PLAIN, "--prereg", "prereg.json")
    run = lab.judged(*words, "--method", "dawid-skene", "--min-confidence", 0.1, run="kept")
    aspects = {line["what"] for line in run.report["preregistration"]["deviations"]}
    assert not aspects & {"aggregation", "least confidence"}
    broken = lab.judged(*words, "--method", "majority", "--replay", "kept", run="broken")
    aspects = {line["what"] for line in broken.report["preregistration"]["deviations"]}
    assert "aggregation" in aspects


def test_looks_of_a_stopping_rule_are_at_verdicts_of_the_method(lab):
    lay(lab, 60)
    run = lab.judged(*PLAIN, "--method", "dawid-skene", "--until", "ci<0.01", "--looks", 2)
    looks = run.manifest["stopping"]["looks"]
    points = {True: 1.0, False: 0.0}
    shares = [
        0.5 if v["winner"] is None else points[v["winner"] == "ada"]
        for v in verdicts(run)
        if v["ranking"]
    ]
    assert looks[-1]["estimate"] == pytest.approx(sum(shares) / len(shares))
    assert {v["method"] for v in verdicts(run)} == {"dawid-skene"}
    assert failed_checks(lab) == set()
