"""What `benchmarks.linear` measures: hostile texts, modules whose patterns are listed, and how long their texts get."""

from __future__ import annotations

from context_summarize.facts.own_voice import READ

SHORT, LONG = 25_000, 100_000
"""Characters."""
ENDINGS = ("", "!", "\n", " ", '"', "'", "a", "0", "-", ".", "@", ":", "=", ")", "\\", "-----END PRIVATE KEY-----")
UNITS = (
    "a", "0", " ", "\n", "\\", '"', "=", "-", ".", "_", "/", "a.", "a-", "a/", "a b ", "\\n", "\n  ", "A1", "x:",
    "://a:", "\u0300\u0316", "&amp;", "%25", "%41", "\x1b[3", "\x1b[31m", "glpat-", "eyJ-", "eyJ.", "sk-", "curl -u ",
    "login a ", "token=", "token='", "password: ", "bearer ", "-----BEGIN PRIVATE KEY-----\n",
    "-----BEGIN PRIVATE KEY-----" + "A" * 64,
    "A" * 64 + "\n", "-----END PRIVATE KEY-----", "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t", "Error: ", "exit code ",
    "=== ", "# 1 ", "$1,",
    "</a", "[/a", "<a ", "`", "``` ", "> ", "- ", "...", "never ", "<file>", "“", "#x 1.",
    "\"price\":", "reservation ", "C:\\a\\",
)  # fmt: skip
"""What a hostile text repeats."""
LISTED = (
    "facts.action_tools", "facts.actions", "facts.outcomes",
    "facts.extraction", "facts.labels", "facts.notes", "facts.pairs", "facts.prose", "facts.remarks", "facts.series",
    "facts.commands", "facts.demands", "facts.demands_abroad", "facts.directive_sentences", "facts.directives",
    "facts.own_voice", "facts.pasted", "facts.patterns", "facts.quotations", "facts.withdrawals",
    "recall.by_words", "recall.passages", "recall.query", "recall.ranking", "recall.reader", "recall.search",
    "redaction.assigned", "redaction.cookies",
    "redaction.keys", "redaction.marks",
    "redaction.values", "redaction.views", "replay.cut_lines", "replay.inspection_page",
    "session.system_prompt", "summaries.allowance", "summaries.failures",
    "summaries.validation", "tokens.counter", "transcript.escaping", "transcript.fences", "transcript.forged",
    "transcript.rows",
)  # fmt: skip
"""Modules whose patterns run over content, under `context_summarize`; formats of secrets are listed by themselves."""
NO_CONTENT = {
    "cli.pairs": "reads settings on a command line",
    "recall.context_tool": "reads a short list of numbers in a call",
    "providers.offline": "reads a request of ours",
}
"""Modules with compiled patterns that never meet content, and what they meet."""
IN_FUNCTIONS = (
    "facts.action_tools", "facts.notes",
    "facts.directive_sentences", "facts.own_voice", "facts.pasted", "facts.patterns", "facts.quotations",
    "facts.withdrawals", "recall.search",
    "redaction.keys", "transcript.forged",
)  # fmt: skip
"""Modules whose functions compile patterns of their own over content; `normalisations` runs these functions."""
MATCHED = frozenset([
    "facts.extraction._SUPPOSED", "facts.labels._STRONG", "facts.labels._WEAK", "facts.notes._CODE_BEGINS",
    "facts.commands._NO_ERROR", "facts.directive_sentences._ABBREVIATION",
    "facts.directive_sentences._BULLET", "facts.directive_sentences._OPENS", "facts.directive_sentences._REQUEST",
    "facts.directive_sentences._FOR_HELP", "facts.directive_sentences._WANTED",
    "facts.directive_sentences._WANTED_ALWAYS", "facts.directive_sentences._THIRD_PERSON",
    "facts.directive_sentences._DOING", "facts.demands._OPENER", "facts.demands._CLAUSE",
    "facts.demands._IMPERATIVE", "facts.demands._NARRATIVE", "facts.demands._PLAIN_ORDER",
    "facts.demands_abroad._STARTS", "facts.own_voice._BARE_FENCE", "facts.pasted._BEGIN",
    "facts.pasted._FORWARDED", "facts.pasted._MENTION", "facts.pasted._QUOTED",
    "redaction.assigned._CODE", "redaction.assigned._MORE",
    "redaction.assigned._MORE_OF_PASSWORD", "redaction.assigned._NAME", "redaction.assigned._PATH_OR_URL",
    "redaction.assigned._VARIABLE", "redaction.assigned._VAULT", "redaction.keys._BASE64_AFTER",
    "redaction.keys._BASE64_BEFORE", "redaction.keys._CHECKSUM", "redaction.keys._RUN",
    "redaction.values._PLACEHOLDER", "redaction.views._GOES_ON", "recall.reader._RANGE",
    "recall.reader._RANGE_CURSOR", "recall.query._WORDS_CURSOR", "replay.cut_lines._BEGUN",
    "replay.cut_lines._ESCAPE", "summaries.validation._DECLINES", "summaries.validation._GOES_ON",
    "transcript.forged._ROLE_LINE", "transcript.rows._HEADER",
])  # fmt: skip
"""Patterns that are only matched from a given place on; in `facts.patterns` all but `SEARCHED` are."""
SEARCHED = ("URL", "TOKEN", "_ESCAPE", "_AMOUNT", "_JSON_AMOUNT", "_QUOTED_CODE", "_INTERESTING")
BOUNDED = {
    "facts.directive_sentences._TOLD_BEFORE": 80, "facts.directive_sentences._REPORTED_BEFORE": 80,
    "facts.directive_sentences._TOLD_AFTER": 80, "facts.directive_sentences._TO_AGENT": 80,
    "facts.directive_sentences._TAG_QUESTION": 40, "facts.directive_sentences": READ, "facts.directives": 200,
    "facts.demands": 400, "facts.demands_abroad": 400, "facts.withdrawals": 400,
    "facts.own_voice._TAG": LONG, "facts.own_voice": READ,
    "facts.pasted": READ, "facts.quotations": READ,
    "own_voice": READ, "directives": READ,
    "recall.ranking": 400, "summaries.failures": 2_000, "redaction.assigned._PAGING": 80,
    "redaction.assigned._OPTION": 80, "redaction.assigned._TYPE": 80, "summaries.validation._DECLINES": 400,
}  # fmt: skip
"""Most characters that a pattern, or any of a module, is ever given."""
