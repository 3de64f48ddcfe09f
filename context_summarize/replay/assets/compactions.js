// The compactions: what each summarised, and the request without it and with it, side by side.

const openers = new Map();

function showCompactions() {
  const list = byId("compactions");
  if (!data.compactions.length) {
    byId("compactions-head").remove();
    list.replaceWith(make("p", { class: "quiet" }, "No compaction ran: no request became large enough. Use a smaller window to see some."));
    return;
  }
  list.append(...data.compactions.map((told, at) => {
    const detail = make("div", { class: "detail", id: `compaction-${at}`, hidden: true });
    const button = opener({ class: "node made" }, detail, () => compactionDetail(told),
      make("span", { class: "level" }, make("span", {}, "request ", number(told.request)), told.digests ? make("span", { class: "badge", title: "The request shows fallback summaries, written by code." }, "fallback") : null),
      make("span", { class: "range" }, told.summarised ? [make("span", { class: "hidden" }, "summarised messages "), range(...told.summarised)] : "none"),
      make("span", { class: "why" }, [REASONS[told.reason] ?? told.reason, told.merged ? plural(told.merged, "merge") : ""].filter(Boolean).join(", ")),
      make("span", { class: "sizes" }, make("span", { class: "was" }, `${number(told.before_tokens)} → `), number(told.after_tokens), make("span", { class: "hidden" }, " tokens")));
    openers.set(told, button);
    return make("li", {}, button, detail);
  }));
  arrowKeys(list, ".made");
}

function openCompaction(told) {
  const button = openers.get(told);
  if (button.getAttribute("aria-expanded") === "false") button.click();
  goTo(button);
}

function compactionDetail(told) {
  const place = placeOf(told.request);
  const parts = [
    make("p", { class: "meta" }, compactionLines(told).join(" · ")),
    make("p", { class: "meta" }, make("button", { class: "action link", type: "button", click: () => { showRequest(place); goTo(byId("slider")); } }, "Show this request row by row")),
  ];
  if (!told.before) return [...parts, make("p", { class: "empty" }, "It is the first request: there is no view before it.")];
  const [before, after] = [expand(told.before), viewAt(place)];
  const kept = new Set(after);
  const stays = new Set(before.filter((id) => kept.has(id)));
  return [...parts, make("div", { class: "pair" },
    side("Without the compaction", before, told.before_tokens, stays, "gone"),
    side("With it", after, told.after_tokens, stays, "new"))];
}

function side(title, ids, tokens, stays, style) {
  const changed = ids.filter((id) => !stays.has(id)).length;
  const word = style === "gone" ? `${number(changed)} go` : `${number(changed)} new`;
  return make("div", { class: "side" },
    make("h3", {}, title), make("p", { class: "meta" }, `${plural(ids.length, "row")}, ${number(tokens)} tokens; ${word}`),
    changesOf(ids, stays, style));
}

// Rows that both sides hold are folded into one line for each run of them.
function changesOf(ids, stays, style) {
  const items = [];
  for (const id of ids) {
    const last = items[items.length - 1];
    if (stays.has(id) && Array.isArray(last)) last.push(id);
    else items.push(stays.has(id) ? [id] : id);
  }
  return inBatches(make("ol", { class: "minis" }), items.length, (from, to) =>
    items.slice(from, to).map((item) => (Array.isArray(item) ? unchanged(item) : mini(item, style))));
}

function unchanged(ids) {
  const rows = ids.map(rowOf);
  const numbers = rows.flatMap((row) => row.span ?? row.message ?? []);
  const where = numbers.length ? `, ${span([numbers[0], numbers[numbers.length - 1]])}` : "";
  const details = make("details", { class: "stays" }, make("summary", {}, `${plural(ids.length, "row")} unchanged${where}`));
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) details.append(inBatches(make("ol", { class: "minis" }), ids.length, (from, to) => ids.slice(from, to).map((id) => mini(id, ""))));
  });
  return make("li", {}, details);
}

function mini(id, style) {
  const row = rowOf(id);
  const first = (partsOf(row) ?? [])[0];
  const start = first ? (first[0] === "call" ? `${first[1]} ` : "") + first[2].slice(0, 160) : "";
  const details = make("details", {}, make("summary", {},
    make("b", {}, rowName(row)), " ", make("span", { class: "where" }, rowPlace(row) || plural(row.tokens, "token")), make("span", { class: "start" }, start)));
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) details.append(make("div", { class: "inside" }, rowParts(row)));
  });
  return make("li", { class: `mini of-${row.kind} ${style}` }, details);
}
