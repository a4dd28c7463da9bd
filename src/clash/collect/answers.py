"""Which object in a judge's answer is its ballot.

Pure, and linear in the length of the answer. A response may hold any text, and a judge may quote
it, so what looks like a ballot is none by its looks. A ballot is an object that repeats the code of
its page, which no author of a response can know, and that ends the answer. Only where the provider
was given a schema to enforce, and the whole answer is the object that the schema asks for, is there
no room for a quotation, and no code is needed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.collect.jsontext import Unreadable, body, decode, decode_mended, note, top_level

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from clash.collect.jsontext import Span

KEY = "ballot"
"""The key whose value is the code."""
_MARK_WITHOUT_CODE = '"ranking"'
"""What marks a ballot of a run made before there were codes."""

_THINKING = re.compile(
    r"(?:<\s{0,2}\|?|\[(?=/?THINK\])|◁)\s{0,2}(?P<close>/|end_of_|)\s{0,2}(?:\w{1,12}[:_])?"
    r"(?P<name>(?:ant)?think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|analysis|"
    r"monologue|internal|deliberation|draft|plan(?:ning)?|cot)"
    r"\b[^<>\[\]◁▷]{0,80}[>\]▷]",
    re.IGNORECASE,
)
# The second form is of models that write <|channel>thought … <channel|>; it opens no channel.
_CHANNEL = re.compile(
    r"<\s?\|\s?channel\s?\|?\s?>\s{0,3}(?P<name>\w{1,20})|<\s?channel\s?\|\s?>", re.IGNORECASE
)
_MESSAGE = re.compile(r"\s{0,3}<\s?\|\s?message\s?\|\s?>", re.IGNORECASE)
_OPENING_FENCE = re.compile(r"(?:`{1,9}|~{3,9}) {0,4}[\w+-]{0,12}\Z")
_CLOSING_FENCE = re.compile(r"`{1,9}|~{3,9}")
_OPENING_TAG = re.compile(
    r"<(answer|final_answer|output|result|json|judge?ment|verdict|ballot)>\Z", re.IGNORECASE
)
_MOST_WRAPPERS = 4
_ENDING = re.compile(
    r"(?:`{1,9}|~{3,9})?\s{0,9}(?:</?s>|<eos>|<end_of_turn>|<turn\|>|<｜end▁of▁sentence｜>|"
    r"<\|(?:end|return|im_end|eot_id|endoftext|end_of_text|eom_id)\|>)?",
    re.IGNORECASE,
)
# Courtesies, whole: they say nothing of the ballot, so they cannot take it back.
_COURTESY = re.compile(
    r"(?:i )?hope (?:this|that) helps(?: you)?[.!]?"
    r"|(?:please )?let me know if (?:you have any (?:other |further |more )?questions"
    r"|you need (?:more|anything else|any clarification|(?:any )?(?:more|further) details?))[.!]?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"[.!?。！？][\"'”’)*_]{0,3}(?:\s|\Z)|\n[ \t]{0,20}\r?\n|\n[ \t]{0,20}(?:```|~~~)[^\n]{0,20}"
)
_LIST_ITEM = re.compile(r"[ \t]{0,20}(?:[-*•]|\d{1,3}[.)])[ \t]")
_LEAD_CHARS = 300
_QUOTED = re.compile(r"[\"“][^\"“”\n]{0,400}[\"”]")
# A sentence that runs into the ballot and makes it someone else's, or not the judge's last word.
_NOT_MINE = re.compile(
    r"\b(?:not|never|refuse|decline|reject|cannot|false|wrong|incorrect|untrue|instead|unlike|"
    r"quot(?:e|es|ed|ing)|claim(?:s|ed)? (?:that|to|this)|says|said|wrote|writes|example|instance|"
    r"e\.g|if|(?<!\bi )(?:would|could|might)|suppose|hypothetical(?:ly)?|pretend|draft|"
    r"tentative(?:ly)?|initial(?:ly)?|at first|ignore|disregard|looks? like|"
    r"(?:asked|told|instructed|supposed|tempted) (?:me )?to|"
    r"form(?:at)? (?:is|was)|template|sample|placeholder|copied|opposite|worst (?:to|first)|"
    r"il est faux|es falso|no es (?:cierto|verdad)|não é verdade|é falso|es ist falsch|"
    r"nicht (?:wahr|richtig|meine?)|неверно|неправда)\b|n['’]t\b|不是|并非|不认为|ではありません|"
    r"सही नहीं|ليس",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\b(?:i|we) (?:(?:must|have to|will|shall|would) )?"
    r"(?:(?:respectfully |therefore )?(?:refuse|decline)\b"
    r"|(?:cannot|can['’]t|won['’]t|will not|shall not|am unable to|am not able to) "
    r"(?:judge|rank|answer|choose|decide|comply|vote|take part|participate|"
    r"(?:help|assist)(?: you)? with|(?:evaluate|score|compare|rate) (?:these|those|them|this|such)|"
    r"provide (?:a|the|this|that|any|such) (?:rank|judg|evaluat|verdict|vote))\w{0,6}\b)"
    r"|\bich kann (?:\w+ ){0,3}nicht (?:beurteilen|bewerten|helfen)"
    r"|\bje ne peux pas (?:\w+ )?(?:juger|classer|évaluer|aider)"
    r"|\bno puedo (?:juzgar|clasificar|evaluar|ayudar)|\bnão posso (?:julgar|classificar|avaliar|ajudar)"
    r"|\bя не могу (?:\w+ )?(?:судить|оценить|оценивать|помочь)|我(?:无法|不能|拒绝)(?:评|判|帮|协|排)"
    r"|(?:評価|判定|お手伝い)(?:は|を)?(?:することは)?できません",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Form:
    """What an answer must be to count.

    Attributes:
        code: what a ballot must carry; null for runs made before there were codes.
        keys: of the object that was asked for, besides the code.
        enforced: the provider was given a schema to hold the answer to.
    """

    keys: Collection[str]
    code: str | None = None
    enforced: bool = False


def ballot_in(text: str, form: Form, repairs: list[str]) -> dict[str, Any]:
    """The object that is the judge's ballot.

    Everything that carries the code is read before anything is believed. What does not carry it is
    a quotation, whatever it looks like, and is passed over.

    Raises:
        Unreadable: there is none, there are several, or what stands around it takes it back.
    """
    answer = body(text)
    if form.enforced and (whole := _whole(answer, form)) is not None:
        return whole
    mark = form.code or _MARK_WITHOUT_CODE
    if mark not in answer:
        raise Unreadable(_why_none(answer, form))
    start = _after_thinking(answer)
    spans = [s for s in top_level(answer, start) if answer.find(mark, s.start, s.end) >= 0]
    if not spans:
        raise Unreadable(_why_none(answer, form))
    ballots = [_carrying(answer[span.start : span.end], form, repairs) for span in spans]
    if any(other != ballots[0] for other in ballots):
        raise Unreadable("the answer holds several ballots that differ")
    if len(ballots) > 1:
        note(repairs, "the ballot stands in the answer more than once")
    _check_surroundings(answer, start, spans, repairs)
    return ballots[0]


def _whole(answer: str, form: Form) -> dict[str, Any] | None:
    """The answer where it is, from end to end, the object that the schema asks for."""
    try:
        value = decode(answer)
    except Unreadable:
        return None
    if not isinstance(value, dict) or value.keys() - {KEY} != set(form.keys):
        return None
    if KEY in value and value[KEY] != form.code:
        raise Unreadable(f"the {KEY!r} code is not the one of this page")
    return value


def _carrying(text: str, form: Form, repairs: list[str]) -> dict[str, Any]:
    value = decode_mended(text, repairs)
    if not isinstance(value, dict):  # pragma: no cover - what begins with a brace is an object
        raise Unreadable("the answer is not an object")
    if form.code is not None and value.get(KEY) != form.code:
        raise Unreadable(f"the outermost object must have the code under its own key {KEY!r}")
    return value


def _why_none(answer: str, form: Form) -> str:
    if "{" not in answer:
        return "the answer holds no JSON"
    if answer.count("{") > answer.count("}"):
        return "the answer breaks off inside the JSON"
    if form.code is None:
        return "the answer has no ranking"
    if f'"{KEY}"' in answer:
        return f"the {KEY!r} code is not the one of this page"
    return f"the answer has no object with the {KEY!r} code of this page"


# -- what stands around a ballot ------------------------------------------------------------------


def _check_surroundings(answer: str, start: int, spans: Sequence[Span], repairs: list[str]) -> None:
    """Refuse a ballot that is a thought, is taken back, or is not the end of the answer."""
    last = spans[-1]
    before, after = _unwrapped(answer[start : last.start], answer[last.end :], repairs)
    apart = before[len(before.rstrip()) :].count("\n") > 1
    before = before.rstrip()
    rest, courtesy = _without_courtesy(after.strip())
    if courtesy:
        note(repairs, "a courtesy after the ballot")
    if not _ENDING.fullmatch(rest):
        raise Unreadable("the answer goes on after the ballot, which may take it back")
    if _inside_thinking(before):
        raise Unreadable("the ballot stands inside thinking that never ends")
    if _taken_back(before, apart=apart):
        raise Unreadable("the words before the ballot take it back")
    if start:
        note(repairs, "thinking before the answer")
    if before:
        note(repairs, "text before the answer")


def _unwrapped(before: str, after: str, repairs: list[str]) -> tuple[str, str]:
    """What stands before and after a ballot, without the list, fence or tag around it."""
    for _ in range(_MOST_WRAPPERS):
        lead, rest = before.rstrip(), after.lstrip()
        if lead.endswith("[") and rest.startswith("]"):
            before, after = lead[:-1], rest[1:]
            note(repairs, "a list around the answer")
        elif fence := _OPENING_FENCE.search(lead, max(0, len(lead) - 30)):
            closing = _CLOSING_FENCE.match(rest)
            before, after = lead[: fence.start()], rest[closing.end() :] if closing else rest
            note(repairs, "a code fence around the answer")
        elif (tag := _OPENING_TAG.search(lead, max(0, len(lead) - 30))) and rest.lower().startswith(
            closing_tag := f"</{tag[1].lower()}>"
        ):
            before, after = lead[: tag.start()], rest[len(closing_tag) :]
            note(repairs, "a tag around the answer")
        else:
            break
    return before, after


def _without_courtesy(after: str) -> tuple[str, bool]:
    """What follows a ballot without a last line that is nothing but a courtesy."""
    rest, _, last = after.rpartition("\n")
    if _COURTESY.fullmatch(last.strip()[:100]):
        return rest.rstrip(), True
    return after, False


def _after_thinking(answer: str) -> int:
    """Where the thinking ends that the answer begins with; 0 where it begins with none.

    Only at the beginning: tags further on may be quoted from a response, and must not hide what
    stands between them.
    """
    start = 0
    while (tag := _THINKING.match(answer, start)) and not tag["close"]:
        later = _THINKING.finditer(answer, tag.end())
        closing = next((other for other in later if _closes(other, tag)), None)
        if closing is None:
            raise Unreadable("the thinking before the answer never ends")
        start = _past_blanks(answer, closing.end())
    if answer.startswith("<|"):
        channels = list(_CHANNEL.finditer(answer))
        if channels and not _is_thought(channels[-1]):
            end = channels[-1].end()
            message = _MESSAGE.match(answer, end)
            start = _past_blanks(answer, message.end() if message else end)
    return start


def _closes(tag: re.Match[str], opening: re.Match[str]) -> bool:
    return bool(tag["close"]) and tag["name"].lower() == opening["name"].lower()


def _is_thought(channel: re.Match[str]) -> bool:
    """Whether what follows is no final answer: a channel of another name."""
    return channel["name"] is not None and channel["name"].lower() != "final"


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _inside_thinking(before: str) -> bool:
    """Whether a thinking block, a channel or a comment is open where ``before`` ends."""
    depths: Counter[str] = Counter()
    for tag in _THINKING.finditer(before):
        name = tag["name"].lower()
        depths[name] = max(0, depths[name] - 1) if tag["close"] else depths[name] + 1
    channels = list(_CHANNEL.finditer(before))
    in_channel = bool(channels) and _is_thought(channels[-1])
    return any(depths.values()) or in_channel or before.rfind("<!--") > before.rfind("-->")


def _taken_back(before: str, *, apart: bool) -> bool:
    """Whether the judge's own words before a ballot refuse to give one, or disown it.

    A sentence disowns what it runs into; an item of a list ends with its line, where a blank line
    stands between it and the ballot (``apart``).
    """
    words = _QUOTED.sub("", before)
    lead = _SENTENCE_END.split(words[-_LEAD_CHARS:])[-1]
    disowned = _NOT_MINE.search(lead) is not None
    if apart and _LIST_ITEM.match(before.rpartition("\n")[2]):
        disowned = False
    return disowned or _REFUSAL.search(words) is not None
