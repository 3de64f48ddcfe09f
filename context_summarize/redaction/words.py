"""The table of telling words by language: what a secret is called, what joins name and value, what is no password."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

_TABLE = r"""
en  pass(?:word|wd|phrase|code) _pass(?:word|wd|phrase|code|(?=["']?\s{0,2}[:=])) <pwd <pw <psk <pin(?:~code)? | token
    credentials? _auth secret(?:~access)?(?:~key(?:~base)?)? key(?:~private|~\d{1,2})? | is(?:~now)? was will~be becomes
    ist(?:~jetzt)? war lautet est es era é è | for of on from del du do da der van dell['’]\w+ | this that these your
    their they which what when where from with without into onto under until after before then than never also still
    only just again already always often very quite rather more most less least been have does were could should might
    must will would needs? means? please thanks? here there yesterday tomorrow same | different wrong right good okay
    fine safe unsafe strong weak short shorter empty blank missing mandatory necessary unknown known plain clear case
    user part three some none null true false stale hidden insecure secure sensitive temporary default string text bytes
    integer bool boolean number char varchar object array list type field value input command file path line data self
    void const function return unset read kept lost sent gone made given written shown built left forgotten broken reset
    used being pending expiring working failing n/?a str int any nil about [a-z]{3,}(?:ed|ly|able|ible)
de  (?:pass|kenn)w(?:ort|örter) losungswort passphrase zugangscode | (?:api|zugangs|zugriffs|geheim)~(?:schlüssel|token)
    | ist(?:~jetzt|~nun)? war lautete? heißt heisst wird wäre bleibt | für der des vom von zum zur im am | ein- kein-
    mein- dein- sein- ihr- unser- dies- jen- jed- all- wann warum beim gegen nach ohne seit über unter wegen oder aber
    denn dass weil wenn auch noch jetzt bereits schon immer niemals nicht nichts sehr ganz mehr weniger bitte danke hier
    dort heute gestern morgen | falsch- richtig- korrekt- gültig- ungültig- leer- kurz kürzer länger schwach stark
    sicher unsicher geheim- öffentlich- nötig wichtig erforderlich- pflicht- optional- bekannt- unbekannt- gleich-
    identisch selb- derselb- dasselb- mindestens höchstens teil bestandteil fehler- unverändert weiterhin möglich
    unmöglich sichtbar haben sind wird wurde muss kann darf soll zeichen hinter- (?:ge|ver|be|ent|er)\w{3,}(?:t|en)
    (?:ab|an|auf|aus|ein|her|hinter|um|unter|vor|zu|zurück)ge\w{2,}(?:t|en) zurück- ausreichend standard
fr  mots?~de~passe <mdp phrase~secr[èe]te | (?:clé|cle|clef|jeton|secret)(?:~d['’])?~(?:api|accès) | est(?:~maintenant)?
    était etait sera devient reste | de du des d['’]\w+ pour | l['’]- cette votre notre leur elle nous vous quoi quand
    comment dans sous pour avec sans d['’]- mais donc n['’]- plus moins très trop assez bien encore toujours jamais déjà
    aussi seulement demain merci | même identique obligatoire- requis- nécessaire- incorrect- correct- erroné- faux
    fausse mauvais- bon- valable- expiré- périmé- vide- court- long- faible- fort- sûr- sécurisé- secret- privé- public-
    oublié- perdu- inconnu- connu- défini- stocké- chiffré- haché- modifié- changé- enregistré- protégé- réinitialisé-
    optionnel- facultatif- unique- champ- chaîne- différent- partie temporaire- défaut suffisa- manqua- insuffisa-
    \w{3,}(?:ée?s?|ement)
es  contraseñas? contrasenas? clave~de~acceso frase~secreta palabra~clave |
    (?:clave|token|secreto)(?:~de)?~(?:api|acceso) | es(?:~ahora)? era será sera fue queda | de del para | unos este
    esta quien cuando donde como ante desde hasta para pero porque menos siempre nunca también solo sólo aquí ayer
    mañana gracias | mism- igual idéntic- distint- diferent- obligatori- necesari- incorrect- correct- erróne- inválid-
    válid- creado vací- corto corta largo larga débil- fuerte segur- insegur- públic- únic- campo- cadena- insuficient-
    parte temporal \w{4,}(?:ad|id)[oa]s? \w{3,}mente está- demasiado
pt  senhas? palavras?~passe frase~secreta | (?:chave|token|segredo)(?:~d[ea])?~(?:api|acesso) | é(?:~agora)? era será
    sera foi fica | de do da dos das para | esse essa minha nosso quem quando onde pelo pela muito ainda sempre também
    aqui hoje ontem amanhã obrigado | mesm- idêntic- diferente- obrigatóri- necessári- incorret- corret- errad- vazi[ao]
    curt[ao] long[ao] frac[ao] fort- campo- cadeia- temporári- expirou \w{4,}(?:ad|id)[oa]s?
it  parol[ae]~d['’]ordine parol[ae]~d['’]accesso | (?:chiave|token|segreto)(?:~d[i'’])?~(?:api|accesso) | è(?:~ora)? era
    sarà sara fu diventa resta | di del della dello dell['’]\w+ per | l['’]- un['’]- questo questa nostro dove come
    nella nello nell['’]- senza della dell['’]- dalla sulla perché molto meno così ancora anche oggi ieri domani grazie
    | stess- ugual- identic- divers[oa] obbligatori- necessari- errat- corrett- scorrett- valid- invalid- vuot- cort[oa]
    lung[oa] debol- fort- sicur- insicur- segret- pubblic[oa] nota stringa- facoltativ- unic[oa] temporane- stat[oa]
    richiest- pers[oa] \w{4,}(?:at|it|ut)[oaie]
nl  wachtwoord(?:en)? toegangscode wachtzin | (?:api|toegangs)~(?:sleutel|token) | is(?:~nu)? was wordt werd luidt
    blijft | van voor op | deze mijn jouw zijn haar onze wanneer waar zonder voor naar door over onder maar want niet
    geen nooit altijd heel zeer meer minder daar vandaag gisteren dank bedankt | hetzelfde dezelfde gelijk anders
    verplicht- vereist- nodig noodzakelijk onjuist- juist- fout- verkeerd- ongeldig- geldig- leeg kort- lang- zwak-
    sterk- veilig- onveilig- openbaar onbekend optioneel veld- teken- minstens uniek deel tijdelijk standaard goed
    slecht moet (?:ge|ver|be|ont|her)\w{3,}(?:d|t|en) (?:aan|af|door|in|om|op|over|uit|voor)ge\w{2,}(?:d|t|en)
pl  has[łl](?:o|em|a) kod~dostępu | (?:klucz|token|sekret)(?:~do)?~(?:api|dostępu) | to(?:~teraz)? jest było brzmi
    będzie | do dla od na | tego moje twoje nasze swoje jego kiedy gdzie jeśli przed przez oraz albo więc nigdy zawsze
    jeszcze także tylko bardzo zbyt więcej mniej teraz tutaj dziś wczoraj jutro proszę dziękuję | tak- sam- inn-
    wymagan- obowiązk- koniecz- potrzebn- nieprawidł- prawidł- niepopraw- popraw- błędn- zł[eya] nieważn- ważn- wygas-
    pust- krótk- dług- słab- siln- bezpiecz- niebezp- tajn- prywat- zapomn- zgubi- nieznan- znan- ustawi- zapisa-
    zmieni- pole znak- ciąg- opcjon- unikal- część tymczas- domyśln- przynajmniej co~najmniej
    \w{4,}(?:an[aey]|ion[aey]|ało)
ru  парол(?:ь|я|ем|и) кодов\w\w~слово | (?:ключ|токен|секрет)(?:~от|~для)?~(?:api|доступа) api~(?:ключ|токен) |
    (?:теперь~)?это был будет является есть | от для к на из | этот твой свой когда если никогда всегда тоже также
    только лишь очень слишком более менее больше меньше сейчас теперь здесь сегодня вчера завтра пожалуйста спасибо |
    так- самый самая другой обязат- нужн- необход- неверн- верн- неправ- правиль- ошибоч- недейств- действ- истёк истек-
    просроч- пуст- коротк- длин- слаб- силь- надёж- надеж- безопас- небезоп- секрет- тайн- открыт- забыт- утерян-
    неизвест- извест- задан- измен- измён- сохран- хранит- храним- зашифр- указан- требу- поле символ- строк- необяз-
    уникал- часть времен- минимум был- будет может стандарт- \w{3,}(?:ован|ено|ана|ен)
zh  密码 密碼 口令 通行码 通关密语 | (?:api|访问|存取|安全|app)~(?:密钥|密鑰|金鑰|令牌|秘钥) (?:密钥|密鑰|金鑰|令牌) |
    (?:现在|現在|就)?是 应?[为為] 叫 设为 改为 改成 | 的 |  | 必 不 错 錯 正确 正確 过期 過期 效 空 太 加密 明文 存 位
    字符 未 已 没 沒 请 請 需要 可 强 弱 同 一样 一樣 由 在 什 多少 字段 输入 輸入 忘 安全 用 随机 隨機 唯一 重要 哈希
    设 設 字母 数字
ja  パスワード パスコード パスフレーズ 暗証番号 合言葉 | (?:api|アクセス|シークレット)~(?:キー|トークン|鍵)
    (?:シークレット|秘密鍵|トークン) | は今? が | の | です でし だ。 だよ | 必須 任意 正し 違 誤 効 期限 空 短 長 暗号
    ハッシュ 平文 保存 設定 入力 変更 忘 文字 以 ありま ない なし ません 必要 同じ 強 弱 安全 項目 不要 昨日 今日 ログ
    金庫 表示 ください され 自動 初期 既定
ko  비밀번호 암호 패스워드 비번 패스프레이즈 | (?:api|접근|액세스|비밀)~(?:키|토큰|열쇠) (?:시크릿|토큰) |
    [는은](?:~지금)? 가 이 | 의 | 입니다 이에요 예요 이다 이고 이며 야 | 필수 선택 올바 틀 잘못 만료 유효 무효 비어 빈
    짧 길 암호화 해시 평문 저장 설정 입력 변경 잊 자~ 이상 이하 있습 없 않 같 강 약 안전 항목 필요 로그 금고 표시 세요
    하세 되 어제 오늘 동일 자동 기본 문자 알
"""
"""A language with five things, parted by bars: words for passwords; words for other secrets; what joins a word to its
value; what may stand between (`password for the server is`); words that may follow a password; words that are none,
nor are those. `~` is a blank, a dash or nothing, `<` the beginning of a word, and `-` any ending.
"""
_STEMS = """
passw passp passc _pass pwd pw psk pin token credential _auth secret key kennw losung zugang geheim api mot~d mots~d mdp
phrase clé cle jeton contrase clave frase senha palavra chave segredo parol chiave segreto wachtw toegang hasł hasl
klucz sekret kod~ парол кодов ключ токен секрет 密码 密碼 密钥 密鑰 口令 通行 通关 访问 存取 安全 令牌 金鑰 パス 暗証
合言 アク シー 秘密鍵 トー 비밀 비번 암호 패스 접근 액세스 시크 토큰
"""
"""Each telling word begins with one of these."""
CJK = ("zh", "ja", "ko")
"""Languages that put no blank between words."""


def _any(words: str) -> str:
    """A pattern for one of the words."""
    stems = re.sub(r"-(?=\s|\Z)", r"\\w*", re.sub(r"(?<!\?)<", r"(?<![^\\W\\d_])", words).replace("~", r"[\s_-]?"))
    return f"(?:{'|'.join(stems.split()) or '(?!)'})"


_LANGUAGES = {row[:2]: re.split(r"(?<=\s)\|(?=\s)", row[4:]) for row in re.split(r"\n(?=\w)", _TABLE.strip())}


def _of_all(at: int, cjk: bool) -> str:
    return _any(" ".join(of[at] for name, of in _LANGUAGES.items() if (name in CJK) == cjk))


STEMS = sorted({stem.replace("~", gap) for stem in _STEMS.split() for gap in ("", " ", "_", "-")})
"""A text without these, in lower case, holds no telling word."""
_STEM = re.compile(
    "|".join(f"{first}(?:{'|'.join(s[1:] for s in group)})" for first, group in groupby(STEMS, itemgetter(0)))
)
_TELLING = re.compile(
    "|".join(f"(?P<{name}>(?i:{_any(of[0])}))|(?P<{name}_other>(?i:{_any(of[1])}))" for name, of in _LANGUAGES.items())
)


def telling(text: str) -> Iterator[re.Match[str]]:
    """Words for passwords, in the group of their language, and for other secrets, in one that ends with `_other`."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join(sign.lower()[0] for sign in text)
    for stem in _STEM.finditer(low):
        if word := _TELLING.match(text, stem.start()):
            yield word


_AFTER = r"(?:\s{1,2}%s(?:\s[\w.-]{1,20}){0,3}?)?(?:(?P<sign>%%s)|\s{0,4}(?P<prose>[\u2013\u2014]|%s):?(?:\s{1,4}|%s))"
JOINTS = {
    name: _AFTER % (_any(of[3]), _any(of[2]), r"(?=[!-~\u201c\u300c\u300e])" if name in CJK else r"(?!)")
    for name, of in _LANGUAGES.items()
}
"""What joins a word of each language to its value: a sign, whose pattern is to be filled in, or `is`."""
_FOLLOWING = _of_all(4, cjk=False)
ORDINARY = re.compile(
    rf"(?i)\W*(?:(?:{_FOLLOWING}|{_of_all(5, cjk=False)})(?!\w)|[^\n]{{0,12}}?{_of_all(5, cjk=True)})"
)
"""Matches at a value that is an ordinary word."""
FOLLOWS = re.compile(rf"(?i)\s*(?:\Z|[^\w\s(=+/]|\n|{_of_all(4, cjk=True)})|\s+(?:\w{{1,3}}|{_FOLLOWING})(?!\w)")
"""Matches after a word that stands alone, as a password does, and not before a noun."""
