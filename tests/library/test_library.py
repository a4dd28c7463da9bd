"""``import clash``: what a notebook has goes in, typed results come out, nothing is printed."""

from __future__ import annotations

import asyncio
import html
import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import clash
from clash.report.headline import run_headline

if TYPE_CHECKING:
    from pathlib import Path

PROMPTS = [
    {
        "id": f"q{i}",
        "prompt": f"Name {i + 1} things.",
        "responses": {"long": "one two three " * (i + 1), "short": "one."},
        "label": "long" if i % 4 else "short",
    }
    for i in range(8)
]
_rng = random.Random(7)
VOTES = [
    {
        "item": f"i{i}",
        "judge": f"j{j}",
        "vote": int((_rng.random() < 0.75) == i % 2),
        "label": i % 2,
    }
    for i in range(60)
    for j in range(4)
]


@pytest.fixture
def run(tmp_path: Path) -> clash.Run:
    return clash.evaluate(PROMPTS, panel="baseline", out=tmp_path, run_id="first")


def test_a_run_is_typed_and_prints_nothing(run: clash.Run, capfd) -> None:
    assert run.status == "complete"
    assert run.exit_code == 0
    assert (
        run.decision.headline
        == json.loads((run.path / "report.json").read_text())["headline"]["text"]
    )
    assert run.leaderboard[0].candidate in {"long", "short"}
    assert len(run.verdicts) == len(run.items) == 8
    assert run.concordance is not None
    assert run.cost_usd == 0
    assert run.coverage.items == 8
    assert "<table" in run._repr_html_()
    assert html.escape(run.decision.headline) in run.decision._repr_html_()
    assert capfd.readouterr() == ("", "")


def test_its_dict_is_the_json_of_the_command_line(run: clash.Run, capsys, tmp_path: Path) -> None:
    from clash.cli.app import run as command_line

    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps(entry) + "\n" for entry in PROMPTS))
    words = ["eval", str(prompts), "--panel", "baseline", "--out", str(tmp_path), "--json"]
    assert command_line([*words, "--run-id", "second"]) == 0
    record = json.loads(capsys.readouterr().out)
    our_fields = run.to_dict()
    same_keys = ("winner", "leaderboard", "coverage", "concordance", "decision")
    assert {key: record[key] for key in same_keys} == json.loads(
        json.dumps({key: our_fields[key] for key in same_keys})
    )
    assert clash.load("second", out=tmp_path).to_dict()["leaderboard"] == our_fields["leaderboard"]


def test_it_works_inside_a_running_loop(tmp_path: Path) -> None:
    async def notebook() -> tuple[clash.Run, clash.Run]:
        awaited_run = await clash.evaluate_async(
            PROMPTS, panel="baseline", out=tmp_path, run_id="awaited"
        )
        result = clash.evaluate(PROMPTS, panel="baseline", out=tmp_path, run_id="called")
        return awaited_run, result

    awaited_run, called_run = asyncio.run(notebook())
    assert awaited_run.to_dict()["leaderboard"] == called_run.to_dict()["leaderboard"]


def test_data_frames_go_in_and_come_out(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "prompt": ["Say x.", "Say y.", "Say z."],
            "response:a": ["one two", "three four", None],
            "response:b": ["one", "two", "three"],
            "label": ["a", float("nan"), "b"],
        }
    )
    with pytest.raises(clash.ClashError):
        clash.evaluate(frame, panel="baseline", out=tmp_path)  # nobody writes the blank response
    run = clash.evaluate(frame.iloc[:2], panel="baseline", out=tmp_path)
    assert set(run.to_frame()["candidate"]) == {"a", "b"}
    assert len(run.labels) + sum(item.label is not None for item in run.items) >= 1
    assert run.verdicts.to_frame()["item_id"].tolist() == ["q1", "q2"]


def test_votes_are_read_alike_from_dicts_frames_and_files(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in VOTES))
    results = [
        clash.aggregate(source, "majority,dawid-skene").to_dict()
        for source in (VOTES, pd.DataFrame(VOTES), path)
    ]
    assert results[0] == results[1] == results[2]
    assert results[0]["n_judges"] == 4


def test_a_blank_vote_of_a_data_frame_is_a_missing_one() -> None:
    pd = pytest.importorskip("pandas")
    rows = [{**row, "vote": "AB"[row["vote"]]} for row in VOTES]
    rows[5]["vote"] = None
    frame = clash.read_votes(pd.DataFrame(rows))
    assert frame.matrix.shape == (60, 4)
    assert clash.aggregate(pd.DataFrame(rows)).to_dict() == clash.aggregate(rows).to_dict()


def test_a_notebook_gives_the_answer_first_as_the_screen_does(
    run: clash.Run, tmp_path: Path
) -> None:
    page_text = html.unescape(run._repr_html_())
    assert page_text.startswith("<p><b>")
    assert page_text.index("</b>") - len("<p><b>") <= 90
    assert run_headline(run.findings).text in page_text
    copy = clash.evaluate(PROMPTS, panel="baseline", out=tmp_path, seed=9)
    result = clash.compare(run, copy)
    assert "agree on each of the 8 items that both have" in result.headlines[0]
    assert result._repr_html_().startswith(f"<p>{html.escape(result.headlines[0])}")
    again = clash.rerun(copy, out=tmp_path)
    assert again.headlines[0].startswith("The panel repeats itself on 100% of items")


def test_statistics_have_tables_dicts_and_html(run: clash.Run, tmp_path: Path) -> None:
    results: list[Any] = [
        clash.aggregate(VOTES, "majority"),
        clash.dependence(VOTES, bootstrap=20),
        clash.diagnose(run),
        clash.power("paired", n=40),
        clash.compare(run, clash.evaluate(PROMPTS, panel="baseline", out=tmp_path, seed=9)),
        clash.calibrate(VOTES, splits=1, to=tmp_path / "calibrator.json"),
    ]
    for result in results:
        assert json.dumps(result.to_dict(), allow_nan=False)
        assert "<table" in result._repr_html_()
        assert result.tables
    assert (tmp_path / "calibrator.json").is_file()


def test_a_calibrator_gives_votes_their_probabilities(tmp_path: Path) -> None:
    path = tmp_path / "calibrator.json"
    clash.calibrate(VOTES, splits=1, to=path)
    applied_map = clash.apply_calibrator(VOTES, path)
    verdicts = applied_map.to_dict()["verdicts"]
    assert json.dumps(applied_map.to_dict(), allow_nan=False)
    assert len(verdicts) == applied_map.findings.n == 60
    assert all((v["p"] > 0.5) == (v["winner"] == "A") for v in verdicts)
    assert "60 of 60 rows answered" in applied_map.headlines[0]
    with pytest.raises(clash.ClashError, match="the calibrator uses"):
        clash.apply_calibrator(VOTES, path, judges="j0,j1")
    with pytest.raises(clash.ClashError, match="between 0 and 1"):
        clash.apply_calibrator(VOTES, path, max_risk=2.0)


def test_rankings_of_candidates_come_from_a_run(run: clash.Run) -> None:
    result = clash.aggregate(run, "dawid-skene,borda,bradley-terry", bootstrap=50)
    # Too few judges for the first: the next that is not refused is used, and the reason told.
    assert result.findings.verdicts.selected == "borda"
    assert "dawid-skene was refused: " in result.findings.verdicts.reason
    assert {m.method for m in result.findings.rankings.methods} >= {"borda", "bradley-terry"}
    assert result.to_dict()["rankings"]


def test_a_rerun_says_how_far_the_panel_repeats_itself(run: clash.Run) -> None:
    retest = clash.rerun(run, 1, max_cost=1)
    assert len(retest.to_dict()["folders"]) == 2
    assert retest.findings is not None


def test_a_study_splits_the_variance_and_goes_on(run: clash.Run) -> None:
    first = clash.variance(run, shuffles=2, samples=1, items=4)
    assert first.findings.arms == ("g1-r1-s1-k1", "g1-r1-s2-k1")
    assert first.to_dict()["missing"] == []
    assert first.headlines[0]
    again = clash.variance(run, shuffles=2, samples=2)
    assert len(again.findings.arms) == 4
    assert again.to_dict()["design"]["items"] == 4
    with pytest.raises(clash.ClashError, match="256"):
        clash.variance(run, shuffles=300)


def test_favouritism_compares_a_run_with_its_unblinded_arm(tmp_path: Path) -> None:
    own_judges = [
        {**record, "responses": {"longest": record["responses"]["long"], "other": "one."}}
        for record in ({k: v for k, v in e.items() if k != "label"} for e in PROMPTS)
    ]
    run = clash.evaluate(own_judges, panel="baseline", out=tmp_path, run_id="own")
    favour = clash.favouritism(run)
    assert [line.judge for line in favour.findings.selves] == ["longest"]
    assert favour.to_dict()["unblinded"] == str(tmp_path / "own-unblinded")
    assert clash.favouritism(run).to_dict()["cost_usd"] is None, "the arm is there already"
    with pytest.raises(clash.ClashError, match="no judge of this run"):
        clash.favouritism(clash.evaluate(PROMPTS, panel="baseline", out=tmp_path))


def test_an_audit_takes_runs_and_votes_and_holds_what_is_published(run: clash.Run) -> None:
    (votes,) = clash.audit(VOTES, {"concordance": 0.99}).findings
    assert votes.flaws
    assert "published" in clash.audit(run).headlines[0]
    with pytest.raises(clash.ClashError, match="no figure"):
        clash.audit(VOTES, {"accuracy": 0.5})


def test_a_gate_is_true_where_the_thresholds_hold(run: clash.Run) -> None:
    assert clash.gate(run, {"coverage": 0.5, "cost": ("max", 1)})
    result = clash.gate(run, {"coverage": 2.0})
    assert not result
    assert any(not check.passed for check in result.checks)
    with pytest.raises(clash.ClashError, match="no threshold"):
        clash.gate(run)


def test_a_validation_is_held_against_people(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in PROMPTS))
    run = clash.validate(path, "baseline", n=6, out=tmp_path)
    assert run.manifest.kind == "validate"
    assert run.concordance is not None
    replay = clash.evaluate(panel="baseline", replay=run, out=tmp_path, run_id="replay")
    assert [label.item_id for label in replay.labels] == [label.item_id for label in run.labels]


def test_a_validation_of_texts_reads_a_label_for_each_text(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    records = [{"id": f"t{n}", "prompt": f"Text {n}.", "label": "yes"} for n in range(4)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    judging = {"mode": "label", "labels": ["yes", "no"]}
    run = clash.validate(
        path, panel=[lambda *_: "yes"], judging=judging, keep_repeats=True, out=tmp_path
    )
    assert run.findings.single_text.people.n == 4


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: clash.evaluate([{"promt": "x"}], panel="baseline"), "promt"),
        (lambda: clash.evaluate(PROMPTS, panel="baseline", sed=1), "no argument 'sed'"),
        (lambda: clash.evaluate({"prompt": "x"}, panel="baseline"), "dict"),
        (lambda: clash.evaluate(PROMPTS, [3], panel="baseline"), "is not a model"),
        (lambda: clash.load("nothing"), "nothing"),
        (lambda: clash.compare("one"), "two runs"),
        (lambda: clash.aggregate([{"item": "x"}]), "judge"),
        (lambda: clash.power("what"), "no question"),
        (lambda: clash.aggregate("wrong-majority", methd="majority"), "no argument 'methd'"),
        (lambda: clash.calibrate("wrong-majority", lables=50), 'did you mean "labels"'),
        (lambda: clash.diagnose("wrong-majority", use_label=False), 'did you mean "use_labels"'),
    ],
)
def test_a_mistake_is_an_error_with_a_message(call, text: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(clash.ClashError, match=text):
        call()


def test_an_error_names_the_entry_and_no_file_that_is_gone() -> None:
    with pytest.raises(clash.ClashError) as error:
        clash.evaluate([{"prompt": "fine"}, {"promt": "x"}], panel="baseline")
    assert str(error.value).startswith('prompts:2: unknown key "promt"')


def test_progress_is_told_to_a_callback(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int, float]] = []
    clash.evaluate(
        PROMPTS, panel="baseline", out=tmp_path, progress=lambda *step: steps.append(step)
    )
    assert steps[-1][1] == steps[-1][2] > 0


def test_an_error_of_the_callback_reaches_the_caller(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the bar broke")

    with pytest.raises((RuntimeError, BaseExceptionGroup)):
        clash.evaluate(PROMPTS, panel="baseline", out=tmp_path, progress=fail)


def test_clash_yaml_of_the_working_folder_is_not_read(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "clash.yaml").write_text("panel: does-not-exist\n")
    monkeypatch.chdir(tmp_path)
    assert clash.evaluate(PROMPTS, panel="baseline").status == "complete"
    with pytest.raises(clash.ClashError):
        clash.evaluate(PROMPTS, config="clash.yaml")


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, clash; heavy = {'numpy', 'pydantic', 'scipy', 'openai', 'typer', 'rich'};"
        " print(sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_every_name_of_the_library_is_there() -> None:
    for name in clash.__all__:
        assert getattr(clash, name) is not None
    with pytest.raises(AttributeError):
        clash.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prompts": "Name a thing."}, r"no such file: 'Name a thing.'\n.*\[text\]"),
        ({"prompts": "Name a thing. " * 500}, "no such file"),
        ({"prompts": {1, 2}}, "prompts: cannot be read: set"),
        ({"prompts": [{"prompt": "Say x.", "meta": {"at": object()}}]}, "prompts:1: cannot be"),
        ({"prompts": ["\ud800"]}, "prompts:1: cannot be written"),
        ({"prompts": None}, "no prompts"),
        ({"candidates": 3}, "is not a model: 3"),
        ({"panel": 3}, "is not a model: 3"),
        ({"settings": ["limits.timeout_s"]}, "settings: is not a dict"),
        ({"limit": 0}, "limit: is not a number of at least 1: 0"),
        ({"limit": -1}, "limit: is not a number of at least 1: -1"),
        ({"sed": 3}, "no argument 'sed'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(
    arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(clash.ClashError, match=message):
        clash.evaluate(**{"prompts": PROMPTS, "panel": "baseline", "out": tmp_path, **arguments})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("function", [clash.resume, clash.rerun, clash.favouritism, clash.variance])
def test_functions_on_a_run_refuse_arguments_that_there_are_not(function: Any) -> None:
    with pytest.raises(clash.ClashError, match=r'no argument .max_cst.\n.*did you mean "max_cost"'):
        function("latest", max_cst=1)


def test_thresholds_that_are_none_are_refused(run: clash.Run) -> None:
    for thresholds in (["cost"], {"cost": ("max", 1, 2)}, {"cost": "1"}):
        with pytest.raises(clash.ClashError, match="cost"):
            clash.gate(run, thresholds)  # type: ignore[arg-type]
    with pytest.raises(clash.ClashError, match="on: no way 'mean'"):
        clash.gate(run, {"cost": 1}, on="mean")  # type: ignore[arg-type]
    with pytest.raises(clash.ClashError, match="times"):
        clash.rerun(run, 0)


def test_prompts_come_from_a_generator_or_from_the_run_that_is_replayed(
    run: clash.Run, tmp_path: Path
) -> None:
    again = clash.evaluate((record for record in PROMPTS), panel="baseline", out=tmp_path)
    assert len(again.items) == 8
    replayed_result = clash.evaluate(replay=run, panel="baseline", out=tmp_path)
    assert [i.item_id for i in replayed_result.items] == [i.item_id for i in run.items]
    assert clash.load(replayed_result).id == replayed_result.id


def test_a_slice_of_records_has_their_methods_and_a_result_a_short_text(run: clash.Run) -> None:
    assert len(run.verdicts[:2].to_dict()) == 2
    assert repr(clash.aggregate(VOTES, "majority")).startswith(
        "<clash.Result AggregateFindings: The majority is right on "
    )
    assert repr(clash.gate(run, {"cost": ("max", 1)})) == "<clash.GateResult passed>"


def test_an_environment_that_is_passed_is_the_whole_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-of-the-folder\n")
    with pytest.raises(clash.ClashError, match="OPENAI_API_KEY"):
        clash.evaluate(PROMPTS, panel=["openai/gpt-6-luna"], env={}, max_cost=0.0001)


def test_an_exception_of_the_progress_callback_is_raised_as_it_is(tmp_path: Path) -> None:
    def progress(stage: str, n_done: int, total: int, cost_usd: float) -> None:
        raise ZeroDivisionError(stage)

    with pytest.raises(ZeroDivisionError):
        clash.evaluate(PROMPTS, panel="baseline", out=tmp_path, run_id="cut", progress=progress)
    assert clash.resume("cut", out=tmp_path).status == "complete"


def test_arrays_and_every_blank_of_pandas_are_read(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "prompt": ["Say x.", "Say y."],
            "tags": [np.array(["u", "v"]), np.array(["w"])],
            "system": [pd.NaT, pd.NA],
            "response:a": ["one two", "three four"],
            "response:b": ["one", "two"],
        }
    )
    run = clash.evaluate(frame, panel="baseline", out=tmp_path)
    assert [list(item.tags) for item in run.items] == [["u", "v"], ["w"]]
    assert {item.system for item in run.items} == {None}


def test_results_are_compared_by_identity(run: clash.Run) -> None:
    result = clash.aggregate(VOTES, "majority")
    assert result != clash.aggregate(VOTES, "majority")
    assert len({result, result}) == 1
