"""Tokens of services that begin with a prefix of their own, and what may stand before and after a token."""

from __future__ import annotations

# A row may be JSON. There `\n` before a token is two characters, and the second one is a letter.
_ESCAPED = r"(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})"
START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED})"
WORD_START = rf"(?:(?<!\w)(?<![\w-]-)|(?<=\\[nrt]-)|{_ESCAPED})"
"""The start of a word; one dash before it may be the mark of a diff or of a list."""
END = r"(?![A-Za-z0-9])"
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"

_ACCESS = (
    # Models, search and agents.
    ("gsk_ r8_ fw_ jina_ pcsk_ rpa_", r"(?:gsk|r8|fw|jina|pcsk|rpa)_[A-Za-z0-9_]{22,}+"),
    ("pplx- xai- csk-", r"(?:pplx|xai|csk)-[A-Za-z0-9]{32,}+"),
    ("nvapi-", r"nvapi-[\w-]{40,}+"),
    ("lsv2_", rf"lsv2_(?:pt|sk)_[A-Za-z0-9]{{32}}_[A-Za-z0-9]{{10}}{END}"),
    ("tvly-", r"tvly-[A-Za-z0-9-]{28,}+"),
    ("tgp_v", r"tgp_v\d_[\w-]{30,}+"),
    ("e2b_", rf"e2b_[a-f0-9]{{40}}{END}"),
    ("fc-", rf"fc-[a-f0-9]{{32}}{END}"),
    ("ctx7sk-", rf"ctx7sk-{_UUID}"),
    ("bb_live_", r"bb_live_[\w-]{20,}+"),
    ("apify_api_", r"apify_api_[A-Za-z0-9]{30,}+"),
    ("wandb_v1_", r"wandb_v1_\w{40,}+"),
    ("crsr_", rf"crsr_[a-f0-9]{{64}}{END}"),
    ("sk-lf-", rf"sk-lf-{_UUID}"),
    ("bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=%]{40,}+"),
    ("absk", r"ABSK[A-Za-z0-9+/]{100,}+={0,2}"),
    ("aq.ab", r"AQ\.Ab[\w-]{40,}+"),
    ("sk_", rf"sk_[a-f0-9]{{48}}{END}"),
    # Clouds, databases, networks, hosting.
    ("cfk_ cfut_ cfat_", r"cf(?:k|ut|at)_[\w-]{40,}+"),
    ("v1.0-", rf"v1\.0-[a-f0-9]{{24}}-[a-f0-9]{{146}}{END}"),
    ("ltai", rf"LTAI[A-Za-z0-9]{{17,22}}{END}"),
    ("sbp_", r"sbp_(?:\w{1,4}_)?[A-Za-z0-9]{36,}+"),
    ("sb_secret_", r"sb_secret_[\w-]{24,}+"),
    ("vc", r"vc[acikpr]_[A-Za-z0-9]{24,}+"),
    ("vercel_blob_rw_", r"vercel_blob_rw_\w{30,}+"),
    ("tskey-", r"tskey-[a-z]{3,10}-[A-Za-z0-9-]{18,}+"),
    ("napi_", r"napi_[a-z0-9]{40,}+"),
    ("pscale_", r"pscale_(?:tkn|pw|oauth)_[\w=-]{32,}+"),
    ("avns_", r"AVNS_[\w-]{19,}+"),
    ("mdb_sa_sk_", r"mdb_sa_sk_[\w-]{36,}+"),
    ("essu_", r"essu_[A-Za-z0-9+/_-]{30,}+={0,2}"),
    ("nf", r"nf[bcopu]_[A-Za-z0-9]{36,}+"),
    ("rnd_", r"rnd_[A-Za-z0-9]{28,}+"),
    ("fo1_ fm", r"(?:fo1_[\w-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{80,}+={0,3})"),
    ("pul-", rf"pul-[a-f0-9]{{40}}{END}"),
    ("dapi dose", r"(?:dapi|dose)[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    (".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}+"),
    ("hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,}+"),
    ("ops_eyj", r"ops_eyJ[A-Za-z0-9+/_-]{60,}+={0,3}"),
    ("a3-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Za-z0-9])"),
    ("dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{1,35}\.)?[A-Za-z0-9]{40,}+"),
    # Code, packages, builds, monitoring.
    ("dckr_", r"dckr_[po]at_[\w-]{20,}+"),
    ("oy2", rf"oy2[a-z0-9]{{43}}{END}"),
    ("cio", rf"cio[A-Za-z0-9]{{32}}{END}"),
    ("rubygems_", r"rubygems_[a-f0-9]{48}"),
    ("packagist_", r"packagist_[a-z]{2,4}_[a-f0-9]{60,}+"),
    ("akcp", rf"AKCp[A-Za-z0-9]{{60,80}}{END}"),
    ("cmvmd", rf"cmVmd[A-Za-z0-9]{{59}}{END}"),
    ("bkua_", rf"bkua_[a-f0-9]{{40}}{END}"),
    ("ccipat_ cciprj_", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    ("sq", rf"sq[apu]_[a-f0-9]{{40}}{END}"),
    ("sgp_", r"sgp_(?:(?:[a-f0-9]{16}|local)_)?[A-Za-z0-9]{40,}+"),
    ("depot_", r"depot_(?:org|project|user)_[a-f0-9]{40,}+"),
    ("glsa_ glc_", r"gl(?:sa_\w{32,}+|c_[A-Za-z0-9+/]{32,}+={0,2})"),
    ("sntry", r"sntry[su]_[\w=+/-]{40,}+"),
    ("nrak- nrii- nrjs-", r"(?:NRAK-[A-Z0-9]{27}|NRII-[\w-]{32}|NRJS-[a-f0-9]{19})"),
    ("dt0", rf"dt0[a-z]\d{{2}}\.[A-Z0-9]{{24}}\.[A-Z0-9]{{64}}{END}"),
    ("phx_ phs_", r"ph[sx]_[A-Za-z0-9]{36,}+"),
    ("pnu_", r"pnu_[A-Za-z0-9]{36}"),
    ("zpka_", r"zpka_[a-z0-9_]{40,}+"),
    ("jqqj99", rf"[A-Za-z0-9]{{52}}JQQJ99[A-Za-z0-9]{{26}}{END}"),
    ("azdo", rf"[A-Za-z0-9]{{76}}AZDO[A-Za-z0-9]{{4}}{END}"),
    ("azse", rf"[A-Za-z0-9]{{42}}AzSe[A-D][A-Za-z0-9]{{5}}{END}"),
    ("+ast", r"[A-Za-z0-9+/]{76}\+ASt[A-Za-z0-9+/]{6}=="),
    # Documents, design, tasks.
    ("fig", r"fig[dour]r?_[\w-]{36,}+"),
    ("ntn_ secret_", r"(?:ntn_[A-Za-z0-9]{32,}+|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9]))"),
    ("lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+"),
    ("atta", rf"ATTA[a-f0-9]{{64}}[A-Fa-f0-9]{{8}}{END}"),
    ("pat", rf"pat[A-Za-z0-9]{{14}}\.[a-f0-9]{{64}}{END}"),
    ("pat-", rf"pat-[a-z]{{2}}\d-{_UUID}"),
    ("pk_", rf"pk_\d{{5,12}}_[A-Z0-9]{{32}}{END}"),
    ("cfpat-", r"CFPAT-[\w-]{43}"),
    ("tfp_", r"tfp_[\w-]{30,}+"),
    ("rdme_", r"rdme_[a-z0-9]{60,}+"),
    ("pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    # Payment, mail, maps, social.
    ("sq0", r"sq0(?:atp|csp)-[\w-]{22,}+"),
    ("eaaa", r"EAAA[\w-]{60,}+"),
    ("eaa", r"EAA[MCB][A-Za-z0-9]{100,}+"),
    ("xkeysib- xsmtpsib-", r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("-us", rf"[0-9a-f]{{32}}-us\d{{1,2}}{END}"),
    ("mlsn.", r"mlsn\.[a-f0-9]{64}"),
    ("re_", rf"re_[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{24}}{END}"),
    ("sk.eyj", r"sk\.eyJ[\w-]{20,}+\.[\w-]{20,}+"),
    ("ezak eztk", rf"EZ[AT]K[A-Za-z0-9]{{54}}{END}"),
    ("shippo_", r"shippo_(?:live|test)_[a-f0-9]{40}"),
    ("duffel_", r"duffel_(?:live|test)_[\w=-]{43}"),
    ("polar_", r"polar_[a-z]{2,4}_[A-Za-z0-9]{36,}+"),
    ("pdl_", r"pdl_(?:live|sdbx)_apikey_\w{40,}+"),
    ("access-", rf"access-(?:sandbox|development|production)-{_UUID}"),
    ("sdk- api-", rf"(?<!-)(?:sdk|api)-{_UUID}"),
    ("access_token$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
)
"""What a token contains, in lower case, and its pattern after `START`."""

ACCESS = tuple((needs, f"{START}{pattern}") for needs, pattern in _ACCESS)
