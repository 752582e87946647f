// The edited graph: groups and edges with identities, so that renaming never changes another one; places of groups;
// undo and redo.
export const INPUT = "input", OUTPUT = "output";
const MOST_STEPS = 200; // maximum number of undo steps
const FREE = { size: null, activation: null, factor: 1, power: 1 };
const EMPTY = 4; // columns from the input to the output, before there is a group
const EDGE = { kind: "dense", drop_probability: 0, kernel_size: 3 };

export class Model {
  // changed: callback after every edit.
  constructor(changed) {
    Object.assign(this, { changed, past: [], future: [], count: 0, now: { groups: [], edges: [], places: {} } });
  }

  // Load another graph, with names as identities; undo restores the previous one.
  adopt({ groups, edges }, places, isFirst) {
    const ids = new Map([[INPUT, INPUT], [OUTPUT, OUTPUT]]);
    const next = { groups: groups.map((each) => ({ ...FREE, ...each, id: this.id() })), edges: [], places: {} };
    for (const { id, name } of next.groups) if (!ids.has(name)) ids.set(name, id);
    for (const edge of edges) {
      const [source, target] = [ids.get(edge.source), ids.get(edge.target)];
      if (source && target) next.edges.push({ ...EDGE, ...edge, id: this.id(), source, target });
    }
    for (const [name, id] of ids) if (places[name]) next.places[id] = places[name];
    if (isFirst) this.now = next;
    else this.step(next);
  }

  id() {
    this.count += 1;
    return `part ${this.count}`;
  }

  // A user's edit; groups keep their places, however the layers change.
  edit(change, stays = true) {
    const next = structuredClone(this.now);
    if (stays) next.places = Object.fromEntries(layout(this.now));
    change(next);
    this.step(next);
    this.changed();
  }

  step(next) {
    this.past.push(this.now);
    if (this.past.length > MOST_STEPS) this.past.shift();
    this.future = [];
    this.now = next;
  }

  undo() {
    this.turn(this.past, this.future);
  }

  redo() {
    this.turn(this.future, this.past);
  }

  turn(from, to) {
    if (!from.length) return;
    to.push(this.now);
    this.now = from.pop();
    this.changed();
  }

  part(id) {
    return this.now.groups.find((each) => each.id === id) ?? this.now.edges.find((each) => each.id === id);
  }

  name(id) {
    return this.now.groups.find((each) => each.id === id)?.name ?? id;
  }

  // Add a group, with an edge from another one if it was drawn from there; return its identity.
  addGroup(place, source) {
    const id = this.id(), names = new Set(this.now.groups.map((each) => each.name));
    let name = "a";
    for (let at = 0; names.has(name); at += 1) name = "abcdefghijklmnopqrstuvwxyz"[at] ?? `g${at}`;
    this.edit((next) => {
      next.groups.push({ ...FREE, id, name });
      next.places[id] = place;
      if (source) next.edges.push({ ...EDGE, id: this.id(), source, target: id });
    });
    return id;
  }

  // Add an edge; return the existing one, or null if none is possible. It shares weights if the others do.
  link(source, target) {
    if (source === target || source === OUTPUT || target === INPUT) return null;
    const others = this.now.edges.filter((each) => each.target === target && each.kind !== "skip");
    const there = others.find((each) => each.source === source);
    if (there) return there.id;
    const id = this.id(), kind = others[0]?.kind ?? EDGE.kind;
    this.edit((next) => next.edges.push({ ...EDGE, id, kind, source, target, kernel_size: others[0]?.kernel_size ?? 3 }));
    return id;
  }

  put(id, place) {
    this.edit((next) => { next.places[id] = place; });
  }

  // Place every group in its layer.
  arrange() {
    this.edit((next) => { next.places = {}; }, false);
  }

  clear() {
    this.edit((next) => Object.assign(next, { groups: [], edges: [], places: {} }), false);
  }

  remove(id) {
    this.edit((next) => {
      next.groups = next.groups.filter((each) => each.id !== id);
      next.edges = next.edges.filter((each) => ![each.id, each.source, each.target].includes(id));
      delete next.places[id];
    });
  }

  // Apply the text of a field; an edge drops settings that its kind does not have.
  write(id, field, value) {
    this.edit((next) => {
      const part = [...next.groups, ...next.edges].find((each) => each.id === id);
      part[field] = value;
      if (field === "kind" && value !== "dense") part.drop_probability = 0;
    });
  }

  // As JSON: names, and settings that differ from their defaults.
  data() {
    const plain = (part, defaults) => Object.fromEntries(
      Object.entries(part).filter(([name, value]) => name !== "id" && value !== defaults[name]),
    );
    return {
      groups: this.now.groups.map((each) => plain(each, FREE)),
      edges: this.now.edges.map((each) => plain(
        { ...each, source: this.name(each.source), target: this.name(each.target) }, EDGE,
      )),
    };
  }

  // Name → its place, if moved.
  named() {
    return Object.fromEntries(Object.entries(this.now.places).map(([id, at]) => [this.name(id), at]));
  }
}

// id → [column, row] of every group, the input and the output: its place if moved, else in its layer.
export function layout({ groups, edges, places }) {
  const depth = new Map([[INPUT, 0], ...groups.map(({ id }) => [id, 1])]);
  for (let round = 0; round < groups.length; round += 1) { // enough for the longest path; cycles end with it
    for (const { source, target } of edges) {
      if (depth.has(target)) depth.set(target, Math.min(Math.max(depth.get(target), depth.get(source) + 1), groups.length));
    }
  }
  depth.set(OUTPUT, groups.length ? Math.max(...depth.values()) + 1 : EMPTY);
  const layers = new Map();
  for (const [id, at] of depth) layers.set(at, [...(layers.get(at) ?? []), id]);
  const found = new Map();
  for (const [at, ids] of layers) ids.forEach((id, row) => found.set(id, places[id] ?? [at, row - (ids.length - 1) / 2]));
  return found;
}
