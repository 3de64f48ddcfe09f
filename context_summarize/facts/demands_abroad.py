"""How users ask for something that lasts in German, French, Spanish and Portuguese. Pure."""

from __future__ import annotations

import re

_ABROAD = re.compile(
    "(?i)"
    # German
    r"(?<!\w)(?:ab (?:jetzt|sofort|nun|heute)\b|von (?:jetzt|nun|hier) an\b|(?:zu)?künftig\b|in zukunft\b|fortan\b|"
    r"bis auf weiteres\b|für den rest (?:des|der|dieses|dieser|unseres)\b|auf (?:gar )?keinen fall\b|"
    r"unter keinen umständen\b|mir wäre (?:es )?lieber\b|es ist (?:mir )?(?:sehr )?wichtig, dass\b|"
    r"bitte\b[^.]{0,80}\b(?:immer|stets|nie|niemals|keine?n?|nur noch|nicht (?:mehr)?|ohne)\b|"
    r"hör(?:en sie)? (?:bitte )?auf\b|"
    r"(?:du|sie) (?:sollst|solltest|sollen|sollten|darfst|dürfen|müssen|musst)\b[^.]{0,80}\b(?:immer|nie|niemals|"
    r"keine?n?|nicht|"
    r"nur|jede\w*|alle\w*)\b|ich (?:möchte|will|hätte gern|wünsche mir|erwarte|bevorzuge|mag)\b[^.]{0,80}\b(?:immer|"
    r"nie|niemals|"
    r"keine?n?|nicht|jede\w*|alle\w*|dass du|dass sie|lieber)\b|achte(?:n sie)? (?:bitte )?darauf\b|"
    r"stell(?:e|en sie)? (?:bitte )?sicher\b|denk(?:e|en sie)? (?:bitte )?(?:immer )?daran\b|"
    r"lass uns (?:bei|nur)\b"
    # French
    r"|dorénavant\b|désormais\b|à partir de maintenant\b|à l'avenir\b|jusqu'à nouvel ordre\b|pour le reste de\b|"
    r"je (?:préfère|préférerais|voudrais que|veux que|souhaite que|n'aime pas|ne veux (?:pas|plus|jamais) que)\b|"
    r"(?:tu|vous) (?:ne )?(?:dois|devez|devrais|devriez)\b[^.]{0,60}\b(?:toujours|jamais|pas|plus|chaque)\b|"
    r"il est (?:important|essentiel) (?:que|de)\b|assure-toi\b|assurez-vous\b|veille[zs]? à\b|n'oublie[zs]? (?:pas|"
    r"jamais)\b|"
    r"arrête[zs]? d(?:e |')|en aucun cas\b|sous aucun prétexte\b"
    # Spanish
    r"|a partir de ahora\b|de ahora en adelante\b|en adelante\b|hasta nuevo aviso\b|(?:durante|por) el resto de\b|"
    r"prefiero\b|preferiría que\b|quiero que\b[^.]{0,80}\b(?:siempre|nunca|cada|tod[oa]s|no)\b|me gustaría que\b|"
    r"no me gustan?\b|"
    r"(?:no )?(?:debes|debe|tienes que)\b[^.]{0,60}\b(?:siempre|nunca|jamás)\b|no (?:debes|debe)\b|es importante que\b|"
    r"asegúrate\b|asegúrese\b|bajo ninguna circunstancia\b|deja de \w+[aei]r\b"
    # Portuguese
    r"|a partir de agora\b|de agora em diante\b|daqui (?:em|pra|para a?) (?:diante|frente)\b|até segunda ordem\b|"
    r"prefiro\b|(?:preferia|preferiria) que\b|quero que\b[^.]{0,80}\b(?:sempre|nunca|cada|tod[oa]s|não)\b|"
    r"gostaria que\b|"
    r"não gosto d[eaoq]|(?:você |não )deve\b|é importante que\b|certifique-se\b|sob nenhuma circunstância\b|"
    r"em hipótese alguma\b|par[ea] de \w+[aei]r\b)"
)
_STARTS = re.compile(
    r"(?i)\W*(?:(?:bitte|und|aber|also|s'il te plaît|s'il vous plaît|por favor|merci|et|mais|y|pero|e|mas)\W+){0,3}(?:"
    # German
    r"(?:immer|stets|niemals|nie|keine?|nur noch)\s+(?!mal\b|problem|ahnung|sorge)\w|"
    r"(?:antworte|schreib|schreibe|verwende|benutze?|nutze|nimm|halte?|vermeide|frage?|lass|sprich|nenne?|merke?|gib|"
    r"zeige?|"
    r"fasse?|lösche?|ändere?|rühr|erkläre?|übersetze?|(?:antworten|schreiben|verwenden|benutzen|nutzen|vermeiden|"
    r"fragen|"
    r"sprechen) sie)\b[^.]{0,90}\b(?:immer|stets|nie|niemals|keine?n?|nicht|nur|jede\w*|alle\w*|bevor|vorher|ohne|"
    r"statt|"
    r"überall|auf (?:deutsch|englisch|französisch|spanisch)|mich|kurz)\b|vermeide\b"
    # French
    r"|(?:toujours|jamais)\s+\w|(?:ne (?:me )?|n')\w+(?:-\w+)? (?:pas|jamais|plus|rien|aucune?)\b|plus (?:de |d'|"
    r"aucune? )\w|"
    r"(?:réponds|répondez|utilise[zs]?|écris|écrivez|garde[zs]?|parle[zs]?|demande[zs]?|vérifie[zs]?|laisse[zs]?|"
    r"donne[zs]?|"
    r"cite[zs]?|mets|mettez|pense[zs]?)(?:-\w+)?\b[^.]{0,90}\b(?:toujours|jamais|en français|en anglais|en allemand|"
    r"avant|sans|"
    r"uniquement|seulement|chaque|tous|toutes|partout)\b|évite[zs]?\b|appelle[zs]?-moi\b"
    # Spanish
    r"|(?:siempre|nunca|jamás)\s+\w|no (?:uses|utilices|hagas|borres|toques|cambies|escribas|pongas|digas|envíes|"
    r"mandes|olvides|"
    r"vuelvas|me (?:llames|envíes|mandes|digas)|lo|la|te)\b|"
    r"(?:responde|respóndeme|usa|utiliza|escribe|mantén|habla|pregunta|pregúntame|recuerda|cita|pon|da|"
    r"dame)\b[^.]{0,90}\b"
    r"(?:siempre|nunca|en español|en inglés|en alemán|antes|sin|sólo|solo|únicamente|solamente|cada|todos|todas)\b|"
    r"evita\b|"
    r"llámame\b"
    # Portuguese
    r"|(?:sempre|jamais)\s+\w|não (?!sei|tenho|quero|posso|consigo|foi|é|está|me lembro|entend|há|tem|era|vi|fiz|"
    r"sou)\w+|"
    r"(?:responda|responde|use|usa|escreva|escreve|mantenha|fale|fala|pergunte|pergunta|lembre-se|cite|coloque|"
    r"dê)\b[^.]{0,90}\b"
    r"(?:sempre|nunca|em português|em inglês|antes|sem|somente|apenas|cada|todos|todas)\b|evite\b|"
    r"(?:me )?chame(?:-me)?\b)"
)


def demanded_abroad(sentence: str) -> int | None:
    """Position of the words by which a sentence of one of these languages asks for something that lasts; else None."""
    found = _STARTS.match(sentence)
    if found is None:
        found = _ABROAD.search(sentence)
    return None if found is None else found.start()
