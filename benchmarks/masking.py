"""How often the author of a response is hidden, how often an attack is marked, and false alarms.

    python benchmarks/masking.py

Reads the labelled texts of tests/data/masking. Rules were made with one half of the claims and
innocent texts in view; the held-out half only measures them. Of the claims in public repositories
they hid 6 of 11 at first; then rules for the others were added.
Attacks, and honest texts with the words of attacks, were all in view: their rates say that what is
known is marked, and no more. Exact (Clopper-Pearson) 95% intervals. Offline, in seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from scipy.stats import binomtest  # noqa: TID253 - a script

import labelled_texts as texts
from clash.collect.authorship import claims
from clash.collect.blind import mask
from clash.collect.defusing import defuse
from clash.collect.normalise import normalise

CODE = "0123456789ab"


def is_hidden(claim, disguise="plain"):
    """Whether no name that the response gives itself is left."""
    text, names = texts.disguised(claim, disguise)
    masked_text = mask(text, claims(text))
    return not any(name in masked_text for name in names)


def is_masked(text):
    """Whether a text is changed, which says nothing of its author."""
    return bool(claims(text.text))


def is_marked(text):
    """Whether something in a response is taken for an attack."""
    flags = []
    defuse(normalise(text.text)[0], CODE, "A0", flags)
    return bool(flags)


def measurements():
    """What is counted, the texts, and what is counted of them."""
    authors, innocent = list(texts.claims()), list(texts.innocent())
    for half in ("development", "held-out"):
        of_half = [claim for claim in authors if claim.half == half]
        for disguise in texts.DISGUISES:
            yield (
                f"{half}: author hidden, {disguise}",
                of_half,
                lambda c, d=disguise: is_hidden(c, d),
            )
        yield (
            f"{half}: innocent, masked",
            [text for text in innocent if text.half == half],
            is_masked,
        )
    yield "public: author hidden", list(texts.claims_of_models()), is_hidden
    yield "public: innocent, masked", list(texts.texts_about_models()), is_masked
    for language in sorted({claim.language for claim in authors}):
        yield (
            f"{language}: author hidden",
            [c for c in authors if c.language == language],
            is_hidden,
        )
    yield "attack, marked", list(texts.attacks()), is_marked
    yield "honest, marked", list(texts.peaceful()), is_marked


def main():
    for name, cases, holds in measurements():
        count = sum(map(holds, cases))
        bounds = binomtest(count, len(cases)).proportion_ci(method="exact")
        share = count / len(cases)
        print(f"{name:46}{count}/{len(cases)} = {share:.1%} [{bounds.low:.1%}, {bounds.high:.1%}]")


if __name__ == "__main__":
    main()
