"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en-US");
  const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)} %`;
  const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
  const range = (first, last) => (first === last ? number(first) : `${number(first)}–${number(last)}`);

  // All data becomes text: nothing here parses markup.
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  }

  // --- head ---

  const totals = data.totals;

  function showHead() {
    const source = data.source || "Recorded session";
    document.title = `Replay of ${source}`;
    byId("source").textContent = source;
    const room = data.window === null
      ? `requests of at most ${number(data.budget)} tokens`
      : `a window of ${number(data.window)} tokens, ${number(data.budget)} of them for a request`;
    byId("through").textContent =
      `${plural(totals.messages, "message")}, ${number(totals.history_tokens)} tokens in total, replayed with ${room}.`;
    byId("writer").textContent = data.offline
      ? "No model wrote the summaries. The offline provider copies exact words, ids and results from the messages. A model writes better summaries."
      : `Provider of the summaries: ${data.provider}.`;
    const settings = Object.entries(data.settings).map(([key, value]) => `${key} = ${value}`);
    byId("settings").textContent = settings.length ? `Settings: ${settings.join(", ")}.` : "Settings: the defaults.";
    byId("checks").append(...data.checks.map(check));
    byId("figures").append(...figures());
    byId("footer").textContent =
      `Written by context-summarize ${data.version}. ${data.redacted ? "Secrets of well-known formats are removed. " : "No secrets are removed: the page shows the session's texts unchanged. "}The page is self-contained and loads nothing.`;
  }

  function check(told) {
    const count = told.ok ? number(told.checked) : `${number(told.broken)} of ${number(told.checked)}`;
    return make("li", { class: told.ok ? "ok" : "broken", title: told.meaning },
      make("span", { class: "mark", "aria-hidden": "true" }, told.ok ? "✓" : "✗"),
      make("span", {}, told.name, make("span", { class: "hidden" }, told.ok ? ": ok" : ": broken")),
      make("span", { class: "count" }, `${count} ${told.checked === 1 ? told.unit.replace(/s$/, "") : told.unit}`),
      told.first ? make("span", { class: "problem" }, told.first) : null);
  }

  function figures() {
    const merged = data.boundaries.reduce((sum, line) => sum + line.merged, 0);
    return [
      ["Largest request", number(totals.largest_view), `${percent(totals.largest_view / data.budget)} of the budget`],
      ["Requests", number(totals.requests), `in ${totals.seconds.toFixed(1)} s`],
      ["Compactions", number(data.boundaries.length), merged ? plural(merged, "merge") : "no merge"],
      ["Rows unchanged", percent(totals.stable_share, 1), "for a prompt cache"],
      ["Calls for summaries", number(totals.provider_calls), totals.failed_calls ? `${number(totals.failed_calls)} failed` : "none failed"],
      ["Tokens to summarise", number(totals.provider_input_tokens), `${number(totals.provider_output_tokens)} written`],
    ].map(([name, value, more]) =>
      make("div", {}, make("dt", {}, name), make("dd", { class: "value" }, value), more ? make("dd", { class: "more" }, more) : null));
  }

  // --- chart ---

  const REASONS = { threshold: "passed the threshold", must_fit: "would not fit the budget", manual: "asked for" };

  function draw(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function steps(most, wanted) {
    const rough = most / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough));
    return Array.from({ length: Math.floor(most / step) }, (_, at) => (at + 1) * step);
  }

  const short = (tokens) => (tokens >= 1e6 ? `${tokens / 1e6}M` : tokens >= 1000 ? `${tokens / 1000}k` : `${tokens}`);

  function sawtooth() {
    const at = new Map(data.boundaries.map((line) => [line.request, line]));
    return data.requests.flatMap(([request, , tokens]) => {
      const line = at.get(request);
      return line ? [[request, line.before_tokens], [request, line.after_tokens]] : [[request, tokens]];
    });
  }

  function showChart() {
    const chart = byId("chart");
    if (!data.requests.length) {
      chart.append(make("p", { class: "quiet" }, "The recording holds no assistant message, so there is no request to show."));
      byId("compaction-details").remove();
      return;
    }
    const points = sawtooth();
    let width = 0;
    const fit = () => {
      if (chart.clientWidth === width) return;
      width = chart.clientWidth;
      chart.replaceChildren(...chartParts(points, width));
    };
    fit();
    new ResizeObserver(fit).observe(chart);
    if (data.boundaries.some((line) => line.digests)) {
      chart.after(make("p", { class: "quiet" }, "Filled marks: the request shows at least one fallback summary, written by code."));
    }
    if (data.boundaries.length) {
      chart.after(make("p", { class: "quiet" }, "A marked peak is the size before a compaction. It is not sent and may be above the budget. The line then falls to the size that is sent."));
    }
    showCompactions();
  }

  function chartParts(points, width) {
    const narrow = width < 560;
    const box = { left: 38, right: width - 66, top: 26, bottom: narrow ? 210 : 290 };
    const requests = totals.requests;
    const most = 1.02 * Math.max(data.budget, ...points.map((point) => point[1]));
    const x = (request) => box.left + ((request - 1) / Math.max(1, requests - 1)) * (box.right - box.left);
    const y = (tokens) => box.bottom - (tokens / most) * (box.bottom - box.top);
    const svg = draw("svg", { height: box.bottom + 40, role: "group", "aria-label": "Tokens of each request" });
    for (const tokens of [0, ...steps(most, 4)]) {
      svg.append(draw("line", { class: "grid", x1: box.left, x2: box.right, y1: y(tokens), y2: y(tokens) }));
      svg.append(draw("text", { x: box.left - 8, y: y(tokens) + 4, "text-anchor": "end" }, short(tokens)));
    }
    for (const request of [1, ...steps(requests, narrow ? 4 : 7)].filter((each) => each <= requests && (each === 1 || x(each) - box.left > 24))) {
      svg.append(draw("text", { x: x(request), y: box.bottom + 18, "text-anchor": request === requests ? "end" : "middle" }, number(request)));
    }
    svg.append(draw("text", { x: box.left - 30, y: 8 }, "tokens"));
    svg.append(draw("text", { x: box.right, y: box.bottom + 36, "text-anchor": "end" }, "request"));
    const line = points.map(([request, tokens]) => `${x(request).toFixed(1)},${y(tokens).toFixed(1)}`);
    svg.append(draw("path", { class: "area", d: `M${x(points[0][0])},${y(0)}L${line.join("L")}L${x(points[points.length - 1][0])},${y(0)}Z` }));
    svg.append(draw("path", { class: "saw", d: `M${line.join("L")}` }));
    if (points.length === 1) svg.append(draw("circle", { class: "dot", cx: x(1), cy: y(points[0][1]), r: 3 }));
    const limits = [["budget", data.budget], ["threshold", data.threshold], ["target", data.target]];
    for (const [name, tokens] of limits.filter((limit) => limit[1] !== null)) {
      svg.append(draw("line", { class: name === "budget" ? "limit" : "limit dashed", x1: box.left, x2: box.right, y1: y(tokens), y2: y(tokens) }));
    }
    svg.append(...limitLabels(limits.filter((limit) => limit[1] !== null), box.right + 10, y));
    const tip = make("div", { class: "tip", "aria-hidden": "true" });
    tip.hidden = true;
    const marks = data.boundaries.map((told) => compactionMark(told, x(told.request), y(told.before_tokens), tip, width));
    marks.forEach((mark, at) => {
      mark.setAttribute("tabindex", at === 0 ? "0" : "-1");
      mark.addEventListener("keydown", (event) => move(event, marks, { ArrowLeft: -1, ArrowRight: 1 }));
    });
    svg.append(...marks);
    return [svg, tip];
  }

  // Two lines of text beside the end of each limit, moved down if they would overlap.
  function limitLabels(limits, x, y) {
    let free = -Infinity;
    return limits.flatMap(([name, tokens]) => {
      const top = Math.max(free, y(tokens));
      free = top + 30;
      return [draw("text", { x, y: top }, name), draw("text", { x, y: top + 14 }, number(tokens))];
    });
  }

  // One stop for the Tab key; the arrow keys go from mark to mark.
  function move(event, all, keys) {
    const to = all[all.indexOf(event.currentTarget) + (keys[event.key] ?? NaN)];
    if (!to) return;
    event.preventDefault();
    for (const each of all) each.setAttribute("tabindex", each === to ? "0" : "-1");
    to.focus();
  }

  function compactionLines(told) {
    return [
      `request ${number(told.request)}, row ${number(told.row)}, ${REASONS[told.reason] ?? told.reason}`,
      told.segments ? `${plural(told.segments, "segment")} summarised` : "long rows shortened",
      told.merged ? `${plural(told.merged, "merge")} of summaries` : "",
      told.from_cache ? `${number(told.from_cache)} from the cache` : "",
      told.digests ? plural(told.digests, "fallback summary", "fallback summaries") : "",
      `waited ${number(told.wait_ms)} ms`,
    ].filter(Boolean);
  }

  function compactionMark(told, x, y, tip, width) {
    const title = `${number(told.before_tokens)} → ${number(told.after_tokens)} tokens`;
    const lines = compactionLines(told);
    const mark = draw("g", { class: told.digests ? "compaction with-fallbacks" : "compaction", role: "img", "aria-label": `Compaction: ${title}; ${lines.join("; ")}` },
      draw("circle", { class: "hit", cx: x, cy: y, r: 14 }),
      draw("circle", { class: "dot", cx: x, cy: y, r: data.boundaries.length > 60 ? 3 : 4.5 }));
    const show = () => {
      tip.replaceChildren(make("strong", {}, title), ...lines.map((line) => make("div", {}, line)));
      tip.hidden = false;
      tip.style.left = `${Math.max(0, Math.min(width - tip.offsetWidth, x - tip.offsetWidth / 2))}px`;
      tip.style.top = `${y + 16}px`;
    };
    const hide = () => { tip.hidden = true; };
    for (const [event, act] of [["mouseenter", show], ["focus", show], ["mouseleave", hide], ["blur", hide]]) mark.addEventListener(event, act);
    return mark;
  }

  function showCompactions() {
    if (!data.boundaries.length) {
      byId("compaction-details").replaceWith(make("p", { class: "quiet" }, "No compaction ran: no request became large enough. Use a smaller window to see some."));
      return;
    }
    const titles = ["Request", "Row", "Before", "After", "Segments", "Merged", "Cached", "Fallbacks", "Waited", "Why"];
    byId("compactions").append(
      make("thead", {}, make("tr", {}, titles.map((title) => make("th", { scope: "col" }, title)))),
      make("tbody", {}, data.boundaries.map((told) => make("tr", {}, [
        number(told.request), number(told.row), number(told.before_tokens), number(told.after_tokens), number(told.segments),
        number(told.merged), number(told.from_cache), number(told.digests), `${number(told.wait_ms)} ms`, REASONS[told.reason] ?? told.reason,
      ].map((value) => make("td", {}, value))))));
  }

  // --- the tree of summaries ---

  const LABELS = { user: "Said", path: "Paths", url: "Addresses", id: "Ids", amount: "Amounts", command: "Commands", error: "Errors" };
  const lastMessage = Math.max(1, totals.messages);
  const BATCH = 40;

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
    tree.append(...data.nodes.map(nodeItem));
    tree.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || !event.target.matches(".node")) return;
      event.preventDefault();
      const open = [...tree.querySelectorAll(".node")].filter((node) => node.offsetParent !== null);
      open[open.indexOf(event.target) + step]?.focus();
    });
  }

  function nodeItem(node) {
    const detail = make("div", { class: "detail", id: `node-${node.id}`, hidden: true });
    const place = make("i");
    place.style.left = `${(100 * (node.first - 1)) / lastMessage}%`;
    place.style.width = `${(100 * (node.last - node.first + 1)) / lastMessage}%`;
    const toggle = (event) => {
      const opened = detail.hidden;
      if (opened && !detail.childElementCount) detail.append(...nodeDetail(node));
      detail.hidden = !opened;
      event.currentTarget.setAttribute("aria-expanded", String(opened));
    };
    const button = make("button", { class: "node", type: "button", "aria-expanded": "false", "aria-controls": detail.id, click: toggle },
      make("span", { class: "level" }, `level ${node.level}`, node.fallback ? make("span", { class: "badge", title: "Written by code: no model summary was available." }, "fallback") : null),
      make("span", { class: "range" }, make("span", { class: "hidden" }, "messages "), range(node.first, node.last)),
      make("span", { class: "track", "aria-hidden": "true" }, place),
      make("span", { class: "sizes" }, node.kept ? [make("span", { class: "was" }, `${number(node.source_tokens)} → `), number(node.tokens), make("span", { class: "hidden" }, " tokens")] : "not kept"),
      make("span", { class: node.kept ? "coverage" : "coverage none" }, node.kept ? percent(node.coverage) : "", make("span", { class: "hidden" }, node.kept ? " of exact values kept" : "")));
    return make("li", {}, button, detail);
  }

  function nodeDetail(node) {
    const parts = [];
    if (node.kept) {
      const by = data.offline && node.writer ? "offline, no model" : node.writer;
      parts.push(make("p", { class: "meta" }, [node.fallback ? "fallback summary, written by code" : by && `by ${by}`, node.rest && "a run that is not a whole segment yet", `key ${node.key.slice(0, 12)}`].filter(Boolean).join(" · ")));
      parts.push(make("div", { class: "said text" }, node.text));
      if (node.directives.length) parts.push(make("h3", {}, "User directives"), make("ul", { class: "directives" }, node.directives.map((directive) => make("li", {}, directive))));
      if (node.ledger.length) parts.push(make("h3", {}, "Ledger: exact values that the text does not hold"), ledger(node.ledger));
      if (node.facts_left_out) parts.push(make("div", { class: "gap" }, `${plural(node.facts_left_out, "more value")} not in this page`));
    } else {
      parts.push(make("p", { class: "meta" }, "The text of this summary is not stored."));
    }
    if (node.children.length) {
      parts.push(make("h3", {}, `Merged from ${plural(node.children.length, "summary", "summaries")}`), make("ul", { class: "tree" }, node.children.map(nodeItem)));
    }
    parts.push(make("h3", {}, `The messages it replaces: ${range(node.first, node.last)}`), sources(node));
    return parts;
  }

  function ledger(facts) {
    return make("dl", { class: "ledger" }, Object.entries(LABELS).flatMap(([kind, label]) => {
      const found = facts.filter((fact) => fact[0] === kind);
      if (!found.length) return [];
      return [make("dt", {}, label), make("dd", {}, found.map(([, value, count]) =>
        make("span", { class: kind === "user" || kind === "error" ? "fact words" : "fact" }, value, count > 1 ? make("small", {}, `×${number(count)}`) : null)))];
    }));
  }

  // A range may hold thousands of messages: the page adds them in batches.
  function sources(node) {
    const found = data.messages.filter(([at]) => at >= node.first && at <= node.last);
    const list = make("ul", { class: "sources" });
    let shown = 0;
    const more = make("button", { class: "action", type: "button", click: () => add(true) });
    function add(focus) {
      const batch = found.slice(shown, shown + BATCH).flatMap((message, at) => sourceItems(message, found[shown + at - 1]?.[0] ?? node.first - 1));
      shown += BATCH;
      list.append(...batch);
      if (focus && batch.length) { batch[0].tabIndex = -1; batch[0].focus({ preventScroll: true }); }
      const left = found.length - shown;
      if (left > 0) more.textContent = `Show ${number(Math.min(left, BATCH))} more of ${number(left)}`;
      else more.remove();
    }
    const whole = make("div", {}, list, more);
    const first = make("button", { class: "action", type: "button", click: () => { first.replaceWith(whole); add(true); } }, `Show ${plural(node.last - node.first + 1, "message")}`);
    if (node.children.length) return first;
    add(false);
    return whole;
  }

  function sourceItems([at, role, tool, text, cut], before) {
    const missing = at - before - 1;
    return [
      missing > 0 ? make("li", { class: "gap" }, `${plural(missing, "message")} left out of this page`) : null,
      make("li", { class: "source" },
        make("div", { class: "who" }, make("span", {}, number(at)), make("span", {}, role), tool ? make("span", {}, tool) : null),
        clamp(role === "tool" ? "said code" : "said", text || "(empty)"),
        cut ? make("div", { class: "gap" }, `${plural(cut, "more character")} not in this page`) : null),
    ].filter(Boolean);
  }

  function clamp(style, text) {
    const body = make("div", { class: style }, text);
    if (text.length < 900 && text.split("\n", 11).length < 11) return body;
    body.classList.add("clamped");
    const button = make("button", { class: "action", type: "button", "aria-expanded": "false", click: () => {
      const clamped = body.classList.toggle("clamped");
      button.textContent = clamped ? "Show all" : "Show less";
      button.setAttribute("aria-expanded", String(!clamped));
    } }, "Show all");
    return make("div", {}, body, button);
  }

  // --- the last request ---

  const KINDS = { system: "System", summary: "Summaries", verbatim: "Verbatim", shortened: "Shortened" };

  function showView() {
    const line = data.requests[data.requests.length - 1];
    if (!line) {
      byId("view-lede").textContent = "There was none.";
      return;
    }
    const [request, row, used] = line;
    byId("view-lede").textContent =
      `What the model sees in request ${number(request)}, the one that row ${number(row)} answers: ${number(used)} of ${number(data.budget)} tokens.`;
    const sizes = Object.keys(KINDS).map((kind) => {
      const rows = data.view.filter((each) => each.kind === kind);
      return [kind, KINDS[kind], rows.length, rows.reduce((sum, each) => sum + each.tokens, 0)];
    }).filter((each) => each[2]);
    const free = Math.max(0, data.budget - used);
    if (free) sizes.push(["free", "Free", 0, free]);
    for (const [kind, name, rows, tokens] of sizes) {
      const part = make("span", { class: `of-${kind}` });
      part.style.flexGrow = tokens;
      part.style.visibility = kind === "free" ? "hidden" : "visible";
      byId("meter").append(part);
      byId("legend").append(make("li", { class: `of-${kind}` }, name, make("small", {}, rows ? `${plural(rows, "row")}, ${number(tokens)} tokens` : `${number(tokens)} tokens`)));
    }
    let before = 0;
    for (const told of data.view) {
      if (told.at > before + 1) byId("view").append(make("li", { class: "gap" }, `${plural(told.at - before - 1, "row")} left out of this page`));
      byId("view").append(viewRow(told));
      before = told.at;
    }
  }

  function viewRow(told) {
    const name = told.kind === "summary" ? "summary" : told.role;
    return make("li", { class: `row of-${told.kind}` },
      make("div", { class: "who" },
        make("b", {}, name),
        told.span ? make("span", {}, `messages ${range(...told.span)}`) : null,
        make("span", {}, told.row ? `row ${number(told.row)} · ` : "", plural(told.tokens, "token")),
        told.whole_tokens ? make("span", {}, `shortened from ${number(told.whole_tokens)}`) : null),
      make("div", {}, told.parts.length ? told.parts.map(viewPart) : make("span", { class: "empty" }, "(no text)")));
  }

  function viewPart([kind, tool, text]) {
    if (kind === "text") return make("div", { class: "part" }, clamp("said", text));
    const title = kind === "call" ? ["call ", make("b", {}, tool)] : ["result", tool ? [" of ", make("b", {}, tool)] : ""].flat();
    return make("div", { class: "part" }, make("p", { class: "tool" }, title), clamp("said code", text));
  }

  showHead();
  showChart();
  showTree();
  showView();
})();
