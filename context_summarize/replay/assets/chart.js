// The chart: the size of each request, a mark for each compaction, a line at the chosen request.

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

// The request that the page shows row by row, and how the chart marks it once it is drawn.
let chosen = totals.requests;
let markRequest = () => {};

const short = (tokens) => (tokens >= 1e6 ? `${tokens / 1e6}M` : tokens >= 1000 ? `${tokens / 1000}k` : `${tokens}`);

function sawtooth() {
  const at = new Map(data.compactions.map((line) => [line.request, line]));
  return data.requests.flatMap(([request, , tokens]) => {
    const line = at.get(request);
    return line ? [[request, line.before_tokens], [request, line.after_tokens]] : [[request, tokens]];
  });
}

function showChart() {
  const chart = byId("chart");
  if (!data.requests.length) {
    chart.append(make("p", { class: "quiet" }, "The recording holds no assistant message, so there is no request to show."));
    return;
  }
  const points = sawtooth();
  let width = 0;
  const fit = () => {
    if (chart.clientWidth === width) return;
    width = chart.clientWidth;
    chart.replaceChildren(...chartParts(points, width));
    markRequest(chosen);
  };
  fit();
  new ResizeObserver(fit).observe(chart);
  if (data.compactions.some((line) => line.digests)) {
    chart.after(make("p", { class: "quiet" }, "Filled marks: the request shows at least one fallback summary, written by code."));
  }
  if (data.compactions.length) {
    chart.after(make("p", { class: "quiet" }, "A marked peak is the size before a compaction. It is not sent and may be above the budget. The line then falls to the size that is sent."));
  }
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
  const marks = data.compactions.map((told) => compactionMark(told, x(told.request), y(told.before_tokens), tip, width));
  marks.forEach((mark, at) => {
    mark.setAttribute("tabindex", at === 0 ? "0" : "-1");
    mark.addEventListener("keydown", (event) => move(event, marks, { ArrowLeft: -1, ArrowRight: 1 }));
  });
  svg.append(...marks);
  const cursor = draw("line", { class: "cursor", y1: box.top - 6, y2: box.bottom });
  svg.append(cursor);
  markRequest = (request) => { for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(request)); };
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
    `request ${number(told.request)}${told.message ? `, answered by message ${number(told.message)}` : ""}, ${REASONS[told.reason] ?? told.reason}`,
    told.summarised ? `${span(told.summarised)} summarised` : "",
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
  const mark = draw("g", { class: told.digests ? "compaction with-fallbacks" : "compaction", role: "button", "aria-label": `Compaction: ${title}; ${lines.join("; ")}` },
    draw("circle", { class: "hit", cx: x, cy: y, r: 14 }),
    draw("circle", { class: "dot", cx: x, cy: y, r: data.compactions.length > 60 ? 3 : 4.5 }));
  const show = () => {
    tip.replaceChildren(make("strong", {}, title), ...lines.map((line) => make("div", {}, line)));
    tip.hidden = false;
    tip.style.left = `${Math.max(0, Math.min(width - tip.offsetWidth, x - tip.offsetWidth / 2))}px`;
    tip.style.top = `${y + 16}px`;
  };
  const open = () => openCompaction(told);
  mark.addEventListener("click", open);
  mark.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open();
  });
  const hide = () => { tip.hidden = true; };
  for (const [event, act] of [["mouseenter", show], ["focus", show], ["mouseleave", hide], ["blur", hide]]) mark.addEventListener(event, act);
  return mark;
}
