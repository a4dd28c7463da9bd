"""What ships with clash is valid, honest and says what the documents say it says."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections import defaultdict
from pathlib import Path
from string import Template

import pytest
import yaml

from clash import assets
from clash.baselines import BASELINES, Case, judge
from clash.collect.authorship import claims
from clash.collect.criteria import FALLBACK
from clash.collect.defusing import defuse
from clash.collect.load import load
from clash.collect.templates import NAMES, Templates
from clash.config import Config, ModelRef, Panel
from clash.documents import read_yaml, validate
from clash.providers.prices import has_price

ROOT = Path(__file__).resolve().parents[1]
PANELS = {
    "baseline",
    "budget",
    "fcps-seven",
    "five",
    "ising-ten",
    "local",
    "paper",
    "supreme-court",
    "supreme-court-native",
}
OF_PAPERS = {"fcps-seven", "ising-ten"}
"""Panels as two papers had them, families and temperatures included."""


def panel(name):
    return validate(Panel, read_yaml(assets.panel(name)))


# -- panels -------------------------------------------------------------------------------------


def test_the_promised_panels_ship():
    assert set(assets.panels()) == PANELS


@pytest.mark.parametrize("name", sorted(PANELS))
def test_a_panel_is_valid_and_called_like_its_file(name):
    panel_data = panel(name)
    assert panel_data.name == name
    assert panel_data.description
    assert (
        panel_data.quorum is None
        or panel_data.voting_weight / 2 < panel_data.quorum <= panel_data.voting_weight
    )


@pytest.mark.parametrize("name", sorted(PANELS - {"baseline"} - OF_PAPERS))
def test_a_panel_of_models_is_diverse_and_leaves_room_to_reason(name):
    """No two votes from one family, and no cap that cuts a judgment off."""
    panel_data = panel(name)
    families = [judge.family for judge in panel_data.voting]
    assert len(families) >= 3
    assert len(set(families)) == len(families)
    assert all((judge.options.max_tokens or 0) >= 2500 for judge in panel_data.judges)
    assert all(judge.options.temperature is None for judge in panel_data.judges)


@pytest.mark.parametrize("name", sorted(PANELS - {"baseline", "local"} - OF_PAPERS))
def test_a_panel_s_criteria_cost_no_further_key(name):
    panel_data = panel(name)
    assert panel_data.criteria is not None
    assert panel_data.criteria.provider in {judge.provider for judge in panel_data.judges}
    options = panel_data.criteria.options
    assert (options.max_tokens == 150) if name == "paper" else (options.max_tokens >= 2000)


def test_the_baseline_panel_needs_nothing_and_has_every_baseline():
    panel_data = panel("baseline")
    assert {judge.model for judge in panel_data.judges} == {
        f"baseline/{name}" for name in BASELINES
    }
    assert panel_data.criteria is None


def test_the_paper_panel_is_the_published_one():
    panel_data = panel("paper")
    assert [judge.name for judge in panel_data.judges] == [
        "openai/gpt-5.2-pro",
        "anthropic/claude-opus-4.5",
        "google/gemini-2.5-pro",
    ]
    assert (panel_data.ties, panel_data.quorum) == (False, 2)
    assert {judge.weight for judge in panel_data.judges} == {1}


@pytest.mark.parametrize(("name", "judges"), [("ising-ten", 10), ("fcps-seven", 7)])
def test_the_panels_of_the_papers_are_as_many_and_as_cold(name, judges):
    panel_data = panel(name)
    assert len(panel_data.voting) == judges
    assert all(judge.options.temperature == 0 for judge in panel_data.judges)
    assert all((judge.options.max_tokens or 0) >= 2500 for judge in panel_data.judges)


def test_the_two_supreme_courts_have_the_same_judges():
    """One over OpenRouter, one over the vendors' own APIs; only the spelling differs."""

    def plain(model):
        return model.removeprefix("openrouter/").replace(".", "-")

    over, native = panel("supreme-court"), panel("supreme-court-native")
    assert [plain(j.model) for j in over.judges] == [plain(j.model) for j in native.judges]
    assert {j.provider for j in over.judges} == {"openrouter"}
    assert {j.provider for j in native.judges} == {"openai", "anthropic", "google"}


def test_the_local_panel_stays_on_this_machine():
    panel_data = panel("local")
    refs = [*panel_data.judges, panel_data.criteria]
    assert all(ref.base_url.startswith("http://localhost:11434/") for ref in refs)
    assert all(ref.price.input == ref.price.output == 0 for ref in refs)


# -- configuration ------------------------------------------------------------------------------


def test_the_example_configuration_is_valid_and_names_things_that_exist():
    config = validate(Config, read_yaml(assets.path("configs", "examples", "clash.yaml")))
    assert assets.panel(config.panel)
    assert assets.path("configs", "examples", config.prompts)
    prompts = load(assets.path("configs", "examples", config.prompts))
    assert set(prompts.candidates) <= {candidate.id for candidate in config.candidates}


def test_the_example_configuration_shows_every_key():
    """A key that only the code knows is a key that nobody finds."""
    text = assets.path("configs", "examples", "clash.yaml").read_text(encoding="utf-8")
    matches = set(re.findall(r"^(?:# )?(\w+):", text, re.MULTILINE))
    assert set(Config.model_fields) <= matches


def test_what_the_example_configuration_shows_is_the_default():
    """Its head promises it, for all but the keys that have to be filled in."""
    validation = validate(Config, read_yaml(assets.path("configs", "examples", "clash.yaml")))
    default = Config()
    for key in ("observers", "blinding", "aggregate", "repeat", "seed", "out"):
        assert getattr(validation, key) == getattr(default, key), key
    assert validation.limits.model_copy(update={"max_cost": None}) == default.limits


def test_commented_out_lines_of_the_example_are_valid_too():
    text = assets.path("configs", "examples", "clash.yaml").read_text(encoding="utf-8")
    lines = text.splitlines()
    fixed_criteria = {"criteria": yaml.safe_load(_uncomment(lines, "  # mode: fixed"))}
    assert Config.model_validate(fixed_criteria).criteria.items[0].name == "Correctness"
    served_candidates = {"candidates": yaml.safe_load(_uncomment(lines, "  # - model: compatible"))}
    assert Config.model_validate(served_candidates).candidates[0].price is not None


def _uncomment(lines, start):
    first = next(n for n, line in enumerate(lines) if line.startswith(start))
    block = []
    for line in lines[first:]:
        if not line.startswith("  # "):
            break
        block.append(line.removeprefix("  # "))
    return "\n".join(block)


def test_the_defaults_are_a_part_of_a_configuration():
    validation = validate(Config, read_yaml(assets.path("configs", "defaults.yaml")))
    assert validation.criteria.ref is not None
    assert validation.criteria.options.max_tokens >= 2000  # a model that thinks needs the room


def test_the_workflow_example_never_runs_without_a_cost_limit():
    text = assets.path("configs", "examples", "github-workflow.yaml").read_text(encoding="utf-8")
    steps = yaml.safe_load(text)["jobs"]["eval"]["steps"]
    runs = [step["run"] for step in steps if step.get("run", "").startswith("clash eval")]
    assert runs
    assert all("--max-cost" in run for run in runs)


# -- models that retire -------------------------------------------------------------------------


def retiring():
    return yaml.safe_load(assets.path("configs", "models.yaml").read_text(encoding="utf-8"))


def spelling_of(model):
    return model.removeprefix("openrouter/").replace(".", "-")


def test_retiring_models_are_named_once_with_a_day():
    names = []
    for record in retiring()["retiring"]:
        assert set(record) <= {"date", "status", "models", "instead", "note"}
        assert isinstance(record["date"], dt.date)
        assert record["status"] in {"announced", "earliest"}
        names += [spelling_of(name) for name in record["models"]]
    assert len(names) == len(set(names))
    for name in names:
        ModelRef(model=f"openrouter/{name}")


def test_no_successor_retires_itself():
    records = retiring()["retiring"]
    retired_names = {spelling_of(name) for record in records for name in record["models"]}
    assert not retired_names & {spelling_of(record["instead"]) for record in records}


def test_only_the_published_panel_has_judges_that_retire():
    """And only its criteria model does: what is used by default lasts."""
    of_papers = {"paper": {"claude", "gemini"}, "ising-ten": {"claude-opus", "claude-sonnet"}}
    retired_names = {
        spelling_of(name) for record in retiring()["retiring"] for name in record["models"]
    }
    for name in PANELS:
        panel_data = panel(name)
        ageing = {
            judge.id for judge in panel_data.judges if spelling_of(judge.model) in retired_names
        }
        if panel_data.criteria is not None and name != "paper":
            assert spelling_of(panel_data.criteria.model) not in retired_names, name
        assert ageing == of_papers.get(name, set()), name


def test_what_init_proposes_lasts_and_has_a_price():
    retired_names = {
        spelling_of(name) for record in retiring()["retiring"] for name in record["models"]
    }
    starters = yaml.safe_load(assets.path("configs", "starters.yaml").read_text(encoding="utf-8"))
    for starter in starters.values():
        for model in (*starter["models"], *starter["judges"]):
            assert spelling_of(model) not in retired_names
            assert has_price(ModelRef(model=model)), model


# -- templates ----------------------------------------------------------------------------------


def documentation():
    """Version, digits and placeholders by template, as ``prompts/README.md`` has them."""
    text = assets.path("prompts", "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([\w.]+)\.md` \| (\d+) \| `([0-9a-f]+)` \|([^|]*)\|", text, re.MULTILINE
    )
    return {
        name: (int(version), digits, set(re.findall(r"`(\w+)`", placeholders)))
        for name, version, digits, placeholders in rows
    }


def test_every_template_is_documented_and_every_documented_one_ships():
    files = {file.stem for file in assets.path("prompts").glob("*.md")} - {"README"}
    assert set(documentation()) == files == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_template_has_exactly_the_documented_placeholders(name):
    single = name not in Templates.load().texts
    template = Template(Templates.load(single=single).texts[name])
    assert template.is_valid()
    assert set(template.get_identifiers()) == documentation()[name][2]


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_template_has_a_new_version(name):
    """Raise the version in ``prompts/README.md`` and put the new digits there."""
    digest = hashlib.sha256(assets.path("prompts", f"{name}.md").read_bytes()).hexdigest()[:12]
    assert documentation()[name][1] == digest


def test_the_placeholders_are_explained():
    text = assets.path("prompts", "README.md").read_text(encoding="utf-8")
    usage = set().union(*(placeholders for _, _, placeholders in documentation().values()))
    assert set(re.findall(r"^\| `\$(\w+)`", text, re.MULTILINE)) == usage


def test_the_criteria_form_fits_its_cap():
    """Five criteria as long as the template allows, in fewer than 150 tokens (4 letters each)."""
    row = '{"name":"Correct edge case handling","weight":20,"description":"Does the code handle '
    row += 'empty lists and duplicates?"}'
    answer = '{"criteria":[' + ",".join([row] * 5) + "]}"
    assert len(answer) / 4 < 150


# -- the quickstart -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quickstart():
    return load(assets.path("datasets", "quickstart.yaml"))


@pytest.fixture(scope="module")
def responses(quickstart):
    places = defaultdict(dict)
    for response in quickstart.responses:
        places[response.item_id][response.candidate] = response.text
    return places


def test_the_quickstart_is_large_enough_and_clean(quickstart, responses):
    assert len(quickstart.items) >= 28
    assert quickstart.warnings == ()
    assert {len(texts) for texts in responses.values()} == {2, 3, 4}
    assert set(quickstart.candidates) == {"aspen", "birch", "cedar", "dahlia"}
    assert all(
        1 <= len(text.split()) <= 250 for item in responses.values() for text in item.values()
    )


def test_the_quickstart_covers_its_subjects_and_forms(quickstart):
    tags = {tag for item in quickstart.items for tag in item.tags}
    assert {"coding", "maths", "writing", "extraction", "explanation", "advice"} <= tags
    assert any(item.messages for item in quickstart.items)
    assert any(item.system for item in quickstart.items)
    assert any(item.reference for item in quickstart.items)


def test_labels_name_a_response_or_a_tie_of_two(quickstart, responses):
    for item in quickstart.items:
        assert item.label in {*responses[item.item_id], "tie", None}
        assert item.label != "tie" or len(responses[item.item_id]) == 2
    assert {"tie", None} <= {item.label for item in quickstart.items}


def test_no_system_is_always_best(quickstart):
    wins = [item.label for item in quickstart.items if item.label not in {"tie", None}]
    assert set(wins) == {"aspen", "birch", "cedar", "dahlia"}
    assert max(map(wins.count, wins)) == wins.count("aspen") < 0.6 * len(wins)


def test_the_longest_response_is_right_in_about_half(quickstart, responses):
    """Otherwise the demonstration would teach that length is quality."""
    credit = []
    for item in quickstart.items:
        if item.label not in {"tie", None}:
            first = judge("longest", Case(item.turns, responses[item.item_id])).ranking[0]
            credit.append((item.label in first) / len(first))
    assert 0.3 < sum(credit) / len(credit) < 0.7


def test_the_baselines_crown_another_system_than_the_labels(quickstart, responses):
    """As ``docs/panels.md`` says: that is what a control group is for."""
    points = defaultdict(list)
    for item in quickstart.items:
        texts = responses[item.item_id]
        shares = dict.fromkeys(texts, 0.0)
        for name in BASELINES:
            ranking = judge(name, Case(item.turns, texts, FALLBACK)).ranking
            for label, share in borda_shares(ranking).items():
                shares[label] += share / len(BASELINES)
        for candidate, share in shares.items():
            points[candidate].append(share)
    means = {candidate: sum(shares) / len(shares) for candidate, shares in points.items()}
    assert max(means, key=means.get) == "birch"


def borda_shares(ranking):
    """Share of the others that a label beats, ties counted as half."""
    size = sum(map(len, ranking))
    shares, above = {}, 0
    for group in ranking:
        beaten = size - above - len(group) + (len(group) - 1) / 2
        shares |= dict.fromkeys(group, beaten / (size - 1))
        above += len(group)
    return shares


def test_the_quickstart_gives_masking_and_neutralising_something_to_do(responses):
    texts = [text for item in responses.values() for text in item.values()]
    masked_texts = [text[start:end] for text in texts for start, end in claims(text)]
    flags = []
    for text in texts:
        defuse(text, "0123456789ab", "A0", flags)
    assert masked_texts == ["Claude", "Anthropic"]
    assert len(flags) == 2


@pytest.mark.parametrize("candidate", ["aspen", "birch", "cedar"])
def test_the_label_of_the_merging_item_is_earned(candidate, responses):
    """Its code is run: only the labelled response does what was asked, as it was asked."""
    text = responses["merge-sorted"][candidate]
    namespace = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], namespace)
    is_merged = namespace["merge"]([1, 3, 5], [2, 3, 8, 9]) == [1, 2, 3, 3, 5, 8, 9]
    as_asked = "sorted(" not in text
    assert (is_merged and as_asked) == (candidate == "aspen")


# -- docs/panels.md -----------------------------------------------------------------------------


def blocks():
    text = (ROOT / "docs" / "panels.md").read_text(encoding="utf-8")
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def test_the_panels_in_the_documentation_are_valid():
    panels = [Panel.model_validate(block) for block in blocks() if "judges" in block]
    assert len(panels[0].judges) == 7
    assert panels[0].voting_weight == 10
    plain_configs = [Config.model_validate(block) for block in blocks() if "judges" not in block]
    assert panels[1:]
    assert plain_configs


def test_the_documentation_lists_the_panels_and_baselines_that_ship():
    text = (ROOT / "docs" / "panels.md").read_text(encoding="utf-8")
    assert (
        set(re.findall(r"^\| `([\w-]+)` \| [^|]+ \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE))
        == PANELS
    )
    assert set(re.findall(r"^\| `baseline/(\w+)`", text, re.MULTILINE)) == set(BASELINES)
