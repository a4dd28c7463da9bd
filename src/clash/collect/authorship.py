"""Finds statements, in the first person, of which model or vendor wrote a response.

A text *about* a model or a company is left alone. Each sentence that names one is reduced to its
words with a sign for each name, and read by the rules of ten languages, those with the most users:
a response may be in any of them, whatever the language of the prompt. Names inside a quotation are
somebody else's.

Sentences have a bounded length and only those with a name are read, so the time is linear in the
text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import merge
from typing import TYPE_CHECKING, Literal, NamedTuple

from clash.collect.authorship_rules import CLOSING, LANGUAGES, SALUTATION
from clash.collect.language_rules import one_of
from clash.collect.looks import look, offsets, read
from clash.collect.sentences import one_line, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clash.collect.authorship_rules import AuthorshipRules
    from clash.collect.sentences import Span

MOST_SENTENCES = 2_000
"""The most sentences with a model's name that are read: a text with more of them is about models."""

_SIGNS: dict[Kind, str] = {"model": "\x01", "plain": "\x02", "maker": "\x03", "company": "\x04"}

_BLANKS = re.compile(r"\s+")
_SIGN = re.compile("[\x01-\x04]")
_SIGN_IN_QUOTES = re.compile(r"[\"'\[]([\x01-\x04])[\"'\]]")
_QUOTATION = re.compile(
    r'"[^"\n]{1,400}"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|「[^」\n]{1,400}」|'
    r"『[^』\n]{1,400}』"
)
_REPORTING = re.compile(
    r"\b(?:say|says|said|answer|answers|answered|reply|replies|replied|claim|claims|claimed|write|"
    r"writes|wrote|print|prints|output|outputs|respond|responds)(?: that)?[:,]? ?$"
)
_LABEL = re.compile(r"^[^\S\n]{0,3}\w[\w .'-]{0,30}:", re.MULTILINE)


@dataclass(frozen=True)
class _Sentence:
    """A sentence that names a model or its maker.

    Attributes:
        words: by their looks, with a sign for each name.
        names: where each sign's name stands in the response.
    """

    words: str
    names: tuple[Span, ...]

    @cached_property
    def signs(self) -> list[int]:
        """Where the signs are in ``words``."""
        return [sign.start() for sign in _SIGN.finditer(self.words)]

    @cached_property
    def languages(self) -> list[AuthorshipRules]:
        """Those whose rules may fit."""
        return [language for language in LANGUAGES if language.cue.search(self.words)]

    def names_in(self, pattern: re.Pattern[str]) -> Iterator[Span]:
        """The names within each match of ``pattern``, unless the sentence reports what somebody said."""
        for match in pattern.finditer(self.words):
            if not _REPORTING.search(self.words[max(match.start() - 20, 0) : match.start()]):
                first, last = (bisect_left(self.signs, at) for at in match.span())
                yield from self.names[first:last]


def claims(text: str, candidates: Iterable[str] = ()) -> list[Span]:
    """Where ``text`` names its author or its author's maker: spans, in order.

    Args:
        text: a response.
        candidates: ids, which are names as well.
    """
    names = names_of(tuple(sorted(candidates)))
    looks = read(text)
    if next(names.find(looks), None) is None:
        return []
    sentences = list(_sentences(text, names))
    if not sentences:
        return []  # the only name is torn where a sentence was cut for its length
    spans = {span for sentence in sentences for span in _author_names(sentence)}
    spans.update(_label(sentences, looks), _signature(sentences, text))
    hints = {span for sentence in sentences for span in _author_names(sentence, hints=True)}
    if hints and (spans or any(rules.self_description.search(looks) for rules in LANGUAGES)):
        spans |= hints
    quotations = _quotations(text)
    return sorted(span for span in spans if not _is_quoted(span, quotations))


def _sentences(text: str, names: Names) -> Iterator[_Sentence]:
    """The sentences of ``text`` that hold a name."""
    number = 0
    for start, end in split_sentences(text):
        piece = text[start:end]
        mentions = list(names.find(read(piece)))
        if not mentions:
            continue
        yield _sentence(piece, start, mentions)
        number += 1
        if number == MOST_SENTENCES:
            return


def _sentence(piece: str, start: int, mentions: Sequence[Mention]) -> _Sentence:
    looks, sources = read(piece), offsets(piece)
    parts, last = [], 0
    for mention in mentions:
        parts += [looks[last : mention.start], _SIGNS[mention.kind]]
        last = mention.end
    words = one_line("".join([*parts, looks[last:]]))
    words = _SIGN_IN_QUOTES.sub(r"\1", words)
    names = tuple(
        (start + sources[mention.start], start + sources[mention.end - 1] + 1)
        for mention in mentions
    )
    return _Sentence(words, names)


def _author_names(sentence: _Sentence, *, hints: bool = False) -> Iterator[Span]:
    """The names that a rule says wrote the response; with ``hints`` by the weaker rules."""
    for language in sentence.languages:
        for rule in language.hints if hints else language.rules:
            yield from sentence.names_in(rule)


def _label(sentences: Sequence[_Sentence], looks: str) -> Iterator[Span]:
    """``GPT-4: the answer is 42``, unless other speakers have lines too: that is a dialogue."""
    if len(_LABEL.findall(looks)) == 1 and _LABEL.match(looks.lstrip()):
        first = sentences[0]
        if re.match(r"[\x01\x02] ?:", first.words) and not looks[: first.names[0][0]].strip():
            yield first.names[0]


def _signature(sentences: Sequence[_Sentence], text: str) -> Iterator[Span]:
    """A name alone, after a dash or a closing formula, at the very end."""
    last = sentences[-1]
    start, end = last.names[-1]
    if len(last.names) > 1 or text[end:].strip(" \t\n*_`.!"):
        return
    line = text.rfind("\n", 0, start) + 1
    before = _BLANKS.sub(" ", read(text[max(start - 80, 0) : start]))
    alone = re.fullmatch(r"[-\s]*", read(text[line:start])) is not None
    is_signature = CLOSING.search(before) or (re.search(r"- ?$", before) is not None and alone)
    letter = SALUTATION.search(read(text[:80].lstrip()))
    if is_signature and (alone or CLOSING.search(before)) and not (letter and "\x02" in last.words):
        yield start, end


def _quotations(text: str) -> list[Span]:
    """Spans of quotations. A response that is one quotation from end to end quotes nobody."""
    longest = len(text.strip()) - 2
    return [m.span() for m in _QUOTATION.finditer(text) if m.end() - m.start() < longest]


def _is_quoted(name: Span, quotations: Sequence[Span]) -> bool:
    """Whether a name stands in a longer quotation; in ``I am "Claude"`` it does not."""
    start, end = name
    number = bisect_left(quotations, (start + 1, 0)) - 1
    if number < 0:
        return False
    quotation_start, quotation_end = quotations[number]
    longer = (quotation_end - quotation_start) - (end - start)
    return end < quotation_end and longer > 3


# -- the names of models and of their makers in a text --------------------------------------------
# A name is *plain* where a person, an animal, a star sign or a thing has it too ("Claude", "Gemini",
# "Falcon"): alone, it says little. With a version or a variant it names a model.


Kind = Literal["model", "plain", "maker", "company"]


class Mention(NamedTuple):
    """A name in a text. Models of ``plain`` names and companies are known for other things too."""

    start: int
    end: int
    kind: Kind


# A blank in a name may be missing or a hyphen.
_MODELS = (
    "chat gpt", "gpt", "deep seek", "qwen", "qwq", "mixtral", "ministral", "codestral", "hunyuan",
    "dbrx", "glm", "chat glm", "nemotron", "grok", "meta ai", "bing chat", "doubao", "ernie bot",
    "yandexgpt", "gigachat", "internlm", "olmo", "通义千问", "文心一言", "豆包", "混元", "智谱清言",
    "讯飞星火", "ディープシーク", "चैटजीपीटी", "डीपसीक", "شات جي بي تي", "تشات جي بي تي", "ديب سيك",
    "чатгпт", "гигачат", "дипсик",
)  # fmt: skip
_PLAIN = (
    "claude", "gemini", "gemma", "bard", "palm", "llama", "mistral", "kimi", "command r", "copilot",
    "phi", "vicuna", "alpaca", "nova", "ernie", "jamba", "falcon", "granite", "titan", "pixtral",
    "magistral", "o1", "o3", "o4", "クロード", "ジェミニ", "克劳德", "क्लॉड", "जेमिनी", "كلود",
    "جيميني", "جيمناي", "клод", "джемини",
)  # fmt: skip
_MAKERS = (
    "anthropic", "open ai", "google deep mind", "deep mind", "google ai", "mistral ai", "xai",
    "x.ai", "alibaba cloud", "moonshot ai", "cohere", "zhipu ai", "zhipu", "01.ai", "ai21 labs",
    "databricks", "lmsys", "bytedance", "minimax", "stability ai", "hugging face", "inflection ai",
    "perplexity ai", "baidu", "technology innovation institute", "阿里云", "月之暗面", "深度求索",
    "智谱", "百度", "字节跳动", "アンソロピック", "アリババクラウド", "एंथ्रोपिक", "ओपनएआई",
    "أنثروبيك", "أوبن إيه آي", "антропик", "сбербанк", "сбер",
)  # fmt: skip
_COMPANIES = (
    "google", "meta", "microsoft", "amazon", "apple", "ibm", "nvidia", "alibaba", "tencent",
    "yandex", "samsung", "huawei", "谷歌", "阿里巴巴", "腾讯", "华为", "微软", "グーグル",
    "マイクロソフト", "アリババ", "गूगल", "मेटा", "جوجل", "غوغل", "ميتا", "гугл", "яндекс",
)  # fmt: skip
# "Claude Opus 4.5", "GPT-5.2 pro", "Llama-3-70B". A number can be read in one way only, and the
# group is atomic: divided in every possible way, "gpt-4 3.14159…" takes time exponential in its
# length.
_VERSION = r"v?\d[a-z\d]{0,12}(?:\.[a-z\d]{1,12}){0,4}"
_VARIANT = (
    "opus|sonnet|haiku|pro|flash|mini|nano|micro|lite|ultra|turbo|large|medium|small|instruct|chat|"
    "max|plus|thinking|reasoner|coder|r1|k2|nemo|next"
)
_TAIL = rf"(?>(?:[- ]?(?:{_VERSION}|(?:{_VARIANT})(?![a-z\d]))){{0,6}})"


class Names:
    """The names of models, of makers, and of the candidates of a run."""

    def __init__(self, candidates: Iterable[str] = ()) -> None:
        own_names = {look(name.rpartition("/")[2]).strip() for name in candidates}
        long_names = [name for name in own_names if len(name) > 1]
        # A candidate called "fast" is no reason to mask a response that says it is fast.
        telling = [name for name in long_names if re.search(r"[a-z][ .-]?\d|\d[ .-]?[a-z]", name)]
        plain = [name for name in long_names if name not in telling]
        tables: dict[Kind, Iterable[str]] = {
            "model": (*_MODELS, *telling),
            "plain": (*_PLAIN, *plain),
            "maker": _MAKERS,
            "company": _COMPANIES,
        }
        self._kinds = {_key(name): kind for kind, names in tables.items() for name in names}
        spellings = [look(name) for names in tables.values() for name in names]
        # Letters of other scripts may touch a name: 我是Claude，私はGPT-4です. Apart, since names in
        # Latin letters are looked for at the beginnings of words, which is several times faster.
        self._latin = _pattern(r"(?a:\b)", (name for name in spellings if name.isascii()))
        self._non_latin = _pattern("", (name for name in spellings if not name.isascii()))

    def find(self, text: str) -> Iterator[Mention]:
        """The names in ``text``, which is as :func:`~clash.collect.looks.read` gives it."""
        matches = self._latin.finditer(text)
        if not text.isascii():
            matches = merge(matches, self._non_latin.finditer(text), key=re.Match.start)
        for match in matches:
            kind = self._kinds[_key(match["name"])]
            has_version = kind == "plain" and match.end("name") < match.end()
            yield Mention(*match.span(), "model" if has_version else kind)


@lru_cache(maxsize=16)
def names_of(candidates: tuple[str, ...]) -> Names:
    """The names of a run, whose patterns are compiled once."""
    return Names(candidates)


def _key(name: str) -> str:
    return re.sub("[ -]", "", look(name))


def _pattern(start: str, names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"{start}(?P<name>{one_of(names)}){_TAIL}(?![a-z\d])")
