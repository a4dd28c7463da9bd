"""Which object in a judge's reply is its answer.

Pure, and linear in the length of the reply. A response may hold any text, and a judge may quote it,
so an object does not count because it looks like an answer. An answer is an object that repeats the
code of its page, which no author of a response can know, and that ends the reply. One exception:
where the provider was given a schema to enforce, and the whole reply is the object that the schema
asks for, there is no room for a quotation, and no code is needed (``docs/decisions/ballots.md``).

The key ``ballot`` and the word in messages are part of the wire format and of records.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.collect.jsontext import Unreadable, body, decode, decode_repaired, note, top_level

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from clash.collect.jsontext import ObjectSpan

KEY = "ballot"
"""The key whose value is the code."""
_MARK_WITHOUT_CODE = '"ranking"'
"""What marks an answer in a run made before there were codes."""

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
# Courtesies as a whole line: they say nothing about the answer, so they cannot retract it.
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
_QUOTED_LINE = re.compile(r"[ \t]{0,20}(?:[-*•][ \t]{1,9})?(?:>|&gt;)")
_QUOTATION = re.compile(r"[\"“][^\"“”\n]{0,400}[\"”]")
# A sentence that leads into the answer and attributes it to somebody else, or says that it is not
# the judge's last word.
_DISOWNING = re.compile(
    r"\b(?:not|never|refuse|decline|reject(?:ed)?|discard(?:ed)?|cannot|false|wrong|incorrect|"
    r"untrue|instead|unlike|revers(?:e|ed|al) of|"
    r"quot(?:e|es|ed|ing)|claim(?:s|ed)? (?:that|to|this)|says|said|wrote|writes|example|instance|"
    r"e\.g|if|(?<!\bi )(?:would|could|might)|suppose|hypothetical(?:ly)?|pretend|draft|"
    r"tentative(?:ly)?|initial(?:ly)?|at first|ignore|disregard|looks? like|"
    r"(?:asked|told|instructed|supposed|tempted) (?:me )?to|"
    r"(?:asked|told|instructed|ordered|requested) by (?:the )?(?:response|candidate|text|A\d)|"
    r"(?:wants?|urges?|tells?) me to (?:answer|output|say|repeat|print|write|put|prefer|pick)|"
    r"(?:try|tries|tried|trying|attempts?|attempted) to (?:make|get|have|force|trick|talk) me|"
    r"form(?:at)? (?:is|was)|template|sample|placeholder|copied|opposite|worst (?:to|first)|"
    r"il est faux|n['’]est pas|es falso|no es (?:cierto|verdad|mi)|não é (?:verdade|(?:a )?minha)|"
    r"é falso|es ist falsch|"
    r"nicht (?:wahr|richtig|meine?)|неверно|неправда|"
    r"exemplo|exemple|ejemplo|esempio|beispiel|voorbeeld|przykład|příklad|örnek|contoh|ví dụ|пример|"
    r"приклад|exempel|παράδειγμα)\b|n['’]t\b|不是|并非|不认为|ではありません|"
    r"सही नहीं|ليس|例如|例えば|たとえば|예를 들어|예시|مثال|उदाहरण|דוגמה|ตัวอย่าง",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\b(?:i|we) (?:(?:must|have to|will|shall|would) )?"
    r"(?:(?:respectfully |therefore )?(?:refuse|decline)\b"
    r"|(?:cannot|can['’]t|won['’]t|will not|shall not|am unable to|am not able to) "
    r"(?:judge|rank|answer|choose|decide|comply|vote|take part|participate|"
    r"(?:help|assist)(?: you)? with|(?:evaluate|score|compare|rate) (?:these|those|them|this|such)|"
    r"provide (?:a|the|this|that|any|such) (?:rank|judg|evaluat|verdict|vote))\w{0,6}\b)"
    r"|\bich (?:kann (?:\w+ ){0,3}nicht (?:beurteilen|bewerten|helfen)|weigere mich)"
    r"|\bje (?:ne peux pas (?:\w+ )?(?:juger|classer|évaluer|aider)|refuse d(?:e\b|['’]))"
    r"|\bno puedo (?:juzgar|clasificar|evaluar|ayudar|decidir|elegir)"
    r"|\bnão (?:posso|consigo|vou) (?:julgar|classificar|avaliar|ajudar|decidir|escolher)"
    r"|\bnon (?:posso|riesco a) (?:giudicare|classificare|valutare|aiutare|decidere|scegliere)"
    r"|\bik (?:kan|wil|zal) (?:\w+ ){0,3}niet (?:beoordelen|vergelijken|helpen|kiezen)"
    r"|\bnie (?:mogę|potrafię|będę) (?:\w+ )?(?:ocenia?ć|porównać|wybrać|pomóc)"
    r"|\bnemohu (?:\w+ )?(?:posoudit|hodnotit|rozhodnout|pomoci)"
    r"|\bjag kan inte (?:bedöma|avgöra|hjälpa|välja)"
    r"|\bне (?:могу|можу|буду|стану) (?:\w+ )?(?:судить|судити|оцен|оцін|помочь|допомог|выбрать)"
    r"|\bδεν μπορώ να (?:κρίνω|αξιολογήσω|βοηθήσω)"
    r"|\b(?:değerlendir(?:emiyorum|emem)|karar veremem|yardımcı olamam)"
    r"|\btôi không thể (?:đánh giá|quyết định|xếp hạng|chọn|giúp)"
    r"|\bsaya tidak (?:dapat|bisa) (?:menilai|memutuskan|memilih|membantu)"
    r"|我(?:无法|不能|拒绝)(?:评|判|帮|协|排)|(?:評価|判定|お手伝い)(?:は|を)?(?:することは)?できません"
    r"|(?:평가|판단|결정|도와)\S{0,4} ?수 ?없|(?:निर्णय|मूल्यांकन|मदद) नहीं कर सकत"
    r"|لا (?:أستطيع|يمكنني) (?:ال)?(?:حكم|تقييم|مساعدة)|نمی‌?توانم (?:داوری|قضاوت|ارزیابی|کمک)"
    r"|(?:איני|אינני|לא) יכולה? (?:לשפוט|להעריך|לעזור)|ไม่สามารถ(?:ตัดสิน|ประเมิน|ช่วย)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What an answer must be to count.

    Attributes:
        keys: of the object that was asked for, besides the code.
        code: what an answer must carry; null for runs made before there were codes.
        schema_enforced: the provider was given a schema to hold the reply to.
    """

    keys: Collection[str]
    code: str | None = None
    schema_enforced: bool = False


def find_answer(text: str, form: AnswerForm, repairs: list[str]) -> dict[str, Any]:
    """The object that is the judge's answer.

    Everything that carries the code is read before anything is believed. An object without the code
    is a quotation, whatever it looks like, and is passed over.

    Args:
        text: the reply of the judge.
        form: what counts as an answer.
        repairs: what had to be repaired is appended, in words.

    Raises:
        Unreadable: there is no answer, there are several, or the text around it retracts it.
    """
    reply = body(text)
    if form.schema_enforced and (sole := _sole_answer(reply, form)) is not None:
        return sole
    mark = form.code or _MARK_WITHOUT_CODE
    if mark not in reply:
        raise Unreadable(_why_none(reply, form))
    start = _after_thinking(reply)
    spans = [s for s in top_level(reply, start) if reply.find(mark, s.start, s.end) >= 0]
    if not spans:
        raise Unreadable(_why_none(reply, form))
    answers = [_decode_answer(reply[span.start : span.end], form, repairs) for span in spans]
    if any(answer != answers[0] for answer in answers):
        raise Unreadable("the answer contains several ballots that differ")
    if len(answers) > 1:
        note(repairs, "the ballot appears in the answer more than once")
    _check_surroundings(reply, start, spans, repairs)
    return answers[0]


def _sole_answer(reply: str, form: AnswerForm) -> dict[str, Any] | None:
    """The reply where it is, from end to end, the object that the schema asks for."""
    try:
        value = decode(reply)
    except Unreadable:
        return None
    if not isinstance(value, dict) or value.keys() - {KEY} != set(form.keys):
        return None
    if KEY in value and value[KEY] != form.code:
        raise Unreadable(f"the {KEY!r} code is not the code of this page")
    return value


def _decode_answer(text: str, form: AnswerForm, repairs: list[str]) -> dict[str, Any]:
    value = decode_repaired(text, repairs)
    if not isinstance(value, dict):  # pragma: no cover - what begins with a brace is an object
        raise Unreadable("the answer is not an object")
    if form.code is not None and value.get(KEY) != form.code:
        raise Unreadable(f"the outermost object must have the code under its own key {KEY!r}")
    return value


def _why_none(reply: str, form: AnswerForm) -> str:
    if "{" not in reply:
        return "the answer contains no JSON"
    if reply.count("{") > reply.count("}"):
        return "the answer ends inside the JSON"
    if form.code is None:
        return "the answer has no ranking"
    if f'"{KEY}"' in reply:
        return f"the {KEY!r} code is not the code of this page"
    return f"the answer has no object with the {KEY!r} code of this page"


# -- the text around an answer --------------------------------------------------------------------


def _check_surroundings(
    reply: str, start: int, spans: Sequence[ObjectSpan], repairs: list[str]
) -> None:
    """Refuse an answer that is a thought, is retracted, or is not the end of the reply.

    Args:
        reply: the whole reply.
        start: where the thinking at the beginning of the reply ends.
        spans: the objects that carry the code; the last one has to end the reply.
        repairs: what is passed over is appended.
    """
    last = spans[-1]
    line = reply[start : last.start].rpartition("\n")[2]
    before, after = _unwrap(reply[start : last.start], reply[last.end :], repairs)
    after_blank_line = before[len(before.rstrip()) :].count("\n") > 1
    before = before.rstrip()
    ending, courtesy = _without_courtesy(after.strip())
    if courtesy:
        note(repairs, "a courtesy after the ballot")
    if _QUOTED_LINE.match(line):
        raise Unreadable("the ballot is quoted (>), and a quotation is no answer")
    if not _ENDING.fullmatch(ending):
        raise Unreadable("the answer continues after the ballot and may retract it")
    if _inside_thinking(before):
        raise Unreadable("the ballot is inside thinking that never ends")
    if _is_retracted(before, after_blank_line=after_blank_line):
        raise Unreadable("the text before the ballot retracts it")
    if start:
        note(repairs, "thinking before the answer")
    if before:
        note(repairs, "text before the answer")


def _unwrap(before: str, after: str, repairs: list[str]) -> tuple[str, str]:
    """The text before and after an answer, without the list, fence or tag around the answer."""
    for _ in range(_MOST_WRAPPERS):
        head, tail = before.rstrip(), after.lstrip()
        if head.endswith("[") and tail.startswith("]"):
            before, after = head[:-1], tail[1:]
            note(repairs, "a list around the answer")
        elif fence := _OPENING_FENCE.search(head, max(0, len(head) - 30)):
            closing = _CLOSING_FENCE.match(tail)
            before, after = head[: fence.start()], tail[closing.end() :] if closing else tail
            note(repairs, "a code fence around the answer")
        elif (tag := _OPENING_TAG.search(head, max(0, len(head) - 30))) and tail.lower().startswith(
            closing_tag := f"</{tag[1].lower()}>"
        ):
            before, after = head[: tag.start()], tail[len(closing_tag) :]
            note(repairs, "a tag around the answer")
        else:
            break
    return before, after


def _without_courtesy(after: str) -> tuple[str, bool]:
    """The text after an answer without a last line that is nothing but a courtesy."""
    lines, _, last = after.rpartition("\n")
    if _COURTESY.fullmatch(last.strip()[:100]):
        return lines.rstrip(), True
    return after, False


def _after_thinking(reply: str) -> int:
    """Where the thinking ends that the reply begins with; 0 where it begins with none.

    Only at the beginning: tags further on may be quoted from a response, and must not hide what
    stands between them.
    """
    start = 0
    while (tag := _THINKING.match(reply, start)) and not tag["close"]:
        later_tags = _THINKING.finditer(reply, tag.end())
        closing = next((later for later in later_tags if _closes(later, tag)), None)
        if closing is None:
            raise Unreadable("the thinking before the answer never ends")
        start = _skip_blanks(reply, closing.end())
    if reply.startswith("<|"):
        channels = list(_CHANNEL.finditer(reply))
        if channels and not _is_thought(channels[-1]):
            end = channels[-1].end()
            message = _MESSAGE.match(reply, end)
            start = _skip_blanks(reply, message.end() if message else end)
    return start


def _closes(tag: re.Match[str], opening: re.Match[str]) -> bool:
    return bool(tag["close"]) and tag["name"].lower() == opening["name"].lower()


def _is_thought(channel: re.Match[str]) -> bool:
    """Whether a channel is not the final answer: one of another name."""
    return channel["name"] is not None and channel["name"].lower() != "final"


def _skip_blanks(text: str, index: int) -> int:
    while index < len(text) and text[index].isspace():
        index += 1
    return index


def _inside_thinking(before: str) -> bool:
    """Whether a thinking block, a channel or a comment is still open at the end of ``before``."""
    depths: Counter[str] = Counter()
    for tag in _THINKING.finditer(before):
        name = tag["name"].lower()
        depths[name] = max(0, depths[name] - 1) if tag["close"] else depths[name] + 1
    channels = list(_CHANNEL.finditer(before))
    in_channel = bool(channels) and _is_thought(channels[-1])
    return any(depths.values()) or in_channel or before.rfind("<!--") > before.rfind("-->")


def _is_retracted(before: str, *, after_blank_line: bool) -> bool:
    """Whether the judge's own words before an answer refuse to give one, or disown it.

    A sentence disowns the answer that it leads into. An item of a list ends with its line, where a
    blank line stands between it and the answer (``after_blank_line``).
    """
    words = _QUOTATION.sub("", before)
    lead = _SENTENCE_END.split(words[-_LEAD_CHARS:])[-1]
    is_disowned = _DISOWNING.search(lead) is not None
    if after_blank_line and _LIST_ITEM.match(before.rpartition("\n")[2]):
        is_disowned = False
    return is_disowned or _REFUSAL.search(words) is not None
