"""What all pages share: colours that can be read, one glossary, tooltips that are told aloud."""

import itertools
import re

import pytest

from clash.pages import COLOURS, GLOSSARY, gloss, stylesheet


def contrast(first, second):
    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("paper", ["paper", "wash"])
def test_words_and_graphics_stand_out_from_the_paper(theme, paper):
    colours = COLOURS[theme]
    for role in ("ink", "ink-2", "accent", "caution"):
        assert contrast(colours[role], colours[paper]) >= 4.5
    assert contrast(colours["accent"], colours["accent-wash"]) >= 4.5
    assert contrast(colours["grey"], colours[paper]) >= 3


def test_every_colour_that_is_used_is_defined():
    css = stylesheet()
    usage = set(re.findall(r"var\(--([\w-]+)\)", css))
    assert usage <= set(re.findall(r"--([\w-]+):", css))


def test_the_glossary_says_each_thing_once_in_short_sentences():
    for term in GLOSSARY.values():
        assert term.meaning.endswith(".")
        assert max(len(s) for s in re.split(r"(?<=[.:;]) ", term.meaning)) <= 160
    meanings = [term.meaning for term in GLOSSARY.values()]
    assert all(a != b for a, b in itertools.combinations(meanings, 2))


def test_a_term_explains_itself_once_and_nothing_in_the_text_is_markup():
    met_terms = set()
    html = gloss("<b>Win rate</b> of `a<b`: win rates, ties count half.", met_terms)
    assert html.count("<button") == 1
    assert GLOSSARY["win rate"].meaning in html
    assert "&lt;b&gt;" in html
    assert "<code>a&lt;b</code>" in html
    assert "<button" not in gloss("win rate", met_terms)
