// The settings of groups and edges as fields: of the selection on the canvas, and of all in two tables.
// Each field belongs to its group or edge by identity, not by row.
import { INPUT, OUTPUT } from "./model.js";

// field → [type, meaning of an empty field, smallest, step]
const GROUP_FIELDS = { name: ["text", ""], size: ["number", null, 1, 1], factor: ["number", 1, 0, "any"], power: ["number", 1, 0, "any"],
  activation: ["choice", null] };
const EDGE_FIELDS = { source: ["choice"], target: ["choice"], kind: ["choice"], drop_probability: ["number", 0, 0, "any"],
  kernel_size: ["number", 3, 1, 1] };

export function element(name, properties = {}, ...inside) {
  const found = Object.assign(document.createElement(name), properties);
  found.append(...inside);
  return found;
}

export function button(words, press, more = {}) {
  const found = element("button", { type: "button", textContent: words, ...more });
  found.addEventListener("click", press);
  return found;
}

// One field; `show` updates it without disturbing a user who edits it.
function field(name, [type, empty, least, step], id, { model, words, options }) {
  const input = element(type === "choice" ? "select" : "input");
  if (type === "text") input.maxLength = 40;
  if (type === "number") Object.assign(input, { type, min: least, step, inputMode: "decimal" });
  if (name === "size") input.placeholder = "m";
  let shown, listed;
  const show = () => {
    const part = model.part(id);
    if (!part) return;
    if (type === "choice") {
      const choices = options[name](), text = JSON.stringify(choices);
      if (text !== listed) input.replaceChildren(...choices.map(([value, title]) => element("option", { value, textContent: title })));
      if (text !== listed) shown = undefined;
      listed = text;
    }
    const text = String(part[name] ?? "");
    if (text !== shown) input.value = text;
    shown = text;
    const [group, edge] = [part.name, part.source && `${model.name(part.source)} → ${model.name(part.target)}`];
    input.setAttribute("aria-label", `${words.fields[name]}, ${group ?? edge}`);
    input.readOnly = (name === "kernel_size" && part.kind !== "shared") || (name === "drop_probability" && part.kind !== "dense") ||
      (["factor", "power"].includes(name) && part.size !== null);
  };
  input.addEventListener("change", () => {
    const given = type === "number" ? (input.value === "" ? empty : Number(input.value)) : input.value || empty;
    shown = input.value;
    model.write(id, name, given);
  });
  show();
  return { input, show };
}

const fieldsOf = (part) => Object.entries(part.source ? EDGE_FIELDS : GROUP_FIELDS);

// Shared by all fields: the model, the texts, and the choices.
export function context(model, words) {
  const names = () => model.now.groups.map(({ id, name }) => [id, name || "–"]);
  const options = {
    source: () => [[INPUT, INPUT], ...names()],
    target: () => [...names(), [OUTPUT, OUTPUT]],
    kind: () => Object.entries(words.kinds),
    activation: () => [["", "–"], ...Object.entries(words.activations)],
  };
  return { model, words, options };
}

// The settings of the selection, beside it.
export class Inspector {
  constructor(about, remove, close) {
    Object.assign(this, { about, fields: [] });
    this.root = element("div", { className: "inspector", hidden: true });
    this.root.setAttribute("role", "group");
    this.remove = button(about.words.remove, remove, { className: "remove" });
    this.close = button("×", close, { ariaLabel: about.words.close, className: "close" });
  }

  show(id) {
    const part = id && this.about.model.part(id);
    this.root.hidden = !part;
    if (part && id !== this.id) {
      this.fields = fieldsOf(part).filter(([name]) => !["source", "target"].includes(name))
        .map(([name, kind]) => ({ name, ...field(name, kind, id, this.about) }));
      const labels = this.fields.map(({ name, input }) => element("label", {}, this.about.words.fields[name], input));
      this.root.replaceChildren(...labels, this.remove, this.close);
      this.root.setAttribute("aria-label", this.about.words.chosen);
    }
    this.id = part ? id : null;
    for (const each of this.fields) each.show();
    // Factor and power do not apply to a fixed size, nor a filter to weights that are not shared.
    for (const { input } of this.fields) input.parentElement.hidden = input.readOnly ?? false;
  }
}

// All groups and edges, one row each. Rows live as long as their group or edge, so that editing is not disturbed.
export class Tables {
  constructor(about, { addGroup, addEdge, remove }) {
    Object.assign(this, { about, rows: new Map() });
    const { words } = about;
    this.remove = remove;
    this.parts = { groups: table(words, GROUP_FIELDS, words.groups, [words.degree, ""]), edges: table(words, EDGE_FIELDS, words.edges, [""]) };
    this.root = element("details", { className: "tables" }, element("summary", { textContent: words.tables }), element("p", { className: "note", textContent: words.note }),
      this.parts.groups.root, button(words.group, addGroup), this.parts.edges.root, button(words.edge, addEdge));
  }

  show(judged) {
    const { model } = this.about, there = new Set();
    for (const [name, { body }] of Object.entries(this.parts)) {
      model.now[name].forEach((part, at) => {
        there.add(part.id);
        const row = this.rows.get(part.id) ?? this.row(part);
        if (body.children[at] !== row.root) body.insertBefore(row.root, body.children[at] ?? null);
        for (const each of row.fields) each.show();
        const degree = judged.degrees?.[part.name];
        if (row.degree) row.degree.textContent = degree === undefined ? "" : degree.toLocaleString("en-US", { maximumFractionDigits: 1 });
        row.delete.ariaLabel = `${this.about.words.remove} ${part.name ?? `${model.name(part.source)} → ${model.name(part.target)}`}`;
      });
    }
    for (const [id, { root }] of this.rows) {
      if (there.has(id)) continue;
      root.remove();
      this.rows.delete(id);
    }
  }

  row(part) {
    const { words } = this.about, fields = fieldsOf(part).map(([name, kind]) => ({ name, ...field(name, kind, part.id, this.about) }));
    const cells = fields.map(({ name, input }) => cell(words.fields[name], input));
    const degree = part.source ? null : element("span");
    if (degree) cells.push(cell(words.degree, degree));
    const gone = button("×", () => this.remove(part.id), { className: "close" });
    const found = { root: element("tr", {}, ...cells, cell("", gone)), fields, degree, delete: gone };
    this.rows.set(part.id, found);
    return found;
  }
}

function cell(label, inside) {
  const found = element("td", {}, inside);
  found.dataset.label = label;
  return found;
}

function table(words, fields, caption, more) {
  const heads = [...Object.keys(fields).map((name) => words.fields[name]), ...more];
  const head = element("tr", {}, ...heads.map((text) => element(text ? "th" : "td", text ? { textContent: text, scope: "col" } : {})));
  const body = element("tbody");
  return { body, root: element("table", {}, element("caption", { textContent: caption }), element("thead", {}, head), body) };
}
