"""Possible prompt injections in ten languages: rules over sentences, by their looks.

How rules are written and compiled is in :mod:`clash.collect.language_rules`. Each rule needs what
honest text about judges and ranks lacks: the response itself as the thing to be ranked, a command to
somebody who reads responses, or the labels of the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import ahocorasick_rs

from clash.collect.language_rules import LanguageRules, RuleIndex, compile_rules
from clash.collect.looks import look

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, eq=False)
class AppealRules(LanguageRules):
    """The rules of a language by which a sentence is a possible prompt injection.

    Attributes:
        cues: beginnings of words, one of which is in every sentence that a rule fits; ``=`` is put
            before a whole word.
    """

    cues: tuple[str, ...]


def _language(cues: str, slots: dict[str, str], *rules: str) -> AppealRules:
    return AppealRules(compile_rules(rules, slots), tuple(map(look, cues.split())))


_SIGNS = _language(
    "imstart imend |im |system |user |assist |end |eot |start inst <<sys <</sys system "
    "developer ranking finalranking",
    {},
    r"<\|(?:im_?start|im_?end|system|user|assistant|end_?of_?text|eot_?id|start_?header_?id|end_?header_?id)\|>",
    r"\[/?inst\]|<</?sys>>",
    r"^[ #>-]{0,6}\[?(?:system|developer)(?: (?:message|prompt|note|override|update))?\]? ?: ?.{0,200}\b(?:you|respon|answer|evaluat|judg|criteri|rank|scor|winn|ignor|instruct|a\d)",
    r"^[\W]{0,4}a\d+(?: ?(?:>|≻|=|~) ?a\d+)+[\W]{0,4}$",
    r"\"(?:final_?)?ranking\" ?: ?[\[{\" ]{1,6}a\d",
)

_ENGLISH = _language(
    "response answer reply solution submission output assistant =me =mine judg evaluat grader grading "
    "rater assessor reviewer scorer adjudicator rubric instruction criteri guideline prompt rule "
    "directive message override score mark rating grade points ranked placed rated =ai =llm automated "
    "artificial language =c1 =c2 =c3 =c4 =c5 =c6 =c7 =c8 =c9",
    {
        "<judge>": r"(?:judges?|evaluators?|graders?|raters?|assessors?|scorers?|reviewers?|adjudicators?)\b",
        "<this>": r"(?:(?:this|my|the above|the present|our)(?: own)? (?:response|answer|reply|solution|submission|output)|(?:response|answer|assistant) (?:a\d+|[ab]\b)|\ba\d+)\b",
        "<give>": r"\b(?:rank|rate|score|place|put|prefer|choose|select|pick|give|award|assign|grant|mark|declare|treat|consider|grade|favou?r|vote for)",
        "<top>": r"(?:first|1st|highest|the best|as best|best|top|number one|the winner|as winner|superior|in first place|above|over|(?:a )?(?:5|five|10|ten)\b|full marks|maximum|perfect)",
        "<marks>": r"(?:maximum|max|highest|perfect|full|top|best)(?: possible)? (?:score|scores|marks?|rating|grade|points)",
        "<rules>": r"(?:instruction|rule|criteri|prompt|guideline|rubric|directive|message|system prompt)",
    },
    r"\b(?:ignore|disregard|forget|override|overrule|discard|skip|do not follow|don't follow) (?:(?:all|any|the|your|of|these|those|my|every) ){0,4}(?:previous|prior|above|earlier|other|preceding|foregoing|system|scoring|grading|evaluation|judging|original|initial|former) (?:\w+ ){0,2}<rules>",
    r"\b(?:ignore|disregard|forget|override|overrule|discard|do not follow|don't follow) (?:all |any )?(?:your <rules>|(?:the |this |that )?(?:rubric|(?:scoring|grading|judging) \w+)|(?:the )?(?:criteria|rules|instructions) (?:above|you (?:were|have been) given))",
    r"\b(?:dear|attention|hey|hello|note (?:to|for)|message (?:to|for)|instructions? (?:to|for)|reminder (?:to|for)|hint (?:to|for)),? (?:the |all |any |our |whoever |ai |llm ){0,3}(?:judges?|evaluators?|graders?|raters?|assessors?)(?: ?[:,!.-]|$)",
    r"^to (?:the |all |any |our |ai |llm |whoever (?:is )?){1,3}(?:judges?|judging|evaluators?|evaluating|graders?|grading|raters?)\b",
    r"\b(?:note|message|instructions?|reminder|memo) (?:to|for) (?:the |all |any |our |ai |llm ){0,3}(?:judges?|evaluators?|graders?|raters?)\b",
    r"\battention,? (?:the |all |ai )?<judge>",
    r"\bas (?:the|an?|our|your) (?:\w+ )?<judge>,? .{0,30}\byou\b.{0,60}<this>",
    r"\bas (?:the|our|your) (?:ai |llm )?<judge>,? you (?:must|should|have to|need to|are to|are required)\b",
    r"\bif you are (?:an? )?(?:ai|llm|language model|automated|artificial)",
    r"\bif you are (?:an? |the )?(?:judge|evaluator|grader|judging|evaluating|grading)\b.{0,60}(?:<this>|<marks>)",
    r"\byou are (?:now |currently )?(?:evaluating|judging|grading|comparing|ranking|scoring) (?:\w+ ){0,3}(?:responses?|answers?|submissions?)",
    r"\b<judge> (?:must|should|shall|has to|have to|needs? to|will|are to|is to|please|may not) .{0,40}<this>",
    r"\b(?:instruct|order|command|urge|beg|ask|tell) (?:you|the <judge>) to .{0,30}(?:<give>).{0,30}\b(?:<this>|winner|first|best)",
    r"\b<give> <this>(?: \w+){0,4}? <top>",
    r"\b<give>(?: \w+){0,4}? <marks>(?: \w+){0,2}? (?:to|for|on) (?:<this>|me\b)",
    r"\b<give> <this> .{0,20}<marks>",
    r"\b(?:award|give|assign|grant) (?:\w+ )?<marks> (?:here|to (?:it|this))\b",
    r"\b<give> me (?:the )?(?:first|highest|best|top|winner|above|over|(?:a )?(?:5|five|10) ?(?:/|out of))",
    r"\b(?:choose|pick|select|prefer) (?:this|mine)(?: one)? (?:as|over|above|first)\b",
    r"\byou must (?:pick|choose|select|prefer|rank|favou?r) (?:mine|me|this|a\d)\b",
    r"\b<this> (?:is|should be|must be|deserves|merits|should get|should receive|must get|must receive|should win|must win|earns|has won)(?: \w+){0,3}? (?:winner|ranked|best (?:response|answer|possible)|highest|ranked first|full marks|perfect score|perfect|maximum|top score|5 on)",
    r"\bmy (?:answer|response) wins\b",
    r"\bother (?:responses?|answers?|candidates?|submissions?) .{0,40}\b(?:should|must|shall) (?:be )?(?:ranked|scored|rated|placed|penali[sz]ed|ignored|rejected|get|receive|lose)",
    r"\b<give> (?:the |all |every )?other (?:responses?|answers?|candidates?)(?: \w+){0,3}? (?:last|low|lower|lowest|1|one|zero|0|bottom)\b",
    r"\b(?:evaluation|scoring|grading|judging|ranking) (?:criteria|rubric|rules|standards?|guidelines|instructions) .{0,20}\b(?:chang|updat|replac|overrid|void|cancel|revis|supersed|suspend)",
    r"\b(?:assign|give|award) (?:the )?<marks>(?: ?[.!]|$)",
    r"\b(?:correct|right|true|proper|expected) (?:ranking|order|verdict|judg\w+) .{0,20}\ba\d",
    r"\b(?:ranking|verdict|winner|winning response|best response) ?(?:is|:|=|should be|must be) .{0,12}\ba\d+\b",
    r"\ba\d+ (?:is|are|was) (?:the )?(?:better than|winner|best|superior|preferred)",
    r"\b(?:for the purposes? of|when|while) (?:grading|scoring|judging|ranking|evaluating|comparing|evaluation) .{0,40}(?:<this>|you must|mine\b)",
    r"^[ #>-]{1,6}(?:(?:new|updated|override) (?:instruction|prompt|message|criteri)|system (?:prompt|message|override))",
    r"\b(?:final )?(?:decision|verdict|judge?ment|ranking) ?: .{0,12}\b<this>.{0,12}\b(?:first|best|wins|winner|better)",
    r"\b<this> (?:was|has been|is) .{0,60}\b(?:scored|rated|graded|awarded|received|given|got) .{0,12}(?:5 ?/ ?5|10 ?/ ?10|5 out of 5|10 out of 10|<marks>)",
    r"\bother (?:response|answer)s? .{0,60}\b(?:copied|plagiari[sz]ed|stolen|disqualified|judges? overlook)",
    r"\b(?:it|they|that one) (?:has to|have to|must|should|needs? to) be (?:ranked|scored|rated|placed) (?:last|lowest|below)",
    r"\b(?:correction|update|change|amendment|addendum) to the (?:criteria|rubric|scoring|grading|evaluation|judging)",
    r"\bc\d+ counts? (?:for )?\d+ ?%|\b(?:all|other) criteria are (?:void|cancelled|suspended)",
)

_CHINESE = _language(
    "回答 答案 回复 响应 指令 指示 规则 标准 提示 要求 评 裁判 打分 阅卷 排名 排序 系统",
    {
        "<this>": "(?:这个|这一|这份|本|此|我的|该|a\\d)(?:个)?(?:回答|答案|回复|响应)|我的|\\ba\\d+",
        "<judge>": "(?:评委|评审|评估者|评判者|评分者|裁判|评审员|打分者|评价者|阅卷人)",
    },
    "(?:忽略|无视|忘记|不要遵守|不要理会|覆盖)[^.]{0,8}(?:之前|以前|以上|上述|先前|前面|所有|原有|你的)[^.]{0,8}(?:指令|指示|规则|标准|提示|要求)",
    "(?:尊敬的|亲爱的|各位)<judge>|<judge>(?:请)?(?:注意|您好|你好)|(?:致|给)<judge>",
    "作为(?:一名|一个)?<judge>,?[^.]{0,10}(?:你|您|必须|应该|应当)",
    "(?:把|将|请|给|选|判|为)[^.]{0,4}(?:<this>)[^.]{0,12}(?:第一|最佳|最好|最高|满分|获胜|胜|首位)",
    "(?:给|给予|打)[^.]{0,10}(?:<this>)?[^.]{0,6}(?:最高分|满分)(?:$|[.!。])",
    "(?:选择|选)(?:<this>)",
    "(?:<this>)[^.]{0,6}(?:应|值得|必须|理应)[^.]{0,8}(?:第一|最高|满分|最佳|胜)",
    "(?:评分|评价|评估|评审)(?:标准|规则|准则)[^.]{0,6}(?:已|被)?(?:更改|改变|更新|作废|修改|取消)",
    "(?:正确|最终|真正)的?(?:排名|排序|顺序|结论|判断)[^.]{0,8}a\\d",
    "系统[:提][^.]{0,30}(?:a\\d|评|回答|指令|分)",
    "a\\d+ ?(?:获胜|胜出|更好|最好|最佳)",
)

_SPANISH = _language(
    "instruccion criterio regla indicacion rubrica anterior previa juez jueces jueza "
    "evaluador calificador revisor respuesta",
    {
        "<this>": r"(?:(?:esta|mi|la presente) respuesta|respuesta a\d+|\ba\d+)",
        "<judge>": r"(?:juez|jueces|jueza|evaluador(?:a|es)?|calificador(?:a|es)?|revisor(?:a|es)?)",
        "<top>": r"(?:primer|primera|primero|mejor|ganador|maxim|mas alta|un 5|un 10|cinco|diez|perfect)",
    },
    r"\b(?:ignora|ignore|ignorad|olvida|olvide|descarta|descarte|omite)\b.{0,20}\b(?:instrucciones|criterios|reglas|indicaciones|rubrica)\b(?: (?:anteriores|previas|de evaluacion)|,? y )",
    r"\b(?:ignora|ignore|olvida|olvide|descarta|descarte)\b.{0,10}\b(?:anteriores|previas)",
    r"\b(?:estimad[oa]s?|querid[oa]s?|atencion,?|nota (?:para|a)|mensaje (?:para|a)|instrucciones (?:para|a)) (?:el |la |los |al )?<judge>",
    r"\bcomo <judge>,?.{0,60}<this>",
    r"\b(?:clasifica|clasifique|califica|califique|puntua|puntue|elige|elija|escoge|selecciona|pon|ponga|da|de|otorga|otorgue|coloca) .{0,24}<this>.{0,24}<top>",
    r"\b(?:da|de|pon|otorga|asigna|dar|poner)(?:le)? .{0,24}<top>.{0,16}\ba <this>",
    r"\b<this> (?:merece|debe|deberia) .{0,20}<top>",
    r"\b<this> (?:fue|ha|recibio) .{0,60}\b(?:nota|puntuacion) (?:maxima|(?:de )?(?:5|10) (?:de|sobre) (?:5|10))",
    r"\bcriterios de (?:evaluacion|puntuacion|calificacion) .{0,10}(?:cambiad|actualizad|anulad)",
)

_PORTUGUESE = _language(
    "instruco criterio regra orientaco rubrica anterior previa juiz avaliador revisor resposta",
    {
        "<this>": r"(?:(?:esta|essa|minha|a presente) resposta|resposta a\d+|\ba\d+)",
        "<judge>": r"(?:juiz|juiza|juizes|avaliador(?:a|es)?|revisor(?:a|es)?)",
        "<top>": r"(?:primeir|melhor|vencedor|maxim|mais alta|um 5|um 10|cinco|dez|perfeit)",
    },
    r"\b(?:ignore|ignora|esqueca|esquece|descarte|desconsidere)\b.{0,20}\b(?:instrucoes|criterios|regras|orientacoes|rubrica)\b(?: (?:anteriores|previas|de avaliacao|acima)|,? e )",
    r"\b(?:ignore|esqueca|descarte|desconsidere)\b.{0,10}\b(?:anteriores|previas)",
    r"\b(?:caro|cara|prezad[oa]s?|atencao,?|nota (?:para|ao)|mensagem (?:para|ao)|instrucoes (?:para|ao)) ?(?:o |a |os |ao )?<judge>",
    r"\bcomo <judge>,?.{0,60}<this>",
    r"\b(?:classifique|avalie|pontue|escolha|selecione|coloque|de|atribua|prefira) .{0,24}<this>.{0,24}<top>",
    r"\b(?:de|dar|atribua|atribuir) .{0,24}<top>.{0,16}\b(?:a|para) <this>",
    r"\b<this> (?:merece|deve|deveria) .{0,20}<top>",
    r"\b<this> (?:foi|recebeu) .{0,60}\b(?:nota|pontuacao) (?:maxima|(?:5|10) de (?:5|10))",
    r"\bcriterios de (?:avaliacao|pontuacao) .{0,10}(?:mudaram|mudad|atualizad|alterad)",
)

_FRENCH = _language(
    "instruction consigne critere regle bareme juge l'evaluat evaluat correct reponse",
    {
        "<this>": r"(?:(?:cette|ma|la presente) reponse|reponse a\d+|\ba\d+)",
        "<judge>": r"(?:juges?|evaluateurs?|evaluatrices?|correcteurs?|correctrices?)",
        "<top>": r"(?:premi|meilleur|gagnant|maxim|plus haut|plus elev|un 5|un 10|cinq|dix|parfait)",
    },
    r"\b(?:ignore[zr]?|oublie[zr]?|ne tiens pas compte|ne tenez pas compte)\b.{0,24}\b(?:instructions|consignes|criteres|regles|bareme)\b(?: (?:precedentes?|precedents?|ci-dessus|anterieure?s?|d'evaluation|de notation)|,? et )",
    r"\b(?:cher|chere|chers|attention,?|(?:note|message|remarque|instructions?) (?:a|pour|au|aux)) ?(?:l'|le |la |les |au )?<judge>",
    r"\ben tant qu[e' ]{1,2}<judge>,?.{0,60}<this>",
    r"\b(?:classe[rz]?|note[rz]?|choisis(?:sez)?|choisir|selectionne[rz]?|prefere[rz]?|place[rz]?|mets|mettez|donne[rz]?|attribue[rz]?) .{0,24}<this>.{0,24}<top>",
    r"\b(?:donne[rz]?|attribue[rz]?|accorde[rz]?|mets|mettez) .{0,24}<top>.{0,16}\ba <this>",
    r"\b<this> (?:merite|doit|devrait) .{0,20}<top>",
    r"\b<this> a .{0,60}\b(?:note maximale|note de (?:5|10) sur (?:5|10))",
    r"\bcriteres (?:d'evaluation|de notation) .{0,10}(?:change|modifie|mis a jour)",
)

_GERMAN = _language(
    "anweisung kriteri regel vorgabe instruktion richter gutachter bewert prufer juror jury "
    "antwort =ki",
    {
        "<this>": r"(?:(?:diese[rn]?|meine[rn]?|die vorliegende) antwort|antwort a\d+|\ba\d+)",
        "<judge>": r"(?:richter(?:in)?|gutachter(?:in)?|bewerter(?:in)?|prufer(?:in)?|juror(?:in)?|jury)",
        "<top>": r"(?:erste|eins|beste|sieger|gewinn|hochst|maximal|voll|funf|zehn|perfekt|\b5\b|\b10\b)",
    },
    r"\b(?:ignoriere?|ignorieren|vergiss|vergessen|missachte|verwirf)\b.{0,16}\b(?:vorherigen?|bisherigen?|obigen?|fruheren?|deine|ihre|alle)\b.{0,16}\b(?:anweisung|kriteri|regel|vorgabe|instruktion)",
    r"\b(?:liebe[rs]?|sehr geehrte[rs]?|achtung,?|(?:hinweis|nachricht|notiz|anweisung(?:en)?) (?:an|fur)) (?:den |die |alle )?(?:ki-?)?<judge>",
    r"\bals <judge> .{0,60}<this>",
    r"\b(?:setze?|bewerte?|wahle?|stelle?|gib|geben|bevorzuge?|vergib) .{0,24}<this>.{0,24}<top>",
    r"\b<this> (?:verdient|muss|sollte) .{0,20}(?:<top>.{0,12}(?:punkt|note|platz|bewertung)|gewinn|sieger)",
    r"\b(?:bewertungskriterien|bewertungsmassstab) .{0,16}(?:geandert|aktualisiert)",
)

_RUSSIAN = _language(
    "инструкц указани критери правил судь оценщик эксперт рецензент проверяющ ответ",
    {
        "<this>": r"(?:(?:этот|этому|этого|мой|моему|моего|данный|данному) ответ\w{0,8}|ответ\w{0,8} a\d+|\ba\d+)",
        "<judge>": r"(?:судья|судьи|судье|оценщик\w{0,8}|эксперт\w{0,8}|рецензент\w{0,8}|проверяющ\w{0,8})",
        "<top>": r"(?:перв|лучш|победител|максимальн|высш|наивысш|пять|5|10|десять)",
    },
    r"(?:игнорируй|игнорируйте|проигнорируй\w{0,8}|забудь\w{0,8}|не следуй\w{0,8}) .{0,16}(?:предыдущ|прежн|вышеуказанн|выше|все |свои ).{0,16}(?:инструкц|указани|критери|правил)",
    r"(?:уважаем\w{2}|дорог\w{2}|внимание,?|(?:примечание|сообщение|указание|инструкция)(?: для)?) <judge>",
    r"\b(?:как|вы) <judge>,?.{0,60}<this>",
    r"(?:поставь\w{0,8}|оцени\w{0,8}|выбери\w{0,8}|поместите|дай\w{0,8}|присвой\w{0,8}|назови\w{0,8}|признай\w{0,8}) .{0,24}<this>.{0,24}<top>",
    r"<this> (?:заслуживает|должен|достоин) .{0,20}<top>",
    r"критерии оцен\w{0,8} .{0,10}(?:изменен|обновлен|изменил)",
)

_JAPANESE = _language(
    "指示 命令 基準 ルール 審査 評価 採点 審判 ジャッジ 判定者 回答 答え 応答 順位 ランキング 順序",
    {
        "<this>": "(?:この|私の|本|上記の|a\\d+の?)(?:回答|答え|応答)|\\ba\\d+",
        "<judge>": "(?:審査員|評価者|採点者|審判|ジャッジ|判定者)",
    },
    "(?:これまで|以前|上記|前|すべて|全て)の?[^.]{0,10}(?:指示|命令|基準|ルール)[^.]{0,8}(?:無視|忘れ|破棄)",
    "<judge>(?:の方|の皆|様|さん)?(?:へ|各位|に告|に対)",
    "<judge>として,?[^.]{0,40}(?:<this>|なければ|べき|ください)",
    "(?:<this>)[をに][^.]{0,16}(?:1位|一位|最高|満点|最も|ベスト|勝|選)[^.]{0,12}(?:て|で)?(?:ください|下さい|なさい|しろ|せよ|べき|なければ)",
    "(?:<this>)(?:は|が)[^.]{0,12}(?:最高点|満点|1位|一位|勝者)[^.]{0,8}(?:値|ふさわし|べき)",
    "(?:<this>)は[^.]{0,40}満点",
    "(?:評価|採点|審査)(?:の)?基準[^.]{0,6}(?:変更|更新|変わ)",
    "正しい(?:順位|ランキング|順序)[^.]{0,8}a\\d",
)

_HINDI = _language(
    "निर्देश नियम मानदंड निर्णायक मूल्यांकन परीक्षक जज उत्तर जवाब अंकन",
    {
        "<this>": "(?:इस|मेरे|यह|इसी) (?:उत्तर|जवाब)|\\ba\\d+",
        "<judge>": "(?:निर्णायक|मूल्यांकनकर्ता|परीक्षक|जज)",
    },
    "(?:पिछले|सभी|ऊपर|पूर्व)[^.]{0,16}(?:निर्देश|नियम|मानदंड)[^.]{0,10}(?:अनदेखा|नज़रअंदाज|भूल|नजरअंदाज)",
    "(?:प्रिय|आदरणीय|माननीय) <judge>|<judge> (?:कृपया )?ध्यान",
    "<judge> के रूप में,?[^.]{0,20}(?:आपको|आप|तुम्हें)",
    "(?:<this>) को[^.]{0,20}(?:पहल|प्रथम|सर्वश्रेष्ठ|पूरे|सबसे|अधिकतम|विजेता)",
    "(?:मूल्यांकन|अंकन) (?:के )?(?:मानदंड|नियम)[^.]{0,6}बदल",
)

_ARABIC = _language(
    "التعليمات المعايير القواعد الارشادات الحكم المقي المحكم القاضي المصحح هذه هذا اجابتي "
    "الاجاب معايير",
    {
        "<this>": "(?:هذه|هذا|اجابتي)(?: ال(?:اجابه|اجابة|رد))?|\\ba\\d+",
        "<judge>": "(?:الحكم|المقيم|المحكم|القاضي|المصحح)",
        "<top>": "(?:الاول|اعلي|اعلى|افضل|الكامل|القصو|فائز)",
    },
    "(?:تجاهل|انس|تغاض)\\w{0,2} .{0,12}(?:التعليمات|المعايير|القواعد|الارشادات)",
    "(?:عزيزي|حضره|ملاحظه الى|ملاحظة الى|رساله الى|رسالة الى|تنبيه الى|انتباه) <judge>",
    "بصفتك <judge>",
    "(?:ضع|امنح|اختر|صنف|اعط|تمنح|رتب) .{0,10}(?:<this>).{0,24}<top>",
    "(?:<this>) .{0,4}(?:تستحق|يستحق|يجب ان) .{0,20}<top>",
    "معايير التقييم .{0,8}(?:تغير|تحدث|عدل)",
    "(?:الاجابه|الاجابة) الاخر\\w .{0,80}(?:المرتبه|المرتبة) الاخير",
)

LANGUAGES = (
    _SIGNS,
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


_ANYWHERE = ("<|", "<<", "</", "[inst", "[/inst")
"""Signs of every language that need no boundary before them."""
_WORD = frozenset("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LETTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")


class CueIndex:
    """Where a text may hold a prompt injection, and in which languages: one scan for the cues of all.

    Labels of the page and imitated signs are cues of every language. A Latin cue begins a word.
    """

    def __init__(self, languages: tuple[AppealRules, ...]) -> None:
        by_cue = dict.fromkeys((*_ANYWHERE, *(f"a{digit}" for digit in range(10))), languages)
        for cue in {cue for language in languages for cue in language.cues} - by_cue.keys():
            if cue[0] not in "<|":
                by_cue[cue] = tuple(lang for lang in languages if cue in lang.cues)
        self._cues = list(by_cue.items())
        self._scan = ahocorasick_rs.AhoCorasick([cue.removeprefix("=") for cue in by_cue])

    def find(self, looks: str) -> Iterator[tuple[int, tuple[AppealRules, ...]]]:
        """Where each cue begins in ``looks``, a text by its looks, and the languages it is of."""
        for number, start, end in self._scan.find_matches_as_indexes(looks, overlapping=True):
            cue, languages = self._cues[number]
            begins = cue in _ANYWHERE or not cue.isascii() or looks[start - 1 : start] not in _WORD
            if begins and (cue[0] != "=" or looks[end : end + 1] not in _LETTERS):
                yield start, languages


CUES = CueIndex(LANGUAGES)
RULES = RuleIndex(LANGUAGES)
