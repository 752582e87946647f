// The graph as a picture: a box for every group, taller with more neurons, and all edges.
import { INPUT, OUTPUT, layout } from "./model.js";

export const HALF = 50; // of the width of a box
const LOW = 24, HIGH = 26; // half the height of a box of one neuron, and the largest addition to it
const APART = [[150, 112], [128, 124]]; // pixels between two layers, and between two groups of one; on a narrow canvas
const CLEAR = 14, LIFT = 34; // beside obstacles, and for every layer that an edge passes
const NAMESPACE = "http://www.w3.org/2000/svg";

export function make(name, attributes = {}, ...inside) {
  const found = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) found.setAttribute(key, value);
  found.append(...inside);
  return found;
}

// Neurons of each group at the width m, for the heights of boxes.
function neurons({ groups }, { width, ends }) {
  const count = ({ size, factor, power }) => Math.max(1, size ?? Math.round(factor * width ** power)) || 1;
  return new Map([[INPUT, ends.input], ...groups.map((each) => [each.id, count(each)]), [OUTPUT, ends.output]]);
}

// From [layer, row] to drawing coordinates and back; layers are side by side, or stacked on a narrow canvas.
export function toDrawing([layer, row], turned) {
  const [along, across] = APART[Number(turned)];
  return turned ? [row * across, layer * along] : [layer * along, row * across];
}

export function toPlace([x, y], turned) {
  const [along, across] = APART[Number(turned)];
  return turned ? [y / along, x / across] : [x / along, y / across];
}

// id → { x, y, half }: the middle of each box, and half its height.
export function boxes(state, data, turned) {
  const counts = neurons(state, data), most = Math.log(Math.max(2, ...counts.values()));
  return new Map([...layout(state)].map(([id, place]) => {
    const [x, y] = toDrawing(place, turned), half = LOW + HIGH * Math.max(0, Math.log(counts.get(id)) / most);
    return [id, { x, y, half, count: counts.get(id) }];
  }));
}

export function bounds(found, edges, turned) {
  const passed = edges.map((edge) => way(edge, found, turned).at).map(([x, y]) => ({ x, y, half: 0, wide: 20 }));
  const all = [...found.values(), ...passed], left = Math.min(...all.map(({ x, wide }) => x - (wide ?? HALF)));
  const right = Math.max(...all.map(({ x, wide }) => x + (wide ?? HALF)));
  const top = Math.min(...all.map(({ y, half }) => y - half)), bottom = Math.max(...all.map(({ y, half }) => y + half));
  return { left: left - 16, right: right + 16, top: top - 14, bottom: bottom + 14 };
}

// Start of a new edge at this box.
export function portOf({ x, y, half }, turned) {
  return turned ? [x, y + half] : [x + HALF, y];
}

// The path of an edge and the place of its number: straight, or around boxes in between. Here a is along the layers.
export function way(edge, found, turned) {
  const flat = ({ x, y, half }) => (turned ? { a: y, c: x, ha: half, hc: HALF } : { a: x, c: y, ha: HALF, hc: half });
  const point = (a, c) => (turned ? [c, a] : [a, c]);
  const from = flat(found.get(edge.source)), to = flat(found.get(edge.target)), aside = edge.kind === "skip" ? 12 : 0;
  const start = from.a + from.ha, end = to.a - to.ha, path = (...points) => `M${points[0]} C${points.slice(1).join(" ")}`;
  const between = [...found].filter(([id]) => id !== edge.source && id !== edge.target).map(([, box]) => flat(box));
  const blocked = between.filter(({ a, c, ha, hc }) => [1, 2, 3, 4, 5, 6, 7, 8, 9].some((tenth) =>
    Math.abs(start + (tenth / 10) * (end - start) - a) < ha + 4 && Math.abs(from.c + (tenth / 10) * (to.c - from.c) - c) < hc + 4));
  if (end - start > 8 && !blocked.length) {
    const [c0, c1, bend] = [from.c + aside, to.c + aside, 0.4 * (end - start)];
    const points = [point(start, c0), point(start + bend, c0), point(end - bend, c1), point(end, c1)];
    return { path: path(...points), at: point((start + end) / 2, (c0 + c1) / 2) };
  }
  const side = Math.sign(to.c - from.c), [near, far] = [from.c + side * from.hc, to.c - side * to.hc];
  if (end - start <= 8 && side * (far - near) > 8 && !blocked.length) { // both are in the same layer
    const points = [point(from.a, near), point(from.a, (near + far) / 2), point(to.a, (near + far) / 2), point(to.a, far)];
    return { path: path(...points), at: point((from.a + to.a) / 2, (near + far) / 2) };
  }
  const layers = Math.max(1, Math.abs(to.a - from.a) / APART[Number(turned)][0]), lean = end > start ? 14 : -14;
  const beside = Math.min(...[from, to, ...blocked].map(({ c, hc }) => c - hc)) - CLEAR - LIFT * (layers - 1);
  const [c0, c1] = [from.c - from.hc, to.c - to.hc], pull = (beside - (c0 + c1) / 8) / 0.75; // a cubic reaches 3/4 of it
  const points = [point(from.a + lean, c0), point(from.a + 2 * lean, pull), point(to.a - 2 * lean, pull), point(to.a - lean, c1)];
  return { path: path(...points), at: point((from.a + to.a) / 2, beside) };
}

export function law({ size, factor, power }) {
  if (size !== null) return [size.toLocaleString("en-US"), ""];
  const before = factor === 1 ? "" : `${factor} `;
  return [`${before}m`, power === 1 ? "" : String(power)];
}

// Draw everything again.
export function draw(layer, model, found, scene) {
  const { judged, chosen, words } = scene;
  const parts = model.now.edges.map((edge) => drawEdge(edge, model, found, scene));
  const against = new Set(judged.at ?? []);
  for (const [id, box] of found) {
    const group = model.part(id), name = model.name(id);
    const kind = ["box", group ? "group" : "end", against.has(name) ? "against" : "", id === chosen ? "chosen" : ""];
    const [count, power] = group ? law(group) : [box.count.toLocaleString("en-US"), ""];
    const unit = judged.channels?.includes(name) ? ` ${words.channels}` : "";
    const label = make("text", { class: "size", y: 17 }, count, make("tspan", { dy: -5, "font-size": 10 }, power));
    label.append(make("tspan", { dy: power ? 5 : 0 }, unit));
    const degree = judged.degrees?.[name];
    const title = make("title", {}, degree === undefined ? name : `${name}: ${words.degree} ${number(degree)}`);
    const rect = { x: -HALF, y: -box.half, width: 2 * HALF, height: 2 * box.half, rx: 8 };
    const inside = [title, make("rect", rect), make("text", { class: "name", y: -2 }, short(name)), label];
    if (id !== OUTPUT) {
      const [x, y] = portOf({ ...box, x: 0, y: 0 }, scene.turned), wide = scene.turned ? 40 : 18, high = scene.turned ? 15 : box.half;
      inside.push(make("circle", { class: "port", cx: x, cy: y, r: 6 }));
      inside.push(make("rect", { class: "reach", "data-port": id, x: x - wide + 2, y: y - high + 2, width: 2 * wide, height: 2 * high }));
    }
    parts.push(make("g", { class: kind.join(" "), "data-group": id, transform: `translate(${box.x} ${box.y})` }, ...inside));
  }
  layer.replaceChildren(...parts);
}

function drawEdge(edge, model, found, { judged, chosen, turned }) {
  const { path, at } = way(edge, found, turned), ends = [model.name(edge.source), model.name(edge.target)];
  const wrong = (judged.at ?? []).includes(ends.join(" → "));
  const kind = ["edge", edge.kind, edge.drop_probability ? "dropped" : "", wrong ? "against" : "", edge.id === chosen ? "chosen" : ""];
  const inside = [make("path", { class: "reach", d: path }), make("path", { class: "line", d: path, "marker-end": "url(#head)" })];
  const count = edge.kind === "skip" ? undefined : judged.counts?.[ends[1]]?.[ends[0]];
  if (count !== undefined) {
    const text = number(count), wide = 10 + 7.4 * text.length;
    inside.push(make("g", { class: "degree", transform: `translate(${at[0]} ${at[1]})` },
      make("rect", { x: -wide / 2, y: -10, width: wide, height: 20, rx: 10 }), make("text", { y: 4.5 }, text)));
  }
  return make("g", { class: kind.join(" "), "data-edge": edge.id }, ...inside);
}

export function number(value) {
  return Number(value.toPrecision(4)).toLocaleString("en-US");
}

function short(name) {
  return name.length > 12 ? `${name.slice(0, 11)}…` : name;
}
