"""The verdict card: one picture that loads nothing, says the answer, and keeps inside its frame."""

import re
import struct
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from clash.analysis.findings import compute_findings
from clash.analysis.rundata import RunData
from clash.cli.app import run as clash
from clash.pages import ChartRow
from clash.report import card as cards
from clash.report.drawing import Word, png, svg
from clash.report.headline import Headline, run_headline
from review.runs import judged, plain_prompts

SVG = "{http://www.w3.org/2000/svg}"
LONG = "openrouter/some-vendor-with-a-long-name/a-model-with-a-very-long-name-{}-preview-2026-11-22"
EVIL = '</text><script>alert(1)</script><image href="//evil.test/x"/>&\u202eevil\x00\ud800'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("card"), plain_prompts(12))


@pytest.fixture(scope="module")
def card(folder):
    return cards.verdict_card(compute_findings(RunData.load(folder)), "colours")


def texts(vector):
    return ["".join(node.itertext()) for node in ET.fromstring(vector).iter(f"{SVG}text")]


def overflows(card):
    """Words that leave the frame, measured in the widest font, or that lie on each other."""
    boxes = []
    for shape in cards.card_picture(card).shapes:
        if isinstance(shape, Word):
            width = cards._width(shape.text, shape.size, bold=shape.bold)
            start = {"start": 0, "middle": width / 2, "end": width}[shape.anchor]
            boxes.append((shape, shape.x - start, shape.x - start + width))
    outside = [
        s.text for s, left, right in boxes if left < 60 or right > 1140 or not 20 < s.y < 620
    ]
    touching = [
        (record.text, two.text)
        for i, (record, left, right) in enumerate(boxes)
        for two, other_left, other_right in boxes[i + 1 :]
        if abs(record.y - two.y) < 0.7 * min(record.size, two.size)
        and left < other_right
        and other_left < right
    ]
    return [*outside, *touching]


def test_it_says_the_headline_and_every_figure_of_the_leaderboard(folder, card):
    findings = compute_findings(RunData.load(folder))
    words = texts(svg(cards.card_picture(card)))
    headline = run_headline(findings)
    assert headline.text in " ".join(words).replace("\u00a0", " ")
    for row in findings.leaderboard:
        assert row.candidate in words
        assert f"{row.win_rate_ties_half.estimate:.0%}" in words
    assert not overflows(card)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_loads_nothing_and_is_one_file_of_its_size(card, theme):
    vector = svg(cards.card_picture(card), theme)
    root = ET.fromstring(vector)
    assert (root.get("width"), root.get("height")) == ("1200", "630")
    assert not re.search(r"href|url\(|<style|<image|<script", vector)
    raster = png(cards.card_picture(card), theme, dpi=100)
    assert struct.unpack(">II", raster[16:24]) == (1200, 630)


@pytest.mark.parametrize("n", [0, 2, 14])
@pytest.mark.parametrize(
    "name", ["a{}", LONG, EVIL + "{}", "汉字模型名称很长很长很长很长很长很长{}"]
)
@pytest.mark.parametrize(
    "against", [None, "Human labels disagree with this panel: " + "word " * 30]
)
def test_nothing_leaves_the_frame_or_lies_on_anything_else(card, n, name, against):
    rows = tuple(
        ChartRow(name.format(i), 0.5 + i / 100, 0.0, 1.0, "100%", "[100, 100]") for i in range(n)
    )
    headline = Headline("open", "W" * 200 if n == 6 else "winner " * 13, "evidence " * 40, against)
    odd = replace(card, source=EVIL * 5, headline=headline, chart=replace(card.chart, rows=rows))
    assert not overflows(odd)
    vector = svg(cards.card_picture(odd))
    ET.fromstring(vector)
    assert "<script" not in vector
    assert "\u202e" not in vector
    names = cards._names([row.name for row in rows[:6]], 24)[0]
    assert len(set(names.values())) == min(n, 6) or name.startswith("汉")


def test_a_candidate_that_was_never_judged_has_words_and_no_dot(card):
    row = ChartRow("ghost", None, note="never judged")
    chart = replace(card.chart, rows=(*card.chart.rows, row))
    vector = svg(cards.card_picture(replace(card, chart=chart)))
    assert "never judged" in texts(vector)
    assert vector.count("<circle") == len(card.chart.rows)


def test_the_command_writes_both_kinds_and_refuses_others(folder, tmp_path, capsys):
    svg, png = tmp_path / "deep" / "card.svg", tmp_path / "card.png"
    assert (
        clash(["report", str(folder.path), "--card", str(svg), "--card", str(png), "--dark"]) == 0
    )
    assert "#121417" in svg.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")
    assert clash(["report", str(folder.path), "--card", str(tmp_path / "card.gif")]) == 2
    assert ".svg or .png" in capsys.readouterr().err


def test_a_png_without_matplotlib_names_the_install_line(
    card, tmp_path, monkeypatch, folder, capsys
):
    monkeypatch.setattr("clash.extras.is_installed", lambda package: package != "matplotlib")
    assert clash(["report", str(folder.path), "--card", str(tmp_path / "card.png")]) == 2
    assert "pip install 'clash-eval[plots]'" in capsys.readouterr().err
    assert clash(["report", str(folder.path), "--card", str(tmp_path / "card.svg")]) == 0


def test_a_headline_of_a_hostile_name_keeps_its_figure():
    name = "[U+001B][31m" * 3
    text = f"No clear winner: {name} leads {name}, but not significantly (p = 0.77)."
    lines, _ = cards._headline_lines(text)
    assert " ".join(lines).replace("\xa0", " ").endswith("(p = 0.77).")
    assert len(lines) <= 3
