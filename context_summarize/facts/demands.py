"""How users ask for something that lasts: the shapes of directives in English, and what only looks like one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from context_summarize.facts.demands_abroad import demanded_abroad

SENTENCE = 400
"""Characters of a sentence, from its beginning, in which shapes are looked for."""
CLAUSE = 200
"""Characters of a clause that a shape is matched against."""

_OUTPUT = (
    r"(?:answers?|repl(?:y|ies)|responses?|messages?|explanations?|summar(?:y|ies)|commits?|commit messages?|drafts?|"
    r"e?-?mails?|code|functions?|variables?|tests?|files?|documents?|examples?|dates?|numbers?|prices?|charts?|"
    r"diagrams?|recipes?|meals?|sentences?|paragraphs?|comments?|tone|language|style|output|suggestions?|questions?|"
    r"names?|figures?|steps?|sources?|units?|changes?|tables?|headings?|listings?|reports?|sessions?|mock-?ups?)"
)
_VERB = (
    r"(?:act|add|address|answer|apply|ask|assume|attach|avoid|back|be|begin|build|call|check|choose|cite|commit|"
    r"compare|"
    r"confirm|consider|consult|convert|copy|create|default|describe|do|document|draft|drop|end|ensure|explain|express|"
    r"finish|follow|format|get|give|group|have|highlight|hold|include|indent|keep|label|leave|let|limit|link|list|log|"
    r"make|mark|mention|name|note|number|offer|omit|open|phrase|pick|place|plan|point|prefer|print|prioriti[sz]e|"
    r"propose|provide|put|quote|recommend|refer|remember|remind|remove|repeat|reply|report|respect|respond|restate|"
    r"return|review|round|run|save|say|send|show|sign|skip|sort|speak|specify|spell|start|state|stay|stick|stop|store|"
    r"structure|suggest|summari[sz]e|tag|take|talk|tell|test|translate|treat|type|use|verify|wait|warn|work|wrap|write)"
)
_EVERY = re.compile(
    r"(?i)\b(?:(?:every|each)\s+(?!one\b|body\b|now\b|other\b|of\b)\w|any ?time\b|everywhere\b|throughout\b|"
    r"at all times\b|as a rule\b|by default\b|without exception|no exceptions|next time\b|for everything\b|"
    r"everything (?:i|you|we)\b|(?:the )?(?:whole|entire) (?:chat|conversation|session|project|time|way)\b|"
    r"all the way through\b|permanently\b|forever\b|"
    rf"(?:all|any) (?:of )?(?:(?:your|my|our|the|future|new|later|these)\s+){{0,3}}{_OUTPUT}\b)"
)
_LASTS = re.compile(
    r"(?i)\b(?:from (?:here|this point|that point|today|tomorrow|now) (?:on|out|forward)|from now onwards?|"
    r"(?:going|moving) forward\b|henceforth|hereafter|as of (?:now|today)|for everything (?:i|we|you)|"
    r"until further notice|"
    r"(?:until|till|unless) i (?:say|tell|ask|request|state|specify|explicitly|specifically|approve|confirm)|"
    r"for the (?:rest|remainder|duration) of (?:the|this|our|my)|in (?:all )?future\b|in the future(?=,| please|"
    r" always| never| you| only)|"
    r"(?:every|all) (?:later|future|following|subsequent) (?:sessions?|answers?|repl|responses?|messages?|chats?)|"
    r"without (?:asking|telling|consulting|checking with|informing|warning) (?:me|first)|"
    r"(?:without|get|have|need|needs) my (?:(?:explicit|prior|written|express) )?"
    r"(?:consent|approval|permission|say-so|go-ahead|okay|ok|sign-?off|confirmation)\b)"
)
_OPENER = re.compile(
    r"(?i)\W*(?:(?:please|kindly|also|ok(?:ay)?|hey|hi|hello|well|just|so|and|but|or|oh|now|actually|honestly|thanks|"
    r"thank you|by the way|btw|one (?:more |last |other )?(?:thing|rule|note)|note|again|for the record|in general|"
    r"generally|overall|first|firstly|finally|lastly|secondly|yes|then|because|since|though|pls|plz|fyi|important|"
    r"reminder|another thing|(?:this|that|here)(?:'s| is) (?:an? |my |the |one )?(?:\w+ )?(?:constraint|rule|"
    r"requirement|instruction|preference|request|reminder)|in (?:this|my|our|the) (?:chat|conversation|session|"
    r"project|repo|code ?base|case)|"
    r"that said|on (?:this|another) note|at least|(?:can|could|will|would) (?:you|we)|whatever you do|"
    r"to be clear)\b\W*){0,6}"
)
_CUTS = re.compile(r"(?i)[,;:(]\s|\s[-–—]{1,2}\s|\b(?:and|but|so|because|then)\s|\.\.\.?\s|…\s")
_NARRATIVE = re.compile(
    r"(?i)(?:h+m+\W+)?(?:i(?:'m|'ve|'d|'ll| am| have| had| was| were| did| will| would| can| could| think| thought|"
    r" guess| hope| plan| tried| got| went| used| met| saw| heard| made| found| know| noticed| wonder| remember| feel|"
    r" (?:\w+ly |also |just |still )?(?:need|want|wanted|have) to)\b|"
    r"(?:my|what|why|how|does|did|is|are|was)\b|to \w+\b|we(?:'re|'ve| are| were| had| have|'ll| can| could| will)\b|"
    r"(?:he|she|they|it|this|that|there)\b(?!'s important| is (?:very |really )?(?:important|essential|crucial|vital)))"
)
_WISH = r"i(?:'d|'ll)?(?:\s+(?:would|will|really|also|much|strongly|generally|usually|always|still|just|do)){0,3}\s+"
_STYLE = (
    r"(?:brief|concise|short|formal|polite|blunt|direct|honest|strict|terse|succinct|casual|friendly|critical|specific|"
    r"plain|informal|neutral|gentle|quiet)"
)
_NOT_NONE = (
    r"(?!problem|worr|regret|questions?\b|hard feelings|complain|thanks?\b|thank|idea|one\b|rush|hurry|luck|doubt|"
    r"wonder|way\b|longer\b|matter|such\b|clue|big\b|"
    r"sweat|pressure|issues?\b|errors?\b|results?\b|changes? (?:yet|so)|i\b|it\b|that\b|this\b|the\b|you\b|we\b|not\b|"
    r"don't|but\b|need\b|sorry|please)"
)
_CLAUSES = (
    # Wishes about what the agent does.
    rf"{_WISH}(?:rather|prefer)(?:\s+(?:that|if|it if))?\s+(?:you|your|not (?:to )?(?:see|have|get|hear|read)|every|"
    rf"all|each|no\b)",
    r"i (?:(?:really|much|strongly|generally|usually|always|do) ){0,2}(?:prefer|favou?r)\b(?! (?:a|an|the|this|that|"
    r"to(?! be))\b)",
    rf"{_WISH}(?:like|love|want|need|expect|appreciate(?! your?\b(?! (?:not|always|never)))|insist|ask|wish|"
    rf"require)\s+(?:it if |that |on |for )?"
    r"(?!you (?:could|can|would) (?!always|never|not|please not|keep|avoid|stop))"
    rf"(?:you|your)\b(?=.{{0,150}}\b(?:always|never|ever|every|each|any|anything|everything|not|stop|avoid|quit|"
    rf"without|"
    rf"before|prior to|whenever|instead|throughout|kept|keep|double-?check|confirm|all (?:your|of your)|didn't|don't|"
    rf"{_OUTPUT} (?:in|to be|short|brief)))",
    rf"{_WISH}(?:like|love|want|need|expect)\s+(?:to see )?(?:every|each|no|only|all|any)\s+(?!one\b|of (?:these|"
    rf"those|them))"
    rf"(?:(?:your|my|our|the|of|future)\s+){{0,3}}(?:\w+\s+){{0,2}}(?:to\b|in\b|as\b|with\b|{_OUTPUT}\b)",
    rf"{_WISH}(?:like|want|need) (?:the |my |your )?{_OUTPUT} (?:to|in|as|written|shown|with)\b(?=.{{0,100}}\b(?:all|"
    rf"every|"
    rf"each|always|never|short|brief)\b)",
    rf"{_WISH}(?:want|need|have|like|get) to (?:approve|review|see|check|confirm|sign off|be (?:asked|told|informed|"
    rf"consulted))\b(?=.{{0,120}}\b(?:first|before|every|each|any|all)\b)",
    r"i(?:'m| am) (?:really )?(?:not (?:a (?:big )?fan|keen|fond|into)|allergic|tired of|sick of)\b",
    r"i (?:(?:really|just|also|personally|do) ){0,2}(?:dislike|detest|loathe|can't stand|cannot stand|can't bear|"
    r"hate(?! to\b)|"
    r"don't (?:like|care for|enjoy)|do not (?:like|care for|enjoy))\s+(?!this\b|that\b|the (?:idea|look|sound|way|"
    r"fact)|"
    r"it\b(?! when)|how\b|to\b|being\b|my\b|any of)",
    r"i only (?:want(?! to)|eat|use|read|accept|drink|work|speak|buy|fly)\b",
    r"it (?:really |always )?(?:annoys|bothers|irritates|confuses|distracts|helps) me (?:when|if)\b",
    r"i'd be (?:happier|happy|glad|grateful) if you (?!could|can|would help)",
    r"(?:it's|it is|it'd be|it would be|it really is) (?:\w+ )?(?:important|essential|crucial|vital|imperative|"
    r"critical|"
    r"key|mandatory) (?:to me )?(?:that\b|to (?!me\b|get\b|have\b))",
    r"(?:it's|it is|it'd be|it would be) (?:\w+ )?(?:better|best|great|good|nice|"
    r"helpful) if you (?=.{0,60}\b(?:always|never|"
    r"didn't|don't|avoided|stopped|kept|every|each)\b)",
    r"i must (?:always |first )?(?:approve|review|see|check|confirm|be (?:asked|told|informed|consulted))\b",
    # Reminders.
    r"(?:(?:you )?(?:make|be) (?:\w+ )?(?:sure|certain)(?! (?:that )?(?:i|we) (?:have|get|can|am|are|still)\b)|"
    r"ensure(?! (?:these|those|this|it)\b)|see to it|take care (?:to|that|not)|be careful|be mindful|watch out)\b",
    r"(?:remember (?:to|that|not)|keep in mind|bear in mind|don't forget|please note|mind)\b(?= )",
    # What is not wanted.
    rf"no(?: more| further)? (?!(?:\w+ ){{1,3}}(?:needed|required|necessary)\b){_NOT_NONE}[a-z][\w'-]{{2,}}",
    r"(?:there(?:'s| is) )?no need (?:to|for)\b(?! (?:worry|rush|hurry))",
    r"(?:stop|quit) (?!being able)\w{2,}ing\b(?! me (?:if|when))|(?:avoid|refrain from|lay off|steer clear of|"
    r"stay away from|"
    r"hands off|enough (?:with|of)|go easy on|cut (?:out|down on|the))\b|(?:less|fewer) \w+",
    r"(?:drop|skip|ditch|lose|omit|spare me) (?:the|all|any|your) (?:\w+ |\"[^\"]{0,60}\" |\x00+ ){0,3}"
    r"(?:please|fluff|openers?|disclaimers?|"
    r"pleasantries|intros?|introductions?|preambles?|apolog\w+|filler|small ?talk|jargon|emojis?|explanations?)",
    r"(?:leave|keep) (?:[\w./'-]+ ){1,8}(?:alone|out of|untouched|as (?:is|it is|they are)|away from)\b",
    r"don't you dare\b",
    # What the agent may and may not do.
    r"you're (?:not|never|only|always|to|expected to) (?:to|allowed|permitted|expected|supposed|\w+)\b",
    r"(?:at no (?:time|point)|on no account|in no case|by no means)\b",
    r"you (?:should(?:n't| not| always| never| only| first)|ought (?:not )?to|may (?:not|only|never)|mustn't|needn't|"
    r"can(?:'t|not| not| only) (?!be serious|imagine)\w+|are (?:not|never|only|always) (?:to|allowed|permitted|"
    r"expected|"
    r"supposed)|aren't (?:to|allowed|permitted|supposed)|are (?:to|expected to|forbidden|free to)\b|don't (?:have|"
    r"need) to|"
    r"do not (?:have|need) to|(?:need|have) to (?:always|never|ask|check|confirm|get my|first)|need my|won't|"
    r"will (?:not|"
    r"never|always)|can (?:skip|omit|drop|leave out|assume|always)|should (?!be able|see|have|know|find|also have|"
    r"get|be "
    r"fine|be ok|now))",
    r"(?:your|all (?:of )?(?:your|my|our)|every|each|any|no|nothing|none|all|only) (?:[\w'-]+ ){0,6}(?:should|must|"
    r"shall|"
    r"has to|have to|needs? to|ought to|is to|are to|gets?|goes?|stays?|starts?|ends?|begins?|may|comes?|require)\b",
    r"the (?:[\w'/.-]+ ){1,5}(?:should|must|shall|needs? to|has to|have to) (?:stay|remain|be kept|never|always|not|"
    r"only)\b",
    r"(?:the |my |our |everything |anything )?(?:[\w'/.-]+ ){1,5}(?:is|are|stays?|"
    r"remains?) (?:strictly )?(?:off[- ]limits|"
    r"read-?only|taboo|out of bounds|untouchable|confidential|forbidden)\b",
    # Conditions.
    rf"(?:when(?:ever)?|before|after|once|each time|every time|any ?time|next time|as soon as|in case) "
    rf"(?:you(?:'re)?|your|i|we|something|anything|a|an|the user|there|answering|replying|writing|making|\w+ing)\b"
    rf"(?! (?:get|have|can|are ready|are done|are free|could|'re ready))[^,]{{2,110}}, (?:then |please |first |just )*"
    rf"(?:{_VERB}|don't|do not|never|always|only)\b(?! me know)",
    rf"if (?:(?:you(?:'re| are| aren't| don't know| can't| cannot| must| have doubts| find| see| notice| change| touch|"
    rf" edit| write| ever| make| use))|something|anything|in doubt|unsure|a|an|any|there's|there is|"
    rf"i (?:say|ask|send|paste|give|write|mention|seem))\b[^,]{{0,110}}, (?:then |please |first |just )*"
    rf"(?:{_VERB}|don't|do not|never|always|only)\b(?! me know)",
    r"when in doubt\b",
    r"(?:ask|check with|confirm with|consult|tell|show|warn|notify|inform|get (?:my|a|an)|run (?:it|that|them|things|"
    r"this) by|"
    r"wait for|seek|clear it with|talk to) [^,.]{1,80}\b(?:before|prior to|first|whenever|every time|"
    r"when(?! you (?:can|get|"
    r"have)))\b",
    r"wait for my\b|ask (?:me )?first\b|(?:get|seek) my (?:approval|permission|consent|ok)",
    # How the agent writes.
    r"(?:answer|reply|respond|speak|talk|converse|communicate)(?: to| with)?(?: me| us)? (?:only |just |always |"
    r"all )*(?:in|"
    r"using|like|as if|plainly|briefly|formally|concisely|simply|slowly|with (?:only|just|bullet|at most|one|short))\b",
    rf"keep (?:(?:your|the|all|my|every|each|any|new|our) ){{0,2}}(?:{_OUTPUT}|it|them|things|everything|"
    rf"lines) (?:\w+ )?"
    rf"(?:{_STYLE}|simple|small|light|under|below|within|to (?:at most|a|one|two|three|\d)|in (?:the|\w+ case|"
    rf"english)|at most|"
    rf"free of|up to date|consistent)\b|keep me (?:posted|informed|updated|in the loop)\b",
    rf"(?:be|stay|remain|keep it) (?:very |more |as |always )?{_STYLE}\b",
    r"use (?!my\b|this\b|that\b|the\b|it\b|those\b|these\b|both\b)[^.]{2,80}(?:, (?:not|never)|\binstead of\b|"
    r"\brather than\b|"
    r"\bonly\b|\bover\b)",
    r"(?:use|write|follow|prefer|choose|pick|favou?r|adopt|respect|observe|obey|honou?r|adhere to|"
    r"comply with) (?:[\w'.-]+ ){0,6}"
    r"(?:convention|guide(?:lines?)?|style|standard|rules?|spelling|limit|notation|units)\b",
    r"prefer \w",
    r"(?:let's|let us|we should|please) (?:always |all |just )*(?:stick|stay|keep|agree|use|avoid)\b(?=.{0,80}\w)"
    r"(?! (?:my|this|that|it|the|one|both)\b)",
    r"(?:stick|default|stay) (?:to|with|in|away)\b",
    r"(?:call|address) me (?!back|at\b|on\b|when|if\b|tomorrow|today|later|by phone|about|to\b|with\b)\w|refer to me\b|"
    r"address (?:my|our|the) ",
    r"(?:treat|regard|consider|view) [^,.]{1,60}\bas\b|(?:assume|consider) (?:every|all|any|that|i'm|i am)\b|"
    r"act (?:as|like)\b",
    r"limit (?:yourself|your|all|every|each)\b|explain (?:things|everything|it) (?:to me )?(?:like|as)\b",
    rf"(?:only|just) (?!a\b|the\b|to\b|one\b|in\b){_VERB}\b(?=.{{0,120}}(?:;|, no\b|\bonly\b|\bmyself\b|\bdrafts?\b|"
    rf"\bwithout\b))",
    rf"{_VERB} [^.]{{1,90}}(?:, no {_NOT_NONE}[a-z]|\bwithout (?:any |further |the )?(?:explan|comment|fluff|intro|"
    rf"preamble|"
    rf"emoji|ceremony)|\bin (?:your|all|every|each|any) (?:\w+ )?{_OUTPUT}\b|\bmyself\.?$|\bonly\.?$|, not (?:as |"
    rf"in |with )?\w)",
    # Rules that go by their name.
    r"(?:the |our |my |house |golden |first |general |basic |one |hard |strict |ground )*(?:rules?|convention|policy|"
    r"house style|guideline|preference)(?: of mine| here| number one| no\. ?1| for you| in this \w+)?(?: is\b| are\b|"
    r":)",
    r"(?:we|our team|the team|this (?:team|project|repo)) (?:use|uses|write|writes|prefer|prefers|name|follow|"
    r"follows|avoid|"
    r"avoids|indent|work)\b(?=.{0,100}\b(?:here|in this|everywhere|only|never|always|not)\b)",
    r"would (?:you )?mind (?:not )?\w+ing\b",
)
_CLAUSE = re.compile("(?i)(?:" + "|".join(_CLAUSES) + ")")
_IMPERATIVE = re.compile(rf"(?i)(?:(?:do|always|never|only|just|always|please) )*(?:{_VERB}|don't|do not|feel free)\b")
_ADDRESSED = re.compile(r"(?i)\b(?:you|your|please|must|should|shall|has to|have to|needs? to|ought)\b")

_PLAIN_ORDER = re.compile(r"(?i)(?:you (?:should|must|may)n|you (?:should|must|may) (?:not|never)|no more|don't you)")
_FINITE = re.compile(
    r"(?i)\b(?:i|he|she|it|they|we|is|are|was|were|has|have|had|does|did|do|can|could|would|will|\w+ed|\w{3,}(?<!s)s)\b"
)
_STATES = re.compile(r"(?i)\b(?:i|it|he|she|they|is|was|were|had)\b")
_PHRASE = 12
"""Words."""


def clauses(sentence: str) -> Iterator[int]:
    """Where the clauses of a sentence begin, after words such as "please" and "and"."""
    last = -1
    for start in (0, *(match.end() for match in _CUTS.finditer(sentence, 0, SENTENCE))):
        opener = _OPENER.match(sentence, start, start + CLAUSE)
        at = opener.end() if opener else start
        if at > last:
            yield at
            last = at


def starts_clause(sentence: str, at: int) -> bool:
    """True for a position with nothing before it in its clause but words such as "please" and "and"."""
    first = max(at - CLAUSE, 0)
    return any(start == at - first and (not first or start) for start in clauses(sentence[first : at + 1]))


def is_narrative(sentence: str) -> bool:
    """True for a sentence that begins like a report or a question: "I'm trying to", "My tests", "How do"."""
    opener = _OPENER.match(sentence, 0, CLAUSE)
    at = opener.end() if opener else 0
    return _NARRATIVE.match(sentence, at, at + CLAUSE) is not None


def is_imperative(sentence: str) -> bool:
    """True if a clause of the sentence begins with a verb that tells the agent what to do, or speaks to the agent."""
    if _ADDRESSED.search(sentence, 0, SENTENCE):
        return True
    return _orders(sentence, clauses(sentence))


def lasts(sentence: str) -> bool:
    """True for a sentence that says that it holds from now on, or for all of something."""
    return _LASTS.search(sentence, 0, SENTENCE) is not None or _EVERY.search(sentence, 0, SENTENCE) is not None


def demanded(sentence: str) -> int | None:
    """Position of the words by which a sentence asks for something that lasts, in a shape known here; else None.

    The sentence is on one line, with straight apostrophes and without quotations.
    """
    starts = list(clauses(sentence))
    narrative = is_narrative(sentence)
    for index, at in enumerate(starts):
        found = _CLAUSE.match(sentence, at, at + CLAUSE)
        if found is not None and not (index and _belongs_to_report(found[0], sentence, narrative)):
            return at
    ordered = _orders(sentence, starts)
    lasting = _LASTS.search(sentence, 0, SENTENCE)
    if lasting is not None and (not narrative or _orders(sentence, starts[1:])):
        return lasting.start()
    every = _EVERY.search(sentence, 0, SENTENCE)
    if every is not None and not narrative and (ordered or _is_phrase(sentence)):
        return every.start()
    return demanded_abroad(sentence[:SENTENCE])


def _belongs_to_report(found: str, sentence: str, narrative: bool) -> bool:
    """True for words after "and" or a comma that only tell more of what a report tells: "…, and make sure"."""
    if narrative:
        return not _PLAIN_ORDER.match(found)
    return found.lower().startswith("no ") and not is_imperative(sentence)


def _orders(sentence: str, starts: Iterable[int]) -> bool:
    return any(_IMPERATIVE.match(sentence, at, at + CLAUSE) for at in starts)


def _is_phrase(sentence: str) -> bool:
    """True for words such as "Two spaces, throughout": short, and without a verb of a statement."""
    if len(sentence) > SENTENCE or len(sentence.split()) > _PHRASE:
        return False
    return len(_FINITE.findall(sentence)) <= 1 and not _STATES.search(sentence)
