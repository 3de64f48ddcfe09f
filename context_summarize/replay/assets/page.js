// Helpers, and the head of the page.

const data = JSON.parse(document.getElementById("data").textContent);
const totals = data.totals;
const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en-US");
const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)} %`;
const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
const span = (told) => `${told[0] === told[1] ? "message" : "messages"} ${range(...told)}`;
const range = (first, last) => (first === last ? number(first) : `${number(first)}–${number(last)}`);

// All data becomes text: nothing here parses markup.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

// A text that is long at first shows its start, with a button for the rest.
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

// A long list grows in batches. `items(from, to)` makes the elements of a part of it.
function inBatches(list, count, items, batch = 40) {
  let shown = 0;
  const more = make("button", { class: "action", type: "button", click: () => add(true) });
  function add(focus) {
    const made = items(shown, Math.min(count, shown + batch));
    shown += batch;
    list.append(...made);
    if (focus && made.length) { made[0].tabIndex = -1; made[0].focus({ preventScroll: true }); }
    if (count > shown) more.textContent = `Show ${number(Math.min(count - shown, batch))} more of ${number(count - shown)}`;
    else more.remove();
  }
  const whole = make("div", {}, list, more);
  add(false);
  return whole;
}

// A button that opens what belongs to it. `detail` is filled when it is opened first.
function opener(attributes, detail, fill, ...children) {
  const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": detail.id, ...attributes, click: () => {
    if (detail.hidden && !detail.childElementCount) detail.append(...fill());
    detail.hidden = !detail.hidden;
    button.setAttribute("aria-expanded", String(!detail.hidden));
  } }, ...children);
  return button;
}

// The arrow keys go from one button of a list to the next that can be seen.
function arrowKeys(list, selector) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches(selector)) return;
    event.preventDefault();
    const seen = [...list.querySelectorAll(selector)].filter((each) => each.offsetParent !== null);
    seen[seen.indexOf(event.target) + step]?.focus();
  });
}

function goTo(element) {
  element.scrollIntoView({ block: "start" });
  element.focus({ preventScroll: true });
}

const messages = new Map(data.messages.map((message) => [message[0], message]));
const lastMessage = Math.max(1, totals.numbered);

// --- head ---

function showHead() {
  const source = data.source || "Recorded session";
  document.title = `Replay of ${source}`;
  byId("source").textContent = source;
  const room = data.window === null
    ? `requests of at most ${number(data.budget)} tokens`
    : `a window of ${number(data.window)} tokens, ${number(data.budget)} of them for a request`;
  byId("through").textContent =
    `${plural(totals.numbered, "message")}${totals.messages > totals.numbered ? ` and ${plural(totals.messages - totals.numbered, "row")} of the host` : ""}, ` +
    `${number(totals.history_tokens)} tokens in total, replayed with ${room}.`;
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
  const merged = data.compactions.reduce((sum, line) => sum + line.merged, 0);
  return [
    ["Largest request", number(totals.largest_view), `${percent(totals.largest_view / data.budget)} of the budget`],
    ["Requests", number(totals.requests), `in ${totals.seconds.toFixed(1)} s`],
    ["Compactions", number(data.compactions.length), merged ? plural(merged, "merge") : "no merge"],
    ["Rows unchanged", percent(totals.stable_share, 1), "for a prompt cache"],
    ["Calls for summaries", number(totals.provider_calls), totals.failed_calls ? `${number(totals.failed_calls)} failed` : "none failed"],
    ["Tokens to summarise", number(totals.provider_input_tokens), `${number(totals.provider_output_tokens)} written`],
  ].map(([name, value, more]) =>
    make("div", {}, make("dt", {}, name), make("dd", { class: "value" }, value), more ? make("dd", { class: "more" }, more) : null));
}
