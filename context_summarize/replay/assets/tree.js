// The tree of summaries, what each keeps and loses, and the messages it replaces.

const LABELS = { user: "Said", path: "Paths", url: "Addresses", id: "Ids", amount: "Amounts", command: "Commands", error: "Errors", note: "Notes" };

function showTree() {
  const tree = byId("tree");
  if (!data.nodes.length) {
    byId("tree-lede").textContent = "There are none: nothing was summarised, and every request held the whole conversation.";
    byId("tree-head").remove();
    return;
  }
  const fallbacks = data.nodes.filter((node) => node.fallback).length;
  byId("tree-lede").textContent =
    `${plural(data.nodes.length, "summary replaces", "summaries replace")} messages ${range(data.nodes[0].first, data.nodes[data.nodes.length - 1].last)}. ` +
    "Open a summary to read its text, the summaries it was merged from, and the messages it replaces." +
    (fallbacks ? ` ${plural(fallbacks, "is a fallback summary", "are fallback summaries")}, written by code because no model summary was available.` : "");
  showValues();
  tree.append(...data.nodes.map(nodeItem));
  arrowKeys(tree, ".node");
}

// Button of each summary that has been shown, by the number of the summary.
const buttons = new Map();

const PLACES = [
  ["text", "in_text", "in the text of a summary"],
  ["ledger", "in_ledger", "in a ledger, beside the text"],
  ["elsewhere", "elsewhere", "in other rows of the last request"],
  ["lost", "lost", "not in the last request: only recall reads them back"],
];

function showValues() {
  const told = data.values;
  if (!told.all) return;
  byId("values-lede").textContent =
    `The summarised messages hold ${plural(told.all, "exact value")}: paths, addresses, ids and amounts. In the last request they stand`;
  for (const [style, key, text] of PLACES) {
    const part = make("span", { class: `is-${style}` });
    part.style.flexGrow = told[key];
    if (told[key]) byId("values-meter").append(part);
    byId("values-legend").append(make("li", { class: `is-${style}` }, make("b", {}, number(told[key])), ` ${text}`));
  }
}

function nodeItem(node) {
  const detail = make("div", { class: "detail", id: `node-${node.id}`, hidden: true });
  const place = make("i");
  place.style.left = `${(100 * (node.first - 1)) / lastMessage}%`;
  place.style.width = `${(100 * (node.last - node.first + 1)) / lastMessage}%`;
  const whole = node.kept ? node.counts.reduce((sum, count) => sum + count) : 0;
  const lost = node.kept ? node.counts[2] : 0;
  const button = opener({ class: "node" }, detail, () => nodeDetail(node),
    make("span", { class: "level" }, `level ${node.level}`, node.fallback ? make("span", { class: "badge", title: "Written by code: no model summary was available." }, "fallback") : null),
    make("span", { class: "range" }, make("span", { class: "hidden" }, "messages "), range(node.first, node.last)),
    make("span", { class: "track", "aria-hidden": "true" }, place),
    make("span", { class: "sizes" }, node.kept ? [make("span", { class: "was" }, `${number(node.source_tokens)} → `), number(node.tokens), make("span", { class: "hidden" }, " tokens")] : "not kept"),
    make("span", { class: "coverage" }, node.kept ? [`${number(whole - lost)} of ${number(whole)}`, make("span", { class: "hidden" }, " exact values kept")] : ""));
  buttons.set(node.id, button);
  return make("li", {}, button, detail);
}

function nodeDetail(node) {
  const parts = [];
  if (node.kept) {
    const by = data.offline && node.writer ? "offline, no model" : node.writer;
    parts.push(make("p", { class: "meta" }, [node.kept && `${number(node.source_tokens)} tokens of ${plural(node.last - node.first + 1, "message")}, summarised in ${number(node.tokens)}`, node.fallback ? "fallback summary, written by code" : by && `by ${by}`, node.rest && "a run that is not a whole segment yet", `key ${node.key.slice(0, 12)}`].filter(Boolean).join(" · ")));
    parts.push(clamp("said text", node.text));
    if (node.directives.length) parts.push(make("h3", {}, "User directives"), make("ul", { class: "directives" }, node.directives.map((directive) => make("li", {}, directive))));
    if (node.ledger.length) parts.push(make("h3", {}, "Ledger: exact values beside the text"), ledger(node.ledger));
    if (node.facts_left_out) parts.push(make("div", { class: "gap" }, `${plural(node.facts_left_out, "more value")} not in this page`));
    parts.push(...values(node));
  } else {
    parts.push(make("p", { class: "meta" }, "The text of this summary is not stored."));
  }
  if (node.children.length) {
    parts.push(make("h3", {}, `Merged from ${plural(node.children.length, "summary", "summaries")}`), make("ul", { class: "tree" }, node.children.map(nodeItem)));
  }
  parts.push(make("h3", {}, `The messages it replaces: ${range(node.first, node.last)}`), sources(node));
  return parts;
}

// What the messages hold, in two lists: what neither text nor ledger has, and what the text has.
function values(node) {
  const [inText, , lost] = node.counts;
  const parts = [make("h3", {}, lost ? `Lost: ${plural(lost, "exact value")} of these messages in neither` : "Lost: nothing. Text and ledger hold every exact value of these messages")];
  if (lost) {
    parts.push(make("p", { class: "meta" }, "Press a value to find the messages that hold it. A dotted line: another row of the last request holds it."));
    parts.push(facts(node.lost, ([, value, count, elsewhere]) => make("button", { class: elsewhere ? "fact lost elsewhere" : "fact lost", type: "button", title: "Find it in the messages", click: () => searchFor(value) }, value, times(count))));
    if (lost > node.lost.length) parts.push(make("div", { class: "gap" }, `${plural(lost - node.lost.length, "more value")} not in this page`));
  }
  if (inText) {
    const inside = make("div", { id: `text-values-${node.id}`, hidden: true });
    parts.push(make("div", {}, opener({ class: "action" }, inside, () => [facts(node.in_text, fact)], `Show ${plural(inText, "exact value")} that the text holds`), inside));
  }
  return parts;
}

const times = (count) => (count > 1 ? make("small", {}, `×${number(count)}`) : null);
const WORDY = ["user", "error", "note"];
const fact = ([kind, value, count, about]) => make("span", { class: WORDY.includes(kind) ? "fact words" : "fact", title: about || null }, value, times(count));
const ledger = (found) => facts(found, fact);

function facts(all, show) {
  return make("dl", { class: "ledger" }, Object.entries(LABELS).flatMap(([kind, label]) => {
    const found = all.filter((each) => each[0] === kind);
    return found.length ? [make("dt", {}, label), make("dd", {}, found.map(show))] : [];
  }));
}

function sources(node) {
  const found = data.messages.filter(([at]) => at >= node.first && at <= node.last);
  const list = () => inBatches(make("ul", { class: "sources" }), found.length, (from, to) =>
    found.slice(from, to).flatMap((message, at) => sourceItems(message, found[from + at - 1]?.[0] ?? node.first - 1)));
  if (!node.children.length) return list();
  const first = make("button", { class: "action", type: "button", click: () => first.replaceWith(list()) }, `Show ${plural(node.last - node.first + 1, "message")}`);
  return first;
}

function sourceItems(message, before) {
  const missing = message[0] - before - 1;
  return [
    missing > 0 ? make("li", { class: "gap" }, `${plural(missing, "message")} left out of this page`) : null,
    make("li", { class: "source" }, messageBody(message)),
  ].filter(Boolean);
}

function messageBody([at, role, tokens, parts]) {
  return [
    make("div", { class: "who" }, make("span", {}, number(at)), make("span", {}, role), make("span", {}, plural(tokens, "token"))),
    parts.length ? parts.map(rowPart) : make("div", { class: "said empty" }, "(empty)"),
  ];
}

// --- from elsewhere in the page to a summary ---

const pathTo = (test, nodes = data.nodes) => {
  for (const node of nodes) {
    if (test(node)) return [node];
    const below = pathTo(test, node.children);
    if (below.length) return [node, ...below];
  }
  return [];
};

function openNode(test) {
  const path = pathTo(test);
  for (const node of path) {
    const button = buttons.get(node.id);
    if (button?.getAttribute("aria-expanded") === "false") button.click();
  }
  if (path.length) goTo(buttons.get(path[path.length - 1].id));
}
