"""The table of secrets that have a form of their own, or stand where only a secret stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from context_summarize.redaction.words import ORDINARY

Check = Callable[[str], bool]
Rule = Callable[[str], Iterator["Span"]]
"""Finds places of secrets in a text."""

QUOTE = "[\"'`]"
_SHORT = {
    "ALNUM": "[A-Za-z0-9]",
    "BASE64": "[A-Za-z0-9+/]",
    "UUID": r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    # Looks ahead at a token that no word is: a capital, and two numbers with letters between.
    "DRAWN": r"(?=[a-z0-9_-]{0,60}[A-Z])(?=[A-Za-z_-]{0,60}\d[\w-]{0,60}[A-Za-z][\w-]{0,60}\d)",
    "START": "(?<![A-Za-z0-9])",
    "END": r"(?![A-Za-z0-9])",
    "SIGN": r"<QUOTE>?\s{0,4}[:=]\s{0,4}<QUOTE>?",
    "QUOTE": QUOTE,
    "GAP": r"\s{1,8}",
    "OPTION": r"\b[^\n]{0,150}?\s",
    "ARGUMENT": r"""(?P<secret>[^\s"'\\$<-][^\s"'\\]{2,200})""",
}
"""What a name in angle brackets stands for in a pattern; `<WORDS>` stands for one of the words of its row."""

_TOKENS = r"""
age key  any  AGE-SECRET-KEY- AGE-PLUGIN-  <WORDS>(?:PQ-|[A-Z0-9]{1,20}-)?1[0-9A-Z]{40,}+
AWS secret key  any  AKIA ASIA  <WORDS>[A-Z2-7]{16}[\s,:|"']{1,6}(?P<secret><BASE64>{40})(?![+/=])
AWS access key  any  AKIA ASIA ABIA ACCA  <WORDS>[A-Z2-7]{16}
Google API key  any  AIza  AIza[\w-]{35}
Google OAuth secret  any  GOCSPX-  GOCSPX-[\w-]{20,}+
Google OAuth token  any  ya29. 1//0  <WORDS>[\w-]{20,}+
Azure client secret  any  Q~  [\w.~-]{3}\dQ~[\w~-]{31,34}
DigitalOcean token  any  dop_v1_ doo_v1_ dor_v1_  <WORDS>[a-f0-9]{64}
GitHub token  any  ghp_ gho_ ghu_ ghs_ ghr_ github_pat_  <WORDS>(?:\d{1,12}_eyJ[\w.-]{30,}+|\w{30,}+)
GitLab token  any  glpat- glptt- gldt- glrt- glrtr- glcbt- glsoat- glft- glimt- glagent- gloas- glffct- glwt- GR1348941
    <WORDS>(?:t\d_)?[\w-]{19,}+(?:\.[a-z0-9]{2}\.[a-z0-9]{7,12}|\.[a-z0-9]{7,12})?
Bitbucket token  mixed  ATBB BBDC- ATATT3 ATCTT3  <WORDS>[\w+/@=-]{28,}+
npm token  any  npm_  npm_<ALNUM>{36}
PyPI token  mixed  pypi-  pypi-[\w-]{50,}+
Slack token  mixed  xapp- xwfp- xox  x(?:app|wfp)-[\w-]{22,}+|xoxd-[\w%+/=-]{10,}+|xox[a-z](?:\.xox[a-z])?-[\w-]{10,}+
Telegram token  any  :AA  (?:bot)?(?P<secret>\d{8,10}:AA[\w-]{32,34})
Anthropic key  any  sk-ant-  sk-ant-[\w-]{20,}+
OpenAI key  mixed  sk-
    sk-(?:(?:proj|svcacct|admin|None|or-v1|kimi|cp|helicone|litellm)-[\w-]{20,}+|<ALNUM>{20,}+
    |[\w-]{10,200}?T3BlbkFJ[\w-]{10,}+)
Hugging Face token  any  hf_ api_org_  <WORDS><ALNUM>{30,}+
Stripe key  any  sk_live_ rk_live_ sk_test_ rk_test_ sk_org_ rk_org_  <WORDS>(?:live_|test_)?<ALNUM>{16,}+
Stripe key  any  whsec_  whsec_[A-Za-z0-9+/=]{24,}+
Twilio key  any  AC  AC[0-9a-f]{32}[\"', :]{1,6}(?P<secret>[0-9a-f]{32})
Twilio key  any  SK  SK[0-9a-f]{32}
SendGrid key  any  SG.  SG\.[\w-]{16,32}\.[\w-]{30,64}
Mailgun key  any  key-  key-[0-9a-f]{32}
Mailgun key  mixed  -  [0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?!-[0-9a-f])
Shopify token  any  shpat_ shpca_ shppa_ shpss_ shptka_  <WORDS>[a-fA-F0-9]{32}
JWT  any  eyJ  eyJ[\w-]{10,1000}+(?:\.{1,2}[\w-]{8,}+){2,4}|sk\.eyJ[\w-]{20,}+\.[\w-]{20,}+
access token  mixed  gsk_ r8_ fw_ jina_ rpa_ mint_ apify_api_ pplx- xai- csk- vca_ vcc_ vci_ vck_ vcp_ vcr_ nfb_ nfc_
     nfo_ nfp_ nfu_ rnd_ ddpat_ phx_ phs_ pnu_ ntn_ lin_api_ lin_oauth_ lin_wh_ bkct_ bkat_ bkrt_ napi_ unkey_ cnva AKID
     tr_pat_ tr_dev_ tr_prod_ tr_stg_ tr_preview_ retool_01 polar_oat_ polar_pat_ polar_rst_ sbp_ sbp_v0_ sgp_local_
     NRAK- LTAI hcaik_ hcbik_ hcxik_ oy2 cio  <WORDS><ALNUM>{20,}+
access token  mixed  pcsk_ nvapi- tvly- tgp_v bb_live_ wandb_v1_ cfk_ cfut_ cfat_ HRKU- sb_secret_ vercel_blob_rw_ AVNS_
     pscale_tkn_ pscale_pw_ pscale_oauth_ mdb_sa_sk_ dckr_pat_ dckr_oat_ dbtc_ dbtu_ glsa_ figd_ figo_ figu_ figr_
     figdr_ figor_ figur_ tfp_ atkn_ sq0atp- sq0csp- sq0idp- secret-live- secret-test- pdl_live_apikey_ pdl_sdbx_apikey_
     rdme_ zpka_ hvs. hvb. hvr. duffel_live_ duffel_test_ CFPAT- NRII- NRIQ- NRJS- NRBR- fo1_ tskey- AQVN packagist_
     lsv2_pt_ lsv2_sk_ CCIPAT_ CCIPRJ_ pylf_v signkey- PMAK- xkeysib- xsmtpsib- FLWSECK  <WORDS>[\w-]{18,}+={0,2}
access token  mixed  sntrys_ sntryu_ glc_ fm1a_ fm1r_ fm2_ ops_eyJ essu_ sgp_ pdus+_  <WORDS>[\w+/-]{30,}+={0,3}
access token  mixed  AQ.Ab bedrock-api-key- dG9rO y0_ EAAA  <WORDS>[\w+/%-]{40,}+={0,2}
access token  mixed  ABSK EAAM EAAC EAAB RWRTY0Iy AgABAA v1.0-  <WORDS>[\w+/.-]{100,}+={0,2}
access token  mixed  AKCp cmVmd EZAK EZTK  <WORDS><ALNUM>{54,80}
access token  mixed  e2b_ pul- bkua_ sqa_ sqp_ squ_ shippo_live_ shippo_test_ crsr_ dtn_ mlsn. fc- dapi dose cal_
     cal_live_ sk_ rubygems_ CLOJARS_ NRRA- depot_org_ depot_project_ depot_user_ ATTA  <WORDS>[a-fA-F0-9]{32,}+(?:-\d)?
access token  mixed  ctx7sk- sk-lf- access-sandbox- access-development- access-production- sdk- api- pat- st.
    <WORDS>(?:[a-z]{2}\d-)?<UUID>(?:\.[a-f0-9]{32}){0,2}
access token  mixed  pa- ak_ ak- as- BSA s. secret_ secret-  <WORDS><DRAWN>[\w-]{20,43}
access token  mixed  JQQJ99 AZDO AzSe AzFu AzCa AIoT AZEG +AEh +ASb +ARm +ACR ACDb +ABa +AMC +ASt
    (?:<BASE64>{33}|<BASE64>{42}|[\w-]{44}|<BASE64>{52}|<BASE64>{76})<WORDS>[\w+/-]{4,26}={0,2}
access token  mixed  dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.  <WORDS>(?:[\w-]{1,35}\.)?<ALNUM>{40,}+
access token  mixed  t1.  t1\.[\w-]{20,}+={0,2}\.[\w-]{86}={0,2}
access token  mixed  ::  K10[a-f0-9]{64}::[a-z]{3,10}:[\w-]{16,}+
access token  mixed  .atlasv1.  <ALNUM>{14}\.atlasv1\.[\w-]{60,}+
access token  mixed  A3-  A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}
access token  mixed  dt0  dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}
access token  mixed  prod: dev: preview:  <WORDS>[a-z]{2,20}-[a-z]{2,20}-\d{1,4}\|[A-Za-z0-9+/=]{40,}+
access token  mixed  0/1 1/1 2/1  [012]/\d{13,19}(?:/\d{13,19})?:[a-f0-9]{32}
access token  mixed  00D  00D<ALNUM>{9,15}![\w.]{80,}+
access token  mixed  sl.  sl\.(?:u\.)?[\w-]{120,}+={0,2}
access token  mixed  pk_  pk_\d{5,12}_[A-Z0-9]{32}
access token  mixed  re_  re_<ALNUM>{8}_<ALNUM>{24}
access token  mixed  APP_USR- TEST-  <WORDS>\d{10,20}-\d{6}-[a-f0-9]{32}-\d{5,12}
access token  mixed  WPL_AP1.  WPL_AP1\.<ALNUM>{16}\.[A-Za-z0-9+/=]{6,8}
access token  mixed  oauth:  oauth:[a-z0-9]{30}
access token  mixed  access_token$  access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}
access token  mixed  rzp_live_ rzp_test_ npg_  <WORDS><ALNUM>{12,}+
access token  mixed  -us NRAL .  [a-f0-9]{32}(?:-us\d{1,2}|[a-f0-9]{4}NRAL|\.(?=[A-Za-z]{0,15}\d)<ALNUM>{16})
access token  mixed  pat  pat<ALNUM>{14}\.[a-f0-9]{64}
Discord token  any  .  (?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){5,6}[\w-]{0,4}\.[\w-]{6,7}\.[\w-]{27,45}
"""
"""Tokens: kind, check, words, pattern, with two blanks between. A line that begins with blanks goes on with the last.

Every match contains one of the words, and stands between `<START>` and `<END>`.
"""

PLACED = r"""
AWS secret key  mixed  secret
    (?i:secret[_ -]?(?:access[_ -]?)?key)[^A-Za-z0-9/+\n]{1,12}(?P<secret><BASE64>{40})(?![A-Za-z0-9/+=])
Azure storage key  any  accountkey
    (?i:AccountKey)<SIGN>(?P<secret><BASE64>{40,}+={0,2})
Azure SAS signature  any  sig=  (?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/_-]{40,}+={0,2})
signature  any  signature= code=
    (?<=[?&;])(?:(?:X-(?:Amz|Goog)-)?Signature|code)=(?P<secret>[A-Za-z0-9%+/_~-]{52,}+={0,2})
Slack webhook  any  hooks.slack  hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/+-]{20,}+)
webhook  any  webhook.office.com hooks.zapier.com  <WORDS>/(?:hooks/catch/)?(?P<secret>[\w/@-]{10,}+)
Discord webhook  any  /webhooks/  discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/(?P<secret>[\w-]{30,}+)
password  real  ://  ://[^\s:/@?#"'<>\\]{0,128}:(?P<secret>[^\s/?#"'<>\\]{1,256})@(?=[\w.\[-])
access token  drawn  ://  ://(?P<secret>[A-Za-z0-9_.~-]{20,}+)@(?=[\w.\[-])
access token  drawn  alchemy.com infura.io appid=
    (?:\.g\.alchemy\.com/v2/|infura\.io/v3/|[?&]appid=)(?P<secret>[\w-]{24,}+)
authorization  password  bearer  <START>(?i:bearer<GAP>)<QUOTE>?(?P<secret>[\w.~+/-]{16,}+={0,3})
authorization  real  authorization
    (?i:authorization)<SIGN>(?i:basic|token|digest|apikey)\s{1,4}(?P<secret>[\w.~+/-]{8,}+={0,3})
authorization  password  authorization  (?i:authorization)<SIGN>(?i:bearer)\s{1,4}(?P<secret>[\w.~+/-]{6,}+={0,3})
authorization  drawn  authorization  (?i:authorization)<SIGN>[A-Za-z][\w-]{1,24}\s{1,4}(?P<secret>[\w.~+/=-]{20,}+)
registry login  password  auth  <QUOTE>auth<QUOTE>\s{0,4}:\s{0,4}<QUOTE>(?P<secret><BASE64>{12,}+={0,2})<QUOTE>
password hash  any  $1$ $apr1$ $2 $5$ $6$ $7$ $y$ $gy$ $argon2 $scrypt$
    \$(?:1|apr1|2[abxy]|5|6|7|y|gy|argon2(?:id|i|d)|scrypt)\$(?:v=\d{1,3}\$)?(?:[\w=,-]{1,60}\$)?
    (?:[\w./+=-]{1,40}\$)?[A-Za-z0-9./+]{22,100}+
password  password  variable
    variable\s{1,4}"[\w-]{0,40}(?i:password|passwd|secret|token|key)[\w-]{0,40}"\s{0,4}
    \{[^{}]{0,400}?\bdefault\s{0,8}=\s{0,4}"(?P<secret>[^\s"\\]{6,200}+)
password  real  curl wget http
    <START>(?:curl|https?|wget)<OPTION>(?:-u|--user|-a|--auth)[ =]?<QUOTE>?[^\s:"'<$]{1,64}:<ARGUMENT>
password  password  mysql mariadb  <START>(?:mysql|mariadb)[\w-]{0,12}<OPTION>-p<QUOTE>?<ARGUMENT>
password  real  sshpass redis-cli login
    <START>(?:sshpass|redis-cli|(?:docker|podman|helm|oras|crane|az|npm) (?:\w{1,20} )?login)<OPTION>
    (?:-p|-a|--pass(?!w))[ =]?<QUOTE>?<ARGUMENT>
password  real  password-stdin
    \b(?:echo|printf)\s{1,4}(?:-n\s{1,4})?<QUOTE>?(?P<secret>[^\s"'`\\|$]{6,200}+)<QUOTE>?\s{0,4}
    \|[^\n|]{0,150}?--password-stdin
password  real  pass:  \s-pass(?:in|out)?\s{1,4}<QUOTE>?pass:(?P<secret>[^\s"'\\]{3,200})
password  real  jdbc:oracle  jdbc:oracle:\w{1,10}:[\w$#]{1,60}/(?P<secret>[^\s@"'\\]{3,100})@
password  real  :543 :6543 :26257
    (?m)^[^\s:]{1,100}:(?:543\d|6543|26257):[^\s:]{1,60}:[^\s:]{1,60}:(?P<secret>(?:[^\s:\\]|\\.){3,200})\r?$
password  real  login
    <START>login<GAP>[^\s\\]{1,100}<GAP>(?:account<GAP>[^\s\\]{1,100}<GAP>)?password<GAP>(?P<secret>[^\s\\"']{3,200}+)
password  chosen  requirepass masterauth identified
    <START>(?i:requirepass|masterauth|identified\s{1,4}by(?=\s{1,4}<QUOTE>))\s{1,4}<QUOTE>?
    (?P<secret>(?<=["'])[^"'\n]{3,200}+|(?<=\s)[^\s"'#]{3,200}+)
password  chosen  password passwd pwd passwort
    \b(?i:value)<SIGN>(?P<secret>[^\s"'<>,]{3,200})<QUOTE>?[\s,]{1,40}<QUOTE>?(?i:name|key)<SIGN>
    [\w.-]{0,60}?(?i:password|passwd|pwd|passwort)["'\s]
TOTP seed  mixed  totp 2fa mfa authenticator
    <START>(?i:totp|2fa|mfa|authenticator)(?![A-Za-z0-9])[^\n]{0,60}?<START>
    (?P<secret>(?i:[A-Z2-7]{16,128}+={0,6}|(?:[A-Z2-7]{4}[ -]){3,31}[A-Z2-7]{4}))<END>
seed phrase  any  seed mnemonic recovery
    (?i:seed|mnemonic|recovery)[ _-]?(?i:phrase|words)?(?:<SIGN>|\sis\s|\s)<QUOTE>?
    (?P<secret>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b
cookie  drawn  cookie curl phpsessid jsessionid connect.sid _session= sessionid=
    (?:(?i:cookies?|(?<=\s)-b)["']{0,2}\s{0,3}[:=]?\s{0,3}["']?[\w.-]{1,60}=|(?<=;)\s{0,3}[\w.-]{1,60}=
    |(?<![A-Za-z0-9])(?i:connect\.sid|phpsessid|jsessionid|asp\.net_sessionid|[a-z]{1,20}_session|sessionid)=)
    "?(?P<secret>[^\s;,"'\\]{16,4096}+)
"""
"""What stands where only a secret stands: the same columns, and patterns as they are. The words have small letters."""


@dataclass(frozen=True, slots=True)
class Span:
    """One secret: `text[first:end]`."""

    first: int
    end: int
    kind: str


def _mark(span: Span) -> str:
    return f"[redacted: {span.kind}]"


def replaced(text: str, spans: Sequence[Span], by: Callable[[Span], str] = _mark) -> str:
    """The text with its mark in place of each span; the spans are in order and do not overlap."""
    out, at = [], 0
    for span in spans:
        out += [text[at : span.first], by(span)]
        at = span.end
    return "".join([*out, text[at:]])


def is_mixed(value: str) -> bool:
    """True if the value has both letters and digits, which prose and names seldom have."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def turns(value: str) -> int:
    """How often a letter and a digit follow each other."""
    return len(re.findall(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])", value))


def is_drawn(value: str) -> bool:
    """True if letters and digits take turns at least twice, as drawn characters do and no name does."""
    return turns(value) > 1


_NOT_REAL = re.compile(
    r"(?is)\A(?:[*x.•#_-]+|<.*|\$[a-z_{(].*|[%{\[].*"
    r"|none|null|nil|true|false|undefined|password|passwd|pass|pwd|secret|token)\Z"
    r"|\$\{|\{\{|example|placeholder|change[_-]?me|(?<![a-z])your(?![a-z])|your[_-]|xxxx|dummy|redacted"
)


def is_real(value: str) -> bool:
    """True if the value is no placeholder, and does not say that it is an example."""
    return _NOT_REAL.search(value) is None


CHECKS: dict[str, Check] = {
    "any": bool,
    "mixed": is_mixed,
    "drawn": lambda value: is_drawn(value) and is_real(value),
    "real": is_real,
    "password": lambda value: is_mixed(value) and is_real(value),
    "chosen": lambda value: is_real(value.strip("\"'`")) and not ORDINARY.match(value),
}
"""By their names in the tables."""


def _rule(kind: str, check: Check, pattern: re.Pattern[str]) -> Rule:
    """Finds one form. The group `secret` is replaced, or the whole match if there is no such group."""
    group = "secret" if "secret" in pattern.groupindex else 0

    def places(text: str) -> Iterator[Span]:
        return (Span(*found.span(group), kind) for found in pattern.finditer(text) if check(found[group]))

    return places


def _search_for(words: list[str]) -> re.Pattern[str]:
    """One search for all words, the longest first, by their first two characters: few places begin as one of them."""
    firsts = ((first, sorted(group, reverse=True)) for first, group in groupby(words, key=itemgetter(0)))
    tries = (f"{re.escape(first)}(?:{'|'.join(re.escape(word[1:]) for word in group)})" for first, group in firsts)
    shown = range(min(2, *map(len, words)))
    begin = "".join(f"[{''.join(map(re.escape, {word[at] for word in words}))}]" for at in shown)
    return re.compile(f"(?={begin})(?=({'|'.join(tries)}))")


class Table:
    """Rules, each with words of which every match holds one: a text without them is not searched for it.

    Args:
        rows: the rows of the table: kind, check, words, pattern.
        form: what stands around each pattern.
        more: words and rule of what is no pattern; it comes last.
    """

    def __init__(self, rows: str, form: str, *more: tuple[Iterable[str], Rule]) -> None:
        self._rules: list[tuple[frozenset[str], Rule]] = []
        for row in re.sub(r"\n {4}(?! )", "  ", rows).replace("\n     ", " ").strip().splitlines():
            kind, check, named, *pattern = row.split("  ")
            full = form.format("".join(pattern)).replace("<WORDS>", f"(?:{'|'.join(map(re.escape, named.split()))})")
            for name, meaning in _SHORT.items():
                full = full.replace(f"<{name}>", f"(?:{meaning})")
            self._rules.append((frozenset(named.split()), _rule(kind, CHECKS[check], re.compile(full))))
        self._rules += [(frozenset(words), rule) for words, rule in more]
        every = sorted({word for words, _ in self._rules for word in words})
        self._within = {word: {part for part in every if word.startswith(part)} for word in every}
        ascii_words = [word for word in every if word.isascii()]
        self._words = {True: _search_for(ascii_words), False: _search_for(every)}

    def rules(self, text: str) -> list[Rule]:
        """The rules that may find something in the text, in their order."""
        if not (found := set(self._words[text.isascii()].findall(text))):
            return []
        held = set().union(*(self._within[word] for word in found))
        return [rule for words, rule in self._rules if not words.isdisjoint(held)]


TOKENS = Table(_TOKENS, "<START>(?:{})<END>")
"""Each stands in a run of at least `SHORTEST` characters without a blank."""
SHORTEST = 16
