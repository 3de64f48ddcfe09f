"""Made-up secrets of every known format, drawn at run time from parts, so that no scanner finds one in the source."""

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass

from context_summarize.redaction import build_redactor

_ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "B": string.ascii_uppercase + "234567",
    "x": "0123456789abcdef",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
}
_DRAWN = re.compile(r"\{([AaUBxdwb])(\d+)\}")


@dataclass(frozen=True)
class Template:
    """One format: literal pieces between bars, and `{A36}` for 36 drawn characters of an alphabet."""

    kind: str
    form: str


@dataclass(frozen=True)
class Made:
    """A made-up secret."""

    kind: str
    value: str


def _run(alphabet: str, length: int, drawn: random.Random) -> str:
    """Drawn characters with at least one digit and, where the alphabet has letters, one letter; letters at the ends."""
    chars = [drawn.choice(_ALPHABETS[alphabet]) for _ in range(length)]
    letters = [char for char in _ALPHABETS[alphabet] if char.isalpha()]
    if letters:
        chars[0] = chars[-1] = drawn.choice(letters)
    if length > 2:
        chars[1] = drawn.choice("234567")
    return "".join(chars)


def make(template: Template, drawn: random.Random) -> Made:
    """A secret of this format."""
    value = _DRAWN.sub(lambda m: _run(m[1], int(m[2]), drawn), template.form).replace("|", "")
    return Made(template.kind, value)


_UUID = "{x8}-{x4}-{x4}-{x4}-{x12}"
_FORMS = f"""
age key: AGE-SECRET|-KEY-1{{U58}}
AWS access key: AK|IA{{B16}}
AWS access key: AS|IA{{B16}}
Google API key: AI|za{{w35}}
Google OAuth secret: GOC|SPX-{{w28}}
Google OAuth token: ya2|9.{{w60}}
Azure client secret: {{A3}}8|Q~{{A34}}
DigitalOcean token: do|p_v1_{{x64}}
GitHub token: gh|p_{{A36}}
GitHub token: gh|s_{{A36}}
GitHub token: gh|s_123456_ey|J{{w40}}.{{w60}}.{{w40}}
GitHub token: github|_pat_{{A22}}_{{A59}}
GitLab token: gl|pat-{{w20}}
GitLab token: gl|pat-{{w27}}.01.{{a9}}
GitLab token: gl|dt-{{w20}}
GitLab token: gl|rt-t1_{{w27}}
GitLab token: gl|cbt-{{w20}}
GitLab token: gl|wt-{{w20}}
Bitbucket token: AT|BB{{A32}}
Bitbucket token: AT|ATT3{{A60}}={{U8}}
npm token: np|m_{{A36}}
PyPI token: py|pi-AgEIcHlwaS5vcmc{{w80}}
Slack token: xo|xb-123456789012-123456789012-{{A24}}
Slack token: xa|pp-1-A0123456789-1234567890123-{{x64}}
JWT: ey|JhbGciOiJIUzI1NiJ9.ey|J{{w30}}.{{w43}}
Anthropic key: sk|-ant-api03-{{w95}}
OpenAI key: sk|-proj-{{w80}}
OpenAI key: sk|-{{A48}}
OpenAI key: sk|-or-v1-{{x64}}
Hugging Face token: h|f_{{A34}}
Stripe key: sk_|live_{{A24}}
Stripe key: wh|sec_{{A32}}
SendGrid key: S|G.{{w22}}.{{w43}}
Twilio key: S|K{{x32}}
Mailgun key: ke|y-{{x32}}
Mailgun key: {{x32}}|-{{x8}}-{{x8}}
Shopify token: shp|at_{{x32}}
Telegram token: 123456789|:AA{{w33}}
access token: gs|k_{{A52}}
access token: r|8_{{A37}}
access token: f|w_{{A24}}
access token: jin|a_{{A60}}
access token: pc|sk_{{A60}}
access token: rp|a_{{U42}}
access token: ppl|x-{{A48}}
access token: xa|i-{{A80}}
access token: cs|k-{{a48}}
access token: nv|api-{{w64}}
access token: lsv|2_pt_{{x32}}_{{x10}}
access token: tv|ly-dev-{{A32}}
access token: tg|p_v1_{{w43}}
access token: e2|b_{{x40}}
access token: f|c-{{x32}}
access token: ctx|7sk-{_UUID}
access token: bb_|live_{{w26}}
access token: api|fy_api_{{A36}}
access token: wan|db_v1_{{A77}}
access token: cr|sr_{{x64}}
access token: sk|-lf-{_UUID}
access token: AB|SK{{A120}}
access token: A|Q.Ab{{w48}}
access token: s|k_{{x48}}
access token: cf|ut_{{A40}}{{x8}}
access token: v1|.0-{{x24}}-{{x146}}
access token: LT|AI{{A20}}
access token: sb|p_{{x40}}
access token: sb|p_v0_{{x40}}
access token: sb_|secret_{{w31}}
access token: vc|p_{{A32}}
access token: vc|k_{{A56}}
access token: vercel|_blob_rw_{{A16}}_{{A32}}
access token: ts|key-auth-{{A12}}CNTRL-{{A32}}
access token: na|pi_{{a64}}
access token: psc|ale_tkn_{{w43}}
access token: AV|NS_{{w19}}
access token: mdb_|sa_sk_{{w40}}
access token: nf|p_{{A36}}
access token: rn|d_{{A28}}
access token: fo|1_{{w43}}
access token: fm|2_{{b120}}
access token: pu|l-{{x40}}
access token: da|pi{{x32}}-2
access token: {{A14}}.at|lasv1.{{w67}}
access token: hv|s.{{w90}}
access token: ops|_ey|J{{A250}}
access token: A3|-{{U6}}-{{U11}}-{{U5}}-{{U5}}-{{U5}}
access token: dp|.pt.{{A43}}
access token: dckr|_pat_{{w27}}
access token: oy|2{{a43}}
access token: ci|o{{A32}}
access token: ruby|gems_{{x48}}
access token: AK|Cp{{A69}}
access token: cmV|md{{A59}}
access token: bk|ua_{{x40}}
access token: CCI|PAT_{{A22}}_{{x40}}
access token: sq|p_{{x40}}
access token: sg|p_{{x40}}
access token: gl|sa_{{A32}}_{{x8}}
access token: gl|c_{{A60}}
access token: snt|rys_{{A60}}
access token: NR|AK-{{U27}}
access token: dt0|c01.{{U24}}.{{U64}}
access token: ph|x_{{A43}}
access token: pn|u_{{a36}}
access token: {{A52}}JQ|QJ99{{A26}}
access token: {{A76}}AZ|DO{{A4}}
access token: {{b76}}+A|St{{A6}}==
access token: fig|d_{{w40}}
access token: nt|n_{{A46}}
access token: lin|_api_{{A40}}
access token: pa|t{{A14}}.{{x64}}
access token: pa|t-na1-{_UUID}
access token: CF|PAT-{{w43}}
access token: tf|p_{{w44}}
access token: PM|AK-{{x24}}-{{x34}}
access token: sq|0atp-{{w22}}
access token: EA|AA{{w60}}
access token: xk|eysib-{{x64}}-{{A16}}
access token: {{x32}}-u|s12
access token: ml|sn.{{x64}}
access token: r|e_{{A8}}_{{A24}}
access token: s|k.ey|J{{w60}}.{{w22}}
access token: EZ|AK{{A54}}
access token: ship|po_live_{{x40}}
access token: duf|fel_live_{{w43}}
access token: po|lar_oat_{{A43}}
access token: access|-production-{_UUID}
access token: sd|k-{_UUID}
age key: AGE-SECRET|-KEY-PQ-1{{U58}}
GitHub token: gh|u_{{A36}}
GitHub token: gh|r_{{A76}}
GitLab token: gl|rtr-{{w20}}
GitLab token: gl|oas-{{x64}}
GitLab token: gl|agent-{{w50}}
Slack token: xo|xe.xo|xp-1-{{A146}}
Slack token: xo|xd-{{A40}}%2B{{A40}}%3D
Slack token: xw|fp-{{A24}}-{{A24}}
Stripe key: rk|_live_{{A99}}
Stripe key: sk|_org_live_{{A60}}
JWT: ey|JhbGciOiJkaXIifQ..{{w16}}.{{w60}}.{{w22}}
OpenAI key: sk|-svcacct-{{w70}}T3Blbk|FJ{{w70}}
access token: sk|-service-{{w70}}T3Blbk|FJ{{w70}}
Anthropic key: sk|-ant-admin01-{{w93}}AA
password hash: $2b$12${{A53}}
password hash: $6${{A16}}${{A86}}
access token: p|a-{{w43}}
access token: dt|n_{{x64}}
access token: BS|A{{w28}}
access token: {{x32}}.{{A16}}
access token: unk|ey_{{A22}}
access token: py|lf_v1_us_{{A43}}
access token: AKI|D{{A32}}
access token: AQ|VN{{w35}}
access token: y0|_{{w55}}
access token: t1|.{{w100}}.{{w86}}
access token: HR|KU-AA{{w58}}
access token: np|g_{{A12}}
access token: st|.{_UUID}.{{x32}}.{{x32}}
access token: K1|0{{x64}}::server:{{x32}}
access token: CLO|JARS_{{x60}}
access token: db|tc_{{A43}}==
access token: bk|ct_{{A40}}
access token: NR|IQ-{{w32}}
access token: {{x36}}NR|AL
access token: dd|pat_{{A40}}
access token: pdu|s+_0XBPWQQ_{{U8}}-{_UUID}
access token: hc|aik_{{a58}}
access token: sign|key-prod-{{x64}}
access token: tr|_prod_{{A20}}
access token: {{w44}}AzF|u{{w6}}==
access token: {{A33}}Az|CaA{{A5}}=
access token: {{A42}}+AC|RA{{A5}}
access token: {{A76}}AC|Db{{A6}}==
access token: lin|_wh_{{A40}}
access token: sq0|idp-{{w22}}
access token: cn|va{{A40}}
access token: 1/12345678|90123456:{{x32}}
access token: 0|0D{{A12}}!{{A96}}
access token: s|l.u.{{w130}}
access token: ret|ool_01{{a26}}
access token: c|al_live_{{x32}}
access token: at|kn_{{w40}}
access token: sec|ret-live-{{w48}}
access token: FLW|SECK-{{x32}}-X
access token: APP|_USR-1234567890123456-010203-{{x32}}-123456789
access token: rz|p_live_{{A14}}
access token: WPL|_AP1.{{A16}}.{{A8}}
access token: oau|th:{{a30}}
access token: dG|9rO{{A55}}=
"""

TEMPLATES = tuple(Template(*line.split(": ", 1)) for line in _FORMS.strip().splitlines())


def key_block(drawn: random.Random, lines: int = 6, name: str = "RSA ") -> list[str]:
    """The lines of a private key; the last line of its body is short."""
    body = [_run("b", 64, drawn) for _ in range(lines)]
    edge = f"{name}PRIV" + "ATE KEY-----"
    return [f"-----BEGIN {edge}", *body, _run("b", 22, drawn) + "==", f"-----END {edge}"]


def known(text: str) -> str:
    """The text without secrets of known formats."""
    redact = build_redactor(True)
    assert redact is not None
    return redact(text)
