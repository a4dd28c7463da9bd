"""Find names of models and of their makers in a text, by their looks.

A name is *plain* where a person, an animal, a star sign or a thing has it too ("Claude", "Gemini",
"Falcon"): alone, it says little. With a version or a variant it names a model.
"""

from __future__ import annotations

import re
from functools import lru_cache
from heapq import merge
from typing import TYPE_CHECKING, Literal, NamedTuple

from clash.collect.language_rules import one_of
from clash.collect.looks import look

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
