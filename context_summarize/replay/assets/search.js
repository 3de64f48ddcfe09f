// Search over messages and summaries, as plain text without regard to case.

const AROUND = 90;

// What can be found: each with the texts that are searched, made when somebody searches first.
let searched = null;

function everything() {
  const flat = (nodes) => nodes.flatMap((node) => [node, ...flat(node.children)]);
  return searched ??= [
    ...flat(data.nodes).filter((node) => node.kept).map((node) => ({ node, text: [node.text, ...node.directives, ...node.ledger.map((each) => each[1])].join(" ") })),
    ...data.messages.map((message) => ({ message, text: message[3].map(([, tool, text]) => (tool ? `${tool} ${text}` : text)).join(" ") })),
  ].map((each) => ({ ...each, text: each.text.replace(/\s+/g, " ") })).map((each) => ({ ...each, lower: each.text.toLowerCase() }));
}

function showSearch() {
  let waiting = 0;
  byId("query").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 120);
  });
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    search();
  });
}

function searchFor(value) {
  byId("query").value = value;
  search();
  goTo(byId("query"));
}

function search() {
  const query = byId("query").value.trim().replace(/\s+/g, " ").toLowerCase();
  const found = query.length < 2 ? [] : everything().filter((each) => each.lower.includes(query));
  const summaries = found.filter((each) => each.node).length;
  byId("found").textContent = query.length < 2 ? (query ? "Type at least two characters." : "")
    : `${plural(found.length - summaries, "message")} and ${plural(summaries, "summary", "summaries")} hold it.`;
  byId("results").replaceChildren(...(found.length ? [inBatches(make("ul", { class: "results" }), found.length, (from, to) => found.slice(from, to).map((each) => result(each, query)), 20)] : []));
}

function result(each, query) {
  const { node, message } = each;
  const links = [];
  const whole = make("div", { class: "inside", hidden: true, id: message ? `found-${message[0]}` : null });
  if (node) links.push(make("button", { class: "action link", type: "button", click: () => openNode((other) => other === node) }, "Open the summary"));
  else {
    const covering = data.nodes.find((other) => message[0] >= other.first && message[0] <= other.last);
    links.push(opener({ class: "action" }, whole, () => message[3].map(rowPart), "Show the message"));
    links.push(covering
      ? make("button", { class: "action link", type: "button", click: () => openNode((other) => other === covering) }, `Summarised: ${span([covering.first, covering.last])}`)
      : make("span", { class: "where" }, "not summarised"));
  }
  return make("li", { class: node ? "result of-summary" : "result" },
    make("div", { class: "who" }, make("b", {}, node ? `summary of ${span([node.first, node.last])}` : `message ${number(message[0])}`), make("span", {}, node ? `level ${node.level}` : message[1])),
    excerpt(each, query), make("div", { class: "links" }, links), whole);
}

// Lower case may have another length than the text, for a few letters; then the mark is left out.
function excerpt({ text, lower }, query) {
  const at = lower.length === text.length ? lower.indexOf(query) : -1;
  if (at < 0) return make("div", { class: "said" }, text.slice(0, 2 * AROUND));
  const [from, to] = [Math.max(0, at - AROUND), at + query.length];
  return make("div", { class: "said" }, from ? "… " : "", text.slice(from, at), make("mark", {}, text.slice(at, to)), text.slice(to, to + AROUND), to + AROUND < text.length ? " …" : "");
}
