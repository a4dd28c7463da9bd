"""The HTML report says what the findings say, trusts no text, and is the same every time."""

import base64
import hashlib
import json
import re
import shutil
import zlib
from dataclasses import replace
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import clash
from clash.analysis.criterion_scores import criterion_scores
from clash.analysis.findings import compute_findings
from clash.analysis.further import further
from clash.analysis.pareto import Trade
from clash.analysis.rundata import RunData
from clash.cli.app import run
from clash.escape import INVISIBLE, clip, digest, visible
from clash.records import Label
from clash.report.drawing import (
    Dot,
    Picture,
    Rect,
    StraightLine,
    Word,
    palette,
    png,
    svg,
    with_title,
)
from clash.report.headline import run_headline
from clash.report.html import charts, render_report
from clash.report.html.cost import cost
from clash.report.html.details import CHARTS, figure_of, has_rows
from clash.stats.intervals import Interval
from clash.store import layout
from clash.store.folder import RunFolder
from clash.store.journal import Journal
from clash.store.manifest import seal_file
from review.browser import hostile
from review.runs import judged, plain_prompts

NAMES_IN_DETAILS = {name for names in CHARTS.values() for name in names}
EVIL = "<b onmouseover=alert(1)>&\"'\u202e"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("html"), plain_prompts(30))


@pytest.fixture(scope="module")
def page(folder):
    return (folder.path / layout.REPORT_HTML).read_text(encoding="utf-8")


def unpack(page, name):
    match = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', page)
    return zlib.decompress(base64.b64decode(match[1])).decode()


def test_the_decision_comes_first_and_every_number_of_the_tables_is_there(folder, page):
    findings = compute_findings(RunData.load(folder))
    body = page[page.index("<body ") :]
    top = body[: body.index("<dl")].replace("\u00a0", " ")
    assert escape(run_headline(findings).text) in top
    chart = body[body.index("<ol") : body.index("</ol>")]
    for row in findings.leaderboard:
        assert f"<b>{row.win_rate_ties_half.estimate:.0%}</b>" in chart
        assert f"{row.points.estimate:.0%} [" in body


def test_a_run_is_verified_with_its_page_and_an_edit_of_the_page_is_found(tmp_path):
    new_run = judged(tmp_path, plain_prompts(3))
    assert run(["verify", str(new_run.path)]) == 0
    path = new_run.path / layout.REPORT_HTML
    path.write_text(path.read_text().replace("clash", "crash", 1))
    assert run(["verify", str(new_run.path)]) == 5


def forge(folder, tmp_path, change, name=layout.REPORT_HTML):
    """The run with a page that was changed and sealed again; what verify says of it."""
    shutil.copytree(folder.path, tmp_path / "forged")
    run_folder = RunFolder(tmp_path / "forged")
    path = run_folder.path / name
    text = path.read_text(encoding="utf-8")
    path.write_text(change(text), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != text
    with run_folder.write() as writer:
        manifest = writer.manifest()
        files = {**manifest.files, name: seal_file(path)}
        writer.save(manifest.model_copy(update={"files": files}).with_seal())
    return run(["verify", str(run_folder.path)])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("north", "south", 1),
        lambda text: text.replace("default-src", "default-source", 1),
        lambda text: re.sub(r'(id="text-0">)[^<]*', r"\1eJyLjgUAARUAuQ==", text),
        lambda text: text + "\n<p>Decided: south is better.</p>",
        lambda text: text.replace("</main>", "", 1),
    ],
    ids=["a name", "the policy", "an item", "a line more", "a tag less"],
)
def test_a_page_that_was_changed_and_sealed_again_is_found(folder, tmp_path, change, capsys):
    assert forge(folder, tmp_path, change) == 5
    output = capsys.readouterr().out
    assert "FAIL report.html shows the report: report.html" in output
    assert output.count("FAIL") == 1


def test_another_packing_of_the_same_items_is_the_same_page(folder, tmp_path):
    def repack(findings):
        text = zlib.decompress(base64.b64decode(findings[2]))
        return findings[1] + base64.b64encode(zlib.compress(text, 9)).decode() + "<"

    packed_pattern = r'(id="(?:text|calls)-\d+">)([^<]*)<'
    assert forge(folder, tmp_path, lambda text: re.sub(packed_pattern, repack, text)) == 0


OF_PARENT = ["report.html shows the report", "the retest report follows from its runs"]


def unchecked_names(folder, capsys):
    """What could not be checked, of a run of which nothing is wrong."""
    assert run(["verify", str(folder)]) == 5
    capsys.readouterr()
    assert run(["verify", str(folder), "--allow-unchecked", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {check["state"] for check in checks} <= {"ok", "unchecked"}
    return [check["check"] for check in checks if check["state"] == "unchecked"]


def test_what_a_rerun_says_of_its_parent_is_unchecked_once_its_labels_grow(tmp_path, capsys):
    parent = judged(tmp_path, plain_prompts(6), "first")
    assert run(["rerun", str(parent.path), "--out", str(tmp_path), "--yes", "-q"]) == 0
    child = tmp_path / "first-r1"
    assert run(["verify", str(child)]) == 0
    with Journal(parent.path / layout.LABELS) as labels:
        labels.append(Label(item_id="q1", annotator="ann", winner="south"))
    assert unchecked_names(child, capsys) == OF_PARENT
    shutil.rmtree(parent.path)
    assert unchecked_names(child, capsys) == OF_PARENT


def test_the_page_is_written_anew_to_the_byte_and_stays_verified(folder, page):
    assert run(["report", str(folder.path)]) == 0
    assert (folder.path / layout.REPORT_HTML).read_text(encoding="utf-8") == page
    assert run(["verify", str(folder.path)]) == 0


def test_two_runs_of_the_same_prompts_differ_only_in_ids_and_times(tmp_path):
    first, second = (judged(tmp_path / n, plain_prompts(4), n) for n in ("run-1", "run-2"))
    pages = [(f.path / layout.REPORT_HTML).read_text() for f in (first, second)]
    calls = re.compile(r'(id="calls-\d+">)[^<]*')  # which hold the time of each call

    def bare(page, name):
        page = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", calls.sub(r"\1", page))
        page = re.sub(r"\b[\d.,]+ m?s\b", "DURATION", page)
        return page.replace(name, "RUN")

    assert bare(pages[0], "run-1") == bare(pages[1], "run-2")
    assert unpack(pages[0], "text-0") == unpack(pages[1], "text-0")


def test_every_item_is_in_it_with_prompt_responses_judgments_and_raw_calls(folder, page):
    index = json.loads(unpack(page, "index"))
    assert [line["id"] for line in index] == [f"q{i}" for i in range(30)]
    for line in index:
        (item,) = [i for i in json.loads(unpack(page, f"text-{line['k']}"))
                   if i["item"]["item_id"] == line["id"]]  # fmt: skip
        assert {r["candidate"] for r in item["responses"]} == {"north", "south"}
        assert len(item["said"]) == 4
        assert all(sorted(answer["labels"]) == ["A0", "A1"] for answer in item["said"])
    lines = (folder.path / layout.CALLS).read_bytes().decode().splitlines()
    chunks = {line["k"] for line in index}
    carried_lines = [
        line for k in sorted(chunks) for line in unpack(page, f"calls-{k}").splitlines()
    ]
    assert sorted(carried_lines) == sorted(lines)


def test_nothing_a_model_or_a_user_wrote_is_markup(tmp_path):
    prompts = [
        {
            "id": f"{EVIL}{i}",
            "prompt": f"{EVIL} {i}",
            "tags": [EVIL],
            "responses": {f"{EVIL}north": hostile("http://x.test"), "south": EVIL},
            "label": "south",
        }
        for i in range(2)
    ]
    run = judged(tmp_path, prompts)
    text = (run.path / layout.REPORT_HTML).read_text(encoding="utf-8")
    assert "<b onmouseover" not in text
    assert "&lt;b onmouseover=alert(1)&gt;" in text
    assert "\u202e" not in text
    assert "U+202E" in text
    assert "x.test" not in text
    assert len(re.findall(r"<script>", text)) == 1


def test_the_policy_names_the_hashes_of_the_one_script_and_the_one_style_sheet(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    css = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert policy.startswith("default-src 'none';")
    assert f"script-src '{digest(script)}'" in policy
    assert f"style-src '{digest(css)}'" in policy
    assert "unsafe" not in policy
    assert 'style="' not in page  # the policy would drop it


def test_the_page_asks_for_nothing_outside_itself(page):
    assert not re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?!#)[a-z/.]""", page)


def test_a_hundred_items_stay_below_a_megabyte(tmp_path):
    run = judged(tmp_path, plain_prompts(100))
    assert (run.path / layout.REPORT_HTML).stat().st_size < 1_000_000


@pytest.fixture
def large(folder, tmp_path, monkeypatch):
    """The same run, its report as that of thousands of items."""
    monkeypatch.setattr("clash.report.html.report_page.ROOM", 0)
    shutil.copytree(folder.path, tmp_path / "large")
    assert run(["report", str(tmp_path / "large")]) == 0
    return RunFolder(tmp_path / "large")


def test_a_large_report_has_its_items_in_a_page_beside_it(large, page):
    full_text = (large.path / layout.REPORT_HTML).read_text(encoding="utf-8")
    beside = (large.path / layout.REPORT_DATA).read_text(encoding="utf-8")
    assert unpack(full_text, "index") == unpack(page, "index")
    assert 'id="text-0"' not in full_text
    assert unpack(beside, "text-0") == unpack(page, "text-0")
    record = json.loads(unpack(full_text, "beside"))
    assert record["file"] == layout.REPORT_DATA
    for name, block_digest in record["digests"].items():
        block = re.search(rf'id="{name}">([^<]*)<', beside)[1]
        assert base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() == block_digest
    assert f'data-key="{record["key"]}"' in beside
    assert len(re.findall(r"<script>", beside)) == 1


def test_both_pages_of_a_large_report_are_sealed_and_an_edit_of_either_is_found(large):
    assert run(["verify", str(large.path)]) == 0
    for name in (layout.REPORT_HTML, layout.REPORT_DATA):
        path = large.path / name
        before = path.read_bytes()
        path.write_bytes(before + b" ")
        assert run(["verify", str(large.path)]) == 5
        path.write_bytes(before)
    assert run(["verify", str(large.path)]) == 0


def test_a_report_that_fits_again_leaves_no_page_beside_it(large, monkeypatch):
    monkeypatch.setattr("clash.report.html.report_page.ROOM", 10**9)
    assert run(["report", str(large.path)]) == 0
    assert not (large.path / layout.REPORT_DATA).exists()
    assert run(["verify", str(large.path)]) == 0


def test_a_page_of_more_items_than_a_browser_holds_has_those_to_show_first_and_others_evenly(
    folder, monkeypatch
):
    monkeypatch.setattr("clash.report.html.packed_items.MOST_ITEMS", 28)
    data = RunData.load(folder)
    page = render_report(compute_findings(data), data, folder.path).html
    index = json.loads(unpack(page, "index"))
    places = [data.rows[line["id"]] for line in index]
    assert places == sorted(places)
    assert 28 - len(further(data, folder.path).differences.telling) <= len(places) <= 28
    assert max(np.diff([-1, *places, 30])) == 2
    telling = sorted((line["y"], line["id"]) for line in index if line["y"] is not None)
    assert tuple(name for _, name in telling) == further(data, folder.path).differences.telling
    assert f"{30 - len(places)} of 30 items are not listed" in page
    assert "<span>All</span>" in page  # the number of all is not that of the list
    assert len(unpack(page, "calls-0").splitlines()) == 4 * min(25, len(places))


def test_pictures_are_saved_as_svg_and_png(folder, tmp_path):
    assert run(["report", str(folder.path), "--plots", str(tmp_path / "plots")]) == 0
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {
        "leaderboard.svg",
        "leaderboard.png",
        "judge-agreement.svg",
        "judge-agreement.png",
    } <= names
    for path in (tmp_path / "plots").iterdir():
        if path.suffix == ".svg":
            assert ET.parse(path).getroot().tag.endswith("svg")
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_a_picture_is_drawn_the_same_in_svg_and_png_and_escapes_words():
    picture = Picture(
        "p", "a < b", "c & d", 40, 20,
        (Rect(0, 0, 20, 20, "seq-10"), StraightLine(0, 19, 40, 19), Dot(30, 10, 4), Word(2, 8, "<&", size=6)),
    )  # fmt: skip
    root = ET.fromstring(svg(picture))
    assert [child.text for child in root if child.tag.endswith("text")] == ["<&"]
    element = ET.fromstring(svg(with_title(picture)))
    assert [child.text for child in element if child.tag.endswith("text")] == ["a < b", "<&"]
    assert png(picture) == png(picture)
    import io

    from matplotlib.image import imread

    pixels = imread(io.BytesIO(png(picture)))
    # A pixel is two dots wide: a point of the rectangle that no other shape covers.
    colour = pixels[14 * 2, 14 * 2, :3]
    want = palette("light")["seq-10"]
    assert np.allclose(colour, [int(want[i : i + 2], 16) / 255 for i in (1, 3, 5)], atol=0.01)


def test_every_tone_of_a_picture_has_a_colour(folder):
    data = RunData.load(folder)
    for picture in charts.pictures(compute_findings(data), further(data, folder.path)):
        assert {shape.tone for shape in picture.shapes} <= palette("light").keys()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_numbers_on_heat_have_the_contrast_of_wcag_aa(theme):
    tones = palette(theme)

    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    for scale in ("seq", "div"):
        for step in range(11):
            pair = [luminance(tones[f"{scale}-{step}{end}"]) for end in ("", "-text")]
            assert (max(pair) + 0.05) / (min(pair) + 0.05) >= 4.5


def test_scores_are_means_over_items_of_the_voting_judges(folder):
    data = RunData.load(folder)
    scores_by_criterion = criterion_scores(data)
    cell = next(c for c in scores_by_criterion.cells if c.candidate == "north")
    by_item = {}
    for judgment in data.judgments:
        labels = data.blinds.labels(judgment)
        for label, row in judgment.scores.items():
            if labels[label] == "north" and cell.criterion in row:
                by_item.setdefault(judgment.item_id, []).append(row[cell.criterion])
    means = [sum(given) / len(given) for given in by_item.values()]
    assert cell.mean.estimate == pytest.approx(sum(means) / len(means))
    assert cell.mean.n == len(means) == scores_by_criterion.items[cell.criterion]


def test_scripts_write_out_the_same_hidden_characters():
    text = (Path(clash.__file__).parent / "pages/dom.js").read_text(encoding="utf-8")
    hidden_class = re.search(r"const HIDDEN = /\[(.*)\]/gu;", text)[1]
    script_class = re.sub(
        r"\\u\{?([0-9a-f]{4,5})\}?", lambda code: chr(int(code[1], 16)), hidden_class
    )
    both_patterns = (re.compile(f"[{set_}]") for set_ in (script_class, INVISIBLE))
    every = [chr(code) for code in range(0x110000)]
    first, second = ({entry for entry in every if record.match(entry)} for record in both_patterns)
    assert first == second


def test_text_that_is_smuggled_past_eyes_is_written_out_and_emoji_stay():
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in "A\u0001")
    assert visible(f"a{tags}\u200bb\ufeff") == "a[U+E0041][U+E0001][U+200B]b[U+FEFF]"
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\ufe0f"
    assert visible(family) == family


def test_hidden_characters_are_written_out():
    assert visible("a\u202eb\x00\tc\n") == "a[U+202E]b[U+0000]\tc\n"
    assert clip("one\ntwo  three", 9) == "one two …"


def test_a_run_where_nothing_was_judged_still_has_a_page(tmp_path):
    lonely = [{"id": "q", "prompt": "p", "responses": {"a": "x", "b": ""}}]
    run = judged(tmp_path, lonely)
    data = RunData.load(run)
    text = render_report(compute_findings(data), data, run.path).html
    assert "text-0" in text


def test_every_chart_that_compares_something_stands_on_the_page(folder, page):
    data = RunData.load(folder)
    chart_list = charts.charts(compute_findings(data), further(data, folder.path))
    visible_charts = [
        chart for chart in chart_list if has_rows(chart) and chart.name in NAMES_IN_DETAILS
    ]
    assert len(visible_charts) >= 3
    for chart in visible_charts:
        assert figure_of(chart).chart in page


def test_a_section_of_details_says_what_is_in_it_and_every_fold_ends(page):
    assert page.count("<details") == page.count("</details>") >= 6
    for contents in re.findall(r"<summary><h3>.*?</h3><span[^>]*>(.*?)</span>", page):
        assert contents


def test_the_front_is_marked_where_quality_has_a_price(folder):
    findings = compute_findings(RunData.load(folder))
    trades = [
        Trade("dear", 0.9, 0.02, 3.0, None, []),
        Trade("cheap", 0.6, 0.001, 1.0, None, []),
        Trade("neither", 0.5, 0.01, 0.5, None, []),  # fast, which no price shows
    ]
    picture = charts.pareto(replace(findings, trades=trades), "cost")
    fast = charts.pareto(replace(findings, trades=trades), "latency")
    assert {w.text: w.tone for w in fast.shapes if isinstance(w, Word)}["neither"] == "ink"
    places = {w.text: (w.x, w.y, w.tone) for w in picture.shapes if isinstance(w, Word)}
    assert places["neither"][2] == "ink-2"
    assert places["dear"][2] == places["cheap"][2] == "ink"
    assert places["cheap"][0] < places["neither"][0] < places["dear"][0]
    assert places["dear"][1] < places["cheap"][1] < places["neither"][1]
    assert "neither: 50% win rate, $0.01" in picture.description
    on_front = [part.endswith("on the front") for part in picture.description.split("; ")]
    assert on_front == [True, True, False]
    assert charts.pareto(replace(findings, trades=trades[:1]), "cost") is None
    rates = {trade.candidate: Interval(0.5, 0.4, 0.6, 0.95, 9, 9, "") for trade in trades}
    section = cost(replace(findings, trades=trades), rates)
    assert section.answer.endswith(f"within a price or a time: `clash choose {findings.run}`.")
