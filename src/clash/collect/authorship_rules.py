"""How ten languages say which model wrote a text: rules over sentences with signs for names.

The languages are those with the most users. How rules are written and compiled is in
:mod:`clash.collect.language_rules`; slots are of every language (names, gaps) or of one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.collect.language_rules import LanguageRules, compile_rule, compile_rules
from clash.collect.looks import look

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Slots of every language. Names: <S> a model by an unmistakable name, <W> by a plain one, <N> either;
# <K> a maker known for models only, <M> any name. <x> is up to 60 characters that name nobody.
_SLOTS = {
    "<S>": r"\x01",
    "<W>": r"\x02",
    "<N>": r"[\x01\x02]",
    "<K>": r"[\x01\x03]",
    "<M>": r"[\x01-\x04]",
    "<x>": r"[^\x01-\x04.!?。।]{0,60}?",
    "<stop>": r"(?= ?(?:$|[.!?。।,;:()\"-]))",
    "<end>": r"(?= ?(?:$|[.!?。।]))",
}


@dataclass(frozen=True, slots=True, eq=False)
class AuthorshipRules(LanguageRules):
    """The rules of a language by which a sentence says who wrote it.

    Attributes:
        rules: say by themselves who wrote the response.
        cue: fits every sentence that a rule or a hint fits.
        hints: say who wrote the response, if it also says that an AI wrote it.
        self_description: says that an AI wrote it.
    """

    cue: re.Pattern[str]
    hints: tuple[re.Pattern[str], ...]
    self_description: re.Pattern[str]


def _language(
    *,
    cue: str,
    slots: Mapping[str, str],
    claims: Iterable[str],
    hints: Iterable[str],
    self_description: str,
) -> AuthorshipRules:
    """The rules of a language; ``slots`` are its own, by name."""
    slots = {**_SLOTS, **slots}
    return AuthorshipRules(
        rules=compile_rules(claims, slots),
        cue=compile_rule(cue, slots),
        hints=compile_rules(hints, slots),
        self_description=compile_rule(self_description, slots),
    )


_MADE_EN = "made|created|developed|built|designed|trained|programmed|fine-tuned|engineered"
_ENGLISH = _language(
    cue=r"\b(?:i|as|i'm|im|i've|me|my|you|you're|this|here|answer|response|reply)\b",
    slots={
        "<ai>": r"(?:ai|a\.i\.|artificial intelligence|language model|llm|chatbot|bot)(?: (?:language )?(?:model|assistant|chatbot|system))?",
        "<iam>": r"\b(?:i am|i'm|im)(?: (?:actually|just|only|really|currently|still|called|named))?",
        "<made>": rf"(?:{_MADE_EN})(?: and (?:{_MADE_EN}))?",
        "<team>": "(?:(?:the|a|an|team|people|researchers|engineers|scientists|company|called|at|of|by|from|good) ){0,6}",
        "<verb>": "(?:can|cannot|can't|am|was|do|don't|did|would|will|won't|have|must|should)",
    },
    claims=(
        r"<iam> <S>(?:<stop>|(?= (?:and|but|so|here|version|by|from)\b)| (?:model|assistant))(?:<x>\b(?:by|from|at) <team><M>)?",
        r"<iam> (?:the|an?) <S>(?:<stop>| (?:model|assistant|chatbot|language model))(?:<x>\b(?:by|from|at) <team><M>)?",
        r"<iam> <W><end>",
        r"<iam> <W>(?:,| -| \(| and|:)<x>\b(?:<ai>|how (?:can|may) i help|help you)\b(?:<x>\b(?:by|from|at) <team><M>)?",
        r"<iam> <W>,? (?:<made> )?(?:by|from) <team><M>",
        r"\bas <S>(?:,<x>(?:by|from) <team><M>)?,?<x>\b(?:i|i'm|i'd|i've|i'll|my)\b",
        r"\bas (?:an? |the )?<N>,? (?:<x>(?:by|from) <team><M>,? )?(?:i|i'm|i'd|i've|i'll|my)\b",
        r"\b(?:as|being) (?:an? |the )?<S>,? i\b",
        r"\bi (?:was|am|have been)(?: (?:originally|also|actually|only|not))? (?:created|made|developed|built) (?:and \w+ )?(?:by|at|from) <team><M>",
        r"\bi (?:was|am|have been)(?: (?:originally|also|actually|only))? <made> (?:by|at|from) <team><K>",
        r"\bi(?:'ve| have) been <made> (?:by|at) <team><K>",
        r"(?:<iam>|\bas|\bbeing) (?:an? |the |one of the )?(?:(?:large|helpful|new|general|conversational|virtual|harmless|honest|friendly) ?,? ?){0,3}<ai>,?(?: (?:that|which|who))?(?: (?:was|is|has been|been))?(?: <made>)? (?:by|from|called|named|known as) <team>(?:<M>)(?:<x>(?:by|from|called|named) <team><M>)?",
        r"(?:<iam>|\bas) an? (?:model|assistant),? <made> (?:by|at) <team><M>",
        r"<K>(?: has| have)?(?: also)? (?:<made>) me\b",
        r"<M>(?: has| have)?(?: also)? (?:created|developed|built|programmed) me\b",
        r"\bmy (?:creators?|developers?|makers?|trainers?|parent company),?(?: at| is| are|,)? <team><K>",
        r"<iam> (?:based|built|running|run|powered)(?: directly)? (?:on|by)(?: top of)? (?:the |an? )?<N>",
        r"\b(?:you are|you're)(?: (?:now|currently))? (?:talking|speaking|chatting|interacting|conversing) (?:to|with) <S><stop>",
        r"\bthis is <N> (?:speaking|here|writing|responding)\b",
        r"\bthis is <S>, (?:an? <x>)?<made> by <team><M>",
        r"\bi, <N>,? <verb>\b",
        r"(?:^|[,.!-] ?)<S> here\b",
        r"(?:^|[,.!-] ?)<W> here,<x>\b<ai>\b",
        r"<iam> an? <x><ai>\b<x>\bbased on <x><M>",
        r"<iam> <M>'s <x><ai>\b",
        r"\bmy name is <S>(?:<stop>|(?= and\b))",
        r"\bmy name is <W>(?:,| and| -)<x>\b(?:i am|i'm|am) (?:an? |the )?<x>(?:<ai>|assistant)\b",
        r"^(?:this )?(?:answer|response|reply)(?: (?:was|is))?(?: (?:written|generated|produced|provided))? (?:by|from):? <N><end>",
    ),
    hints=(
        r"\bmy name is <N>",
        r"<iam> <N>(?:<stop>| and\b)",
        r"\bi (?:was|am|have been) <made> (?:by|at) <team><M>",
        r"<M>(?: has)? (?:<made>) me\b",
        r"\b(?:talking|speaking|chatting) (?:to|with) <N>",
        r"\bthis is <N>\b",
        r"(?:^|[,.!-] ?)<N> here\b",
        r"\bmy (?:creators?|developers?|makers?|trainers?|training),?(?: at| is| are|,| by)? <team><M>",
        r"\bby <team><K>, i\b",
    ),
    self_description=r"(?:<iam>|\bas) (?:an? |the |just an? |only an? )(?:\w+ ){0,2}?<ai>(?= ?(?:$|[.,;!(-]|and|that|who|which|so|i\b|with|without|designed|trained|created|made|developed|here|to))",
)

_CHINESE = _language(
    cue=r"我|作为|对话|交谈|聊天",
    slots={
        "<ai>": r"(?:人工智能|智能助手|语言模型|大模型|助手|助理|ai|机器人|模型)",
        "<made>": r"(?:开发|研发|创建|训练|打造|推出|设计|制作|创造|构建|提供)",
    },
    claims=(
        r"我(?:就是|是|叫做|叫)(?:一个|一款)?(?:名为|名叫|叫做|叫)? ?[\"(]?<S>(?![a-z\d]*(?:的)?(?:用户|粉丝|员工|爱好者|订阅|会员))[\")]?(?:[^\x01-\x04.]{0,20}<M>)?(?!的(?:用户|粉丝|员工|创始人|开发者))",
        r"我(?:就是|是|叫做|叫)(?:名为|名叫|叫做|叫)? ?[\"(]?<W>[\")]?(?:<end>|[^\x01-\x04.]{0,12}<ai>)(?:[^\x01-\x04.]{0,20}<M>)?",
        r"我(?:就是|是|叫做|叫) ?<W>,[^\x01-\x04.]{0,8}<M>[^\x01-\x04.]{0,8}<made>",
        r"我的名字(?:是|叫) ?<S>(?:[^\x01-\x04.]{0,6}<M>)?",
        r"我的名字(?:是|叫) ?<W>,(?:[^\x01-\x04.]{0,6}<M>)?[^\x01-\x04.]{0,20}<ai>",
        r"作为 ?<N>(?: ?,|我)(?=.{0,20}我)",
        r"作为(?:一个|一款|一名)?(?:由)? ?<M> ?(?:公司)?(?:所)?<made>(?:的|出的)?[^\x01-\x04.]{0,8}<ai>",
        r"我(?:是|就是)?(?:一个|一款)?(?:由|被)[^\x01-\x04.]{0,6}<M>(?:[^\x01-\x04.]{0,4}<M>)?[^\x01-\x04.]{0,6}<made>(?:的[^\x01-\x04.]{0,12}<ai>[^\x01-\x04.]{0,4}<N>)?",
        r"我(?:是|就是)(?:一个|一款)? ?<M> ?(?:公司)?(?:所)?<made>的?[^\x01-\x04.]{0,8}<ai>",
        r"我(?:是|就是) ?<M> ?(?:公司)?的[^\x01-\x04.]{0,8}(?:人工智能|语言模型|大模型|智能助手|ai)",
        r"<M> ?(?:公司)?(?:<made>)了?我(?![的们])",
        r"我是?基于 ?<N>",
        r"(?:正在和|正在与|在和|在与) ?<S> ?(?:对话|交谈|聊天)",
    ),
    hints=(r"我(?:是|叫) ?<N>", r"我的名字(?:是|叫) ?<N>"),
    self_description=r"(?:我是|作为)(?:一个|一名|一款|一位)?(?:人工智能|语言模型|大型语言模型|ai|智能助手)",
)

_SPANISH = _language(
    cue=r"\b(?:soy|fui|he sido|como|me|mi|con|estoy)\b",
    slots={
        "<ai>": r"(?:inteligencia artificial|ia\b|modelo de lenguaje|asistente virtual|asistente de ia|chatbot|modelo)",
        "<made>": r"(?:cread[oa]|entrenad[oa]|desarrollad[oa]|disenad[oa]|construid[oa]|hech[oa]|programad[oa])",
        "<by>": r"(?:por|en|de)(?: (?:el|la|los|equipo|empresa|ingenieros|de))*",
        "<first>": r"\b(?:yo|no|puedo|tengo|soy|estoy|debo|recomiendo|creo|diria|mi|mis|me|carezco|solo)\b",
    },
    claims=(
        r"\bsoy (?:el |la )?<S>(?:<stop>|(?= (?:y|de|un)\b))(?:<x>\b<by> <M>)?",
        r"\bsoy <W>(?:<end>|,? (?:y |un |una )<x><ai>)(?:<x>\b<by> <M>)?",
        r"\bsoy <W>,<x><made> <by> <M>",
        r"\bcomo <N>,(?=<x><first>)",
        r"\b(?:fui|he sido) <made> <by> <K>",
        r"\b(?:fui|he sido) (?:cread[oa]|desarrollad[oa]) <by> <M>",
        r"\b(?:soy|como) (?:una? )?<x><ai>[^\x01-\x04.,]{0,30}\b(?:por|de|llamad[oa]) (?:la |el )?(?:empresa )?<M>",
        r"<M> me (?:creo|entreno|desarrollo|diseno|programo|construyo)\b(?! (?:una?|el|la)\b)",
        r"\b(?:me llamo|mi nombre es) <S><stop>",
        r"\b(?:me llamo|mi nombre es) <S>(?= y\b)",
        r"\b(?:me llamo|mi nombre es) <W>,? (?:y |un |una )<x><ai>",
        r"\b(?:hablando|conversando|chateando) con <S>",
        r"\b(?:hablando|conversando|chateando) con <W>,<x><ai>",
        r"\b(?:estoy |soy (?:una? )?<x>)basad[oa] en <x><N>(?:<x><M>)?",
        r"\bsoy (?:el|la|un|una) <x><ai> de <M>",
    ),
    hints=(
        r"\bsoy <N>(?:<stop>| y\b)",
        r"\b(?:me llamo|mi nombre es) <N>",
        r"\b(?:hablando) con <N>",
        r"\b(?:fui|he sido) <made> <by> <M>",
    ),
    self_description=r"\b(?:soy|como) (?:una? )?(?:asistente|modelo de lenguaje|ia\b|inteligencia artificial)",
)

_PORTUGUESE = _language(
    cue=r"\b(?:sou|fui|tenho|como|me|meu|com|estou)\b",
    slots={
        "<ai>": r"(?:inteligencia artificial|ia\b|modelo de linguagem|assistente virtual|assistente de ia|chatbot|modelo)",
        "<made>": r"(?:criad[oa]|treinad[oa]|desenvolvid[oa]|projetad[oa]|construid[oa]|feit[oa]|programad[oa])",
        "<by>": r"(?:por|pela|pelo|na|no|da|do|de)(?: (?:a|o|equipe|empresa|engenheiros|da|do))*",
        "<first>": r"\b(?:eu|nao|posso|tenho|sou|estou|devo|recomendo|acho|diria|meu|minha|meus|me)\b",
    },
    claims=(
        r"\bsou (?:o |a )?<S>(?:<stop>|(?= (?:e|da|do|um)\b))(?:<x>\b<by> <M>)?",
        r"\bsou (?:o |a )?<W>(?:<end>|,? (?:e |um |uma )<x><ai>)(?:<x>\b<by> <M>)?",
        r"\bsou (?:o |a )?<W>,<x><made> <by> <M>",
        r"\bcomo (?:o |a )?<N>,(?=<x><first>)",
        r"\b(?:fui|tenho sido) <made> <by> <K>",
        r"\b(?:fui|tenho sido) (?:criad[oa]|desenvolvid[oa]) <by> <M>",
        r"\b(?:sou|como) (?:uma? )?<x><ai>[^\x01-\x04.,]{0,30}\b(?:por|pela|pelo|da|do|de|chamad[oa]) (?:empresa )?<M>",
        r"<M> me (?:criou|treinou|desenvolveu|projetou|programou|construiu)\b(?! (?:uma?|o|a)\b)",
        r"\bmeu nome e <S>(?:<stop>|(?= e\b))",
        r"\bme chamo <S>(?:<stop>|(?= e\b))",
        r"\b(?:me chamo|meu nome e) <W>,? (?:e |um |uma )<x><ai>",
        r"\b(?:falando|conversando) com (?:o |a )?<S>",
        r"\b(?:falando|conversando) com (?:o |a )?<W>,<x><ai>",
        r"\b(?:estou |sou (?:uma? )?<x>)basead[oa] (?:no|na|em) <x><N>(?:<x><M>)?",
        r"\bsou (?:o|a|um|uma) <x><ai> (?:da|do|de) <M>",
    ),
    hints=(
        r"\bsou (?:o |a )?<N>(?:<stop>| e\b)",
        r"\b(?:me chamo|meu nome e) <N>",
        r"\b(?:falando|conversando) com (?:o |a )?<N>",
        r"\bfui <made> <by> <M>",
    ),
    self_description=r"\b(?:sou|como) (?:uma? )?(?:assistente|modelo de linguagem|ia\b|inteligencia artificial)",
)

_FRENCH = _language(
    cue=r"\b(?:je|j'|en tant|m'a|mon|avec)",
    slots={
        "<ai>": r"(?:intelligence artificielle|ia\b|modele de langage|assistant virtuel|chatbot|modele)",
        "<made>": r"(?:cree?e?|entraine?e?|developpe?e?|concue?|construite?|programme?e?|fabrique?e?)",
        "<by>": r"(?:par|chez|de)(?: (?:les|la|le|equipes?|ingenieurs|societe|entreprise|de))*",
        "<first>": r"\b(?:je|j'|mon|ma|mes|me)",
    },
    claims=(
        r"\bje suis <S>(?:<stop>|(?= (?:et|de|un)\b))(?:<x>\b<by> <M>)?",
        r"\bje suis <W>(?:<end>|,? (?:et |un |une )<x><ai>)(?:<x>\b<by> <M>)?",
        r"\bje suis <W>,<x><made> <by> <M>",
        r"\ben tant que <N>,(?=<x><first>)",
        r"\bj'ai ete <made> <by> <K>",
        r"\bj'ai ete (?:cree?e?|developpe?e?|concue?) <by> <M>",
        r"\b(?:je suis|en tant qu)(?:e |'| )?(?:une? )?<x><ai>[^\x01-\x04.,]{0,30}\b(?:par|de|chez|nomme|appele) (?:la societe )?<M>",
        r"<M> m'a (?:cree?|entraine?|developpe?|concu|programme?|construit)\b",
        r"\b(?:je m'appelle|mon nom est) <S>(?:<stop>|(?= et\b))",
        r"\b(?:je m'appelle|mon nom est) <W>,? (?:et |un |une )<x><ai>",
        r"\b(?:parlez|discutez|conversez|parles|discutes) avec <S>",
        r"\b(?:parlez|discutez|conversez|parles|discutes) avec <W>,<x><ai>",
        r"\bje (?:suis (?:une? <x><ai>,? )?(?:base|fonde)e?|repose|fonctionne) sur <x><N>(?:<x><M>)?",
        r"\bje suis (?:le|la|un|une|l')<x><ai> (?:de|d') ?<M>",
    ),
    hints=(
        r"\bje suis <N>(?:<stop>| et\b)",
        r"\b(?:je m'appelle|mon nom est) <N>",
        r"\b(?:parlez|discutez) avec <N>",
        r"\bj'ai ete <made> <by> <M>",
    ),
    self_description=r"\b(?:je suis|en tant qu)(?:e |'| )?(?:une? )?(?:assistant(?: ia| virtuel)|modele de langage|ia\b|intelligence artificielle)",
)

_GERMAN = _language(
    cue=r"\b(?:ich|als|mich|mein|mit)\b",
    slots={
        "<ai>": r"(?:ki\b|kunstliche intelligenz|ki-?(?:assistent|modell|sprachmodell|system)(?:in)?|sprachmodell|chatbot|ai\b)",
        "<made>": r"(?:entwickelt|trainiert|erstellt|erschaffen|geschaffen|gebaut|programmiert|konzipiert)(?:e[srnm]?)?",
        "<by>": r"(?:von|bei|durch)(?: (?:der|dem|firma|unternehmen|team))*",
    },
    claims=(
        r"\bich bin <S>(?:<stop>|(?= (?:und|von|ein)\b))(?:<x>\b<by> <M>)?",
        r"\bich bin <W>(?:<end>|,? (?:und |eine? )<x><ai>)(?:<x>\b<by> <M>)?",
        r"\bich bin <W>,<x><by> <M>",
        r"\bals <N>,? (?=(?:\w+ ){0,2}(?:ich|mir|mich)\b)",
        r"\bich wurde(?: \w+)? <by> <K>(?=.{0,40}<made>)",
        r"\bich wurde <by> <M>(?=.{0,20}(?:entwickelt|erschaffen|erstellt|geschaffen))",
        r"\b(?:ich bin|als) (?:eine? )?(?:grosse[srn]? |helpful )?<ai>,?(?: (?:das|der|die))?[^\x01-\x04.,]{0,20}\b<by> <M>",
        r"\b(?:ich bin|als) (?:eine? )?<by> <M>(?=.{0,4}<made>.{0,20}<ai>)",
        r"<M> hat mich <made>",
        r"\b(?:ich heisse|mein name ist) <S>(?:<stop>|(?= und\b))",
        r"\b(?:ich heisse|mein name ist) <W>,? (?:und |eine? )<x><ai>",
        r"\b(?:sie sprechen|du sprichst|sie chatten|du chattest)(?: gerade)? mit <S>",
        r"\b(?:sie sprechen|du sprichst)(?: gerade)? mit <W>,<x><ai>",
        r"\bich (?:basiere|beruhe) auf <N>",
        r"\bich bin (?:eine? )?(?:<ai>|ki-?\w{0,12})(?:<x>(?:basierend auf|auf basis von|auf der basis von))<x><M>(?:<x><N>)?",
        r"\bich bin auf <N> aufgebaut",
    ),
    hints=(
        r"\bich bin <N>(?:<stop>| und\b)",
        r"\b(?:ich heisse|mein name ist) <N>",
        r"\bmit <N> (?:sprechen|sprichst)",
        r"\bich wurde <by> <M>",
    ),
    self_description=r"\b(?:ich bin|als) (?:nur )?(?:eine? )?<ai>",
)

_RUSSIAN = _language(
    cue=r"\b(?:я|меня|как|будучи|мое|с)\b",
    slots={
        "<ai>": r"(?:ии[ -]|ии\b|искусственн\w{0,8} интеллект|языков\w{0,8} модел|ассистент|чат-?бот|нейросет|модел)",
        "<made>": r"(?:создан|обучен|разработан|построен|сделан|запрограммирован)\w{0,8}",
        "<team>": r"(?:(?:в|из|от|у|компани\w{0,8}|команд\w{0,8}|корпораци\w{0,8}) ){0,3}",
    },
    claims=(
        r"\bя (?:- |это |- это )?<S>(?:<stop>|(?= и\b))(?:<x><made> <team><M>)?",
        r"\bя (?:- |это |- это )?<W>(?:<end>|,<x><ai>)(?:<x><made> <team><M>|<x>от <M>)?",
        r"\b(?:как|будучи) <N>,(?=<x>\b(?:я|мне|мой|моя|у меня)\b)",
        r"\bменя (?:создал|обучил|разработал|сделал|построил)\w{0,8} <team><M>",
        r"\bя был\w? <made> <team><M>",
        r"\b(?:я|как) (?:- |это )?(?:\w+ ){0,2}<ai>\w{0,8},?<x>(?:<made>|от) <team><M>",
        r"<M> (?:создал|обучил|разработал)\w{0,8} меня",
        r"\b(?:меня зовут|мое имя)(?: -)? <S><stop>",
        r"\b(?:меня зовут|мое имя)(?: -)? <W>,<x><ai>",
        r"\b(?:разговариваете|говорите|общаетесь|общаешься|разговариваешь) с <S>",
        r"\bя (?:основан\w{0,8}|работаю|построен\w{0,8}) на <N>",
    ),
    hints=(
        r"\bя (?:- )?<N><stop>",
        r"\b(?:меня зовут|мое имя)(?: -)? <N>",
        r"\b(?:разговариваете|общаетесь) с <N>",
    ),
    self_description=r"\b(?:я|как) (?:- )?(?:\w+ )?(?:ии\b|искусственн\w{0,8} интеллект|языков\w{0,8} модел)",
)

_ARABIC = _language(
    cue=r"انا|بصفت|تي |ني |كمساعد|كنموذج|اسمي|باعتبار|مع|الى",
    slots={
        "<ai>": r"(?:ذكاء اصطناعي|الذكاء الاصطناعي|نموذج|مساعد|روبوت)",
        "<made>": r"(?:طور|درب|انشا|صمم|صنع|بن)",
        "<by>": r"(?:من قبل|بواسطه|بواسطة|من طرف|من تطوير|من انتاج|من تدريب|من صنع|من|لدى)",
        "<co>": r"(?:شركه |شركة )?",
    },
    claims=(
        r"انا <S>(?:<stop>)(?:<x><co><M>)?",
        r"انا <W>(?:<end>|,<x><ai>)(?:<x><co><M>)?",
        r"بصفتي <N>,",
        r"تم (?:تدريبي|تطويري|انشائي|تصميمي|برمجتي) <by> <co><M>",
        r"(?:طورتني|دربتني|انشاتني|صممتني|صنعتني) <co><M>",
        r"(?:انا|بصفتي|كمساعد|كنموذج|باعتباري) [^\x01-\x04.,]{0,20}(?:<ai>)?[^\x01-\x04.,]{0,20}(?:<made>\w{0,8}|<by>) <co><M>(?:<x>اسمه <N>)?(?=.{0,40})",
        r"(?:كمساعد|كنموذج) <x><by> <co><M>",
        r"اسمي <S>",
        r"اسمي <W>(?:,| و)<x><ai>",
        r"انا (?:مبني|قائم|اعتمد) على <N>",
        r"(?:تتحدث|تتكلم|تتحدثون) (?:مع|الى) <S>",
        r"<co><M> (?:طورتني|دربتني|صممتني)",
    ),
    hints=(r"انا <N>", r"اسمي <N>", r"(?:تتحدث) (?:مع|الى) <N>"),
    self_description=r"(?:انا|بصفتي|كنموذج|كمساعد) (?:نموذج|مساعد|ذكاء|لغ)",
)

_HINDI = _language(
    cue=r"मैं|रूप में|मुझे|मेरा",
    slots={
        "<ai>": r"(?:एआई|ai|भाषा मॉडल|सहायक|कृत्रिम बुद्धि|मॉडल|असिस्टेंट)",
        "<made>": r"(?:बनाया|विकसित|प्रशिक्षित|निर्मित|तैयार|डिज़ाइन|डिज़ाइन)",
    },
    claims=(
        r"(?:^|[ ,.])मैं (?:एक )?<S> (?:हूँ|हूं)(?:<x><M> (?:ने|द्वारा))?",
        r"(?:^|[ ,.])मैं <W> (?:हूँ|हूं)(?:<end>|,<x><ai>)(?:<x><M> (?:ने|द्वारा))?",
        r"(?:^|[ ,.])मैं <W> (?:हूँ|हूं),<x><M> (?:ने|द्वारा)",
        r"<N> के रूप में,?(?=<x>(?:मैं|मेर|मुझे))",
        r"मुझे <M> (?:ने|द्वारा) (?:<made>)",
        r"<M> (?:ने|द्वारा) मुझे (?:<made>)",
        r"मैं <M> (?:द्वारा|का|की) (?:<made> )?<x><ai>",
        r"<M> द्वारा (?:<made>) <x><ai>(?= के रूप में)",
        r"<ai> के रूप में,<x><M> ने (?:<made>)",
        r"मैं <N> पर आधारित",
        r"मेरा नाम <S> है",
        r"मेरा नाम <W> है<x><ai>",
    ),
    hints=(r"मैं <N> (?:हूँ|हूं)", r"मेरा नाम <N> है"),
    self_description=r"(?:मैं एक|एक) (?:एआई|ai|भाषा मॉडल|बड़ा भाषा मॉडल)",
)

_JAPANESE = _language(
    cue=r"私|わたし|僕|ぼく|俺|当方|として|です",
    slots={
        "<ai>": r"(?:ai|人工知能|言語モデル|アシスタント|チャットボット|モデル)",
        "<i>": r"(?:私|わたし|僕|ぼく|俺|当方)",
        "<made>": r"(?:開発|訓練|作成|作|構築|設計|学習|トレーニング|提供)",
        "<isa>": r"(?:です|だ|と申します|といいます|と言います|という|である)",
    },
    claims=(
        r"<i>は,?(?:<M>[^\x01-\x04.]{0,16}?)?[\"(]?<S>[\")]?<isa>",
        r"<i>は,?[\"(]?<W>[\")]?(?:です|と申します|といいます|だ)(?:<end>|[^\x01-\x04.]{0,20}<ai>)",
        r"<i>は,?<N>(?:という|,)(?:<M>[^\x01-\x04.]{0,8})?[^\x01-\x04.]{0,20}<ai>",
        r"<i>の名前は,?<S>",
        r"<i>の名前は,?<W>[^\x01-\x04.]{0,4},[^\x01-\x04.]{0,20}<ai>",
        r"<N>として,(?!.{0,3}発売)",
        r"<i>は,?<M>(?:社)?(?:によって|により|に|で|が|の手で)(?:<made>)",
        r"<i>は,?<M>(?:社)?の[^\x01-\x04.]{0,10}<ai>",
        r"<M>(?:社)?(?:が|によって|により|に)<made>[^\x01-\x04.]{0,8}<ai>(?=として)",
        r"<M>(?:社)?が<i>を<made>",
        r"<i>は,?<N>を?(?:ベース|基盤|もと|基)",
        r"(?:^|[!.,] ?)<S>です<end>",
        r"<ai>の<N>です",
        r"^<M>(?:社)?(?:によって|が)<made>された[^\x01-\x04.]{0,6}<ai>です",
    ),
    hints=(r"<i>は,?<N>", r"<M>(?:社)?(?:によって|が)<made>", r"(?:^|[!.,] ?)<N>です"),
    self_description=r"(?:<i>は|^)[^\x01-\x04.]{0,14}(?:ai|人工知能|言語モデル)[^.]{0,6}(?:です|として)",
)

LANGUAGES = (
    _ENGLISH,
    _CHINESE,
    _SPANISH,
    _HINDI,
    _ARABIC,
    _PORTUGUESE,
    _RUSSIAN,
    _JAPANESE,
    _FRENCH,
    _GERMAN,
)

CLOSING = re.compile(
    look(
        r"(?:regards|wishes|sincerely|yours(?: truly)?|signed|cheers|thanks|saludos|atentamente|"
        r"cordialmente|cordialement|amities|bien a vous|grussen|grusse|atenciosamente|abracos|"
        r"с уважением|敬上|此致|敬具|よろしくお願いします|مع التحيه|مع التحية|تحياتي|सादर|धन्यवाद)[,.!]? ?$"
    )
)
"""The end of the line before a signature."""

SALUTATION = re.compile(
    look(
        r"^(?:my )?(?:dear|dearest|estimad[oa]|querid[oa]|cher|chere|mon cher|ma chere|lieber?|"
        r"sehr geehrte|car[oa]|prezad[oa]|дорог|уважаем|亲爱的|尊敬的|拝啓|عزيزي|عزيزتي|प्रिय)"
    )
)
"""The beginning of a letter: its signature is of a person."""
