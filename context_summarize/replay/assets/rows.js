// One request, row by row: the slider goes over all of them.

const KINDS = { system: "System", summary: "Summaries", actions: "Actions", verbatim: "Verbatim", shortened: "Shortened", made: "Added" };
const NAMES = { summary: "summary", actions: "actions", made: "added" };
const HINTS = {
  actions: "What the agent's tools did in the summarised messages, read from the calls by code.",
  made: "Not in the recording: the module adds it so that the request is valid.",
};
const MOST = 200;

const rowOf = (id) => {
  const told = data.rows[id];
  if (!Array.isArray(told)) return told;
  const [tokens, message] = told;
  return { kind: "verbatim", role: messages.get(message)?.[1] ?? "", tokens, message };
};

const partsOf = (row) => row.parts ?? messages.get(row.message)?.[3];

function expand(runs) {
  const ids = [];
  for (let at = 0; at < runs.length; at += 2) {
    for (let id = runs[at]; id < runs[at] + runs[at + 1]; id += 1) ids.push(id);
  }
  return ids;
}

// The rows of the request at this place, from what each request changes of the one before.
let walked = { at: -1, ids: [] };

function viewAt(place) {
  if (walked.at > place) walked = { at: -1, ids: [] };
  while (walked.at < place) {
    const [, , , same, runs] = data.requests[walked.at + 1];
    walked = { at: walked.at + 1, ids: [...walked.ids.slice(0, same), ...expand(runs)] };
  }
  return walked.ids;
}

const placeOf = (request) => data.requests.findIndex((line) => line[0] === request);

function showRequests() {
  const lines = data.requests;
  if (!lines.length) {
    byId("view-lede").textContent = "The recording holds no request.";
    byId("steps").remove();
    return;
  }
  const slider = byId("slider");
  slider.max = lines.length - 1;
  slider.value = slider.max;
  slider.addEventListener("input", () => showRequest(Number(slider.value)));
  const step = (by) => () => showRequest(Math.max(0, Math.min(lines.length - 1, Number(slider.value) + by)));
  byId("earlier").addEventListener("click", step(-1));
  byId("later").addEventListener("click", step(1));
  showRequest(lines.length - 1);
}

function showRequest(place) {
  const [request, message, used] = data.requests[place];
  const slider = byId("slider");
  slider.value = place;
  slider.setAttribute("aria-valuetext", `request ${number(request)} of ${number(totals.requests)}, ${number(used)} tokens`);
  byId("earlier").disabled = place === 0;
  byId("later").disabled = place === data.requests.length - 1;
  const made = data.compactions.some((line) => line.request === request) ? " A compaction was made for it." : "";
  byId("view-lede").textContent =
    (data.requests.length < totals.requests && place === data.requests.length - 1 ? `The page holds ${number(data.requests.length)} of ${number(totals.requests)} requests. ` : "") +
    `Request ${number(request)} of ${number(totals.requests)}${message ? `, answered by message ${number(message)}` : ""}: ${number(used)} of ${number(data.budget)} tokens.${made}`;
  chosen = request;
  markRequest(request);
  const ids = viewAt(place);
  showShares(ids.map(rowOf), used);
  byId("view").replaceChildren(...viewItems(ids));
}

function showShares(rows, used) {
  const sizes = Object.keys(KINDS).map((kind) => {
    const found = rows.filter((each) => each.kind === kind);
    return [kind, KINDS[kind], found.length, found.reduce((sum, each) => sum + each.tokens, 0)];
  }).filter((each) => each[2]);
  const free = Math.max(0, data.budget - used);
  if (free) sizes.push(["free", "Free", 0, free]);
  const parts = sizes.map(([kind, , , tokens]) => {
    const part = make("span", { class: `of-${kind}` });
    part.style.flexGrow = tokens;
    return part;
  });
  byId("meter").replaceChildren(...parts);
  byId("legend").replaceChildren(...sizes.map(([kind, name, count, tokens]) =>
    make("li", { class: `of-${kind}`, title: HINTS[kind] ?? null }, name, make("small", {}, count ? `${plural(count, "row")}, ${number(tokens)} tokens` : `${number(tokens)} tokens`))));
}

// Of a very long view the middle is shown on demand.
function viewItems(ids) {
  if (ids.length <= MOST) return ids.map(viewRow);
  const [head, middle, tail] = [ids.slice(0, MOST / 2), ids.slice(MOST / 2, ids.length - MOST / 2), ids.slice(ids.length - MOST / 2)];
  const item = make("li", { class: "gap" }, make("button", { class: "action", type: "button", click: () => item.replaceWith(...middle.map(viewRow)) }, `Show ${plural(middle.length, "row")} between`));
  return [...head.map(viewRow), item, ...tail.map(viewRow)];
}

const rowName = (row) => NAMES[row.kind] ?? row.role;
const rowPlace = (row) => (row.span ? span(row.span) : row.message ? `message ${number(row.message)}` : "");

function viewRow(id) {
  const row = rowOf(id);
  return make("li", { class: `row of-${row.kind}` },
    make("div", { class: "who" },
      make("b", { title: HINTS[row.kind] ?? null }, rowName(row)),
      rowPlace(row) ? make("span", {}, rowPlace(row)) : null,
      make("span", {}, plural(row.tokens, "token")),
      row.whole ? make("span", {}, `shortened from ${number(row.whole)}`) : null,
      row.key && pathTo((node) => node.key === row.key).length
        ? make("button", { class: "action link", type: "button", click: () => openNode((node) => node.key === row.key) }, "Kept and lost") : null),
    make("div", {}, rowParts(row)));
}

function rowParts(row) {
  const parts = partsOf(row);
  if (!parts) return [make("span", { class: "empty" }, "not in this page")];
  return parts.length ? parts.map(rowPart) : [make("span", { class: "empty" }, "(no text)")];
}

function rowPart([kind, tool, text]) {
  if (kind === "text") return make("div", { class: "part" }, clamp("said", text));
  const title = kind === "call" ? ["call ", make("b", {}, tool)] : ["result", tool ? [" of ", make("b", {}, tool)] : ""];
  return make("div", { class: "part" }, make("p", { class: "tool" }, title), clamp("said code", text));
}
