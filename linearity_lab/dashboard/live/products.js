// Products with large matrices of weights, several numbers at a time: a small WebAssembly module, assembled here. Its
// functions share their loops: through four rows k of the weights w (rows, columns) and two inputs i at a time, then
// through the columns j. With matrices c (n, columns) and t (n, rows):
//   forward: t_ik = Σ_j w_kj c_ij;   pull: c_ij += Σ_k t_ik w_kj;   move: w_kj += Σ_i t_ik c_ij.
import { normals } from "./random.js";

const I32 = 0x7f, V128 = 0x7b, NOTHING = 0x40;
const unsigned = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)]);
const list = (items) => [...unsigned(items.length), ...items.flat()];
const section = (id, items) => { const body = list(items); return [id, ...unsigned(body.length), ...body]; };
const simd = (...code) => [0xfd, ...code];
const get = (local) => [0x20, local], set = (local, value) => [...value, 0x21, local];
const integer = (value) => [0x41, value]; // below 64
const sum = (one, two) => [...one, ...two, 0x6a], product = (one, two) => [...one, ...two, 0x6c];
const load = (pointer, offset) => [...get(pointer), ...simd(0x00, 2, offset)];
const store = (pointer, offset, value) => [...get(pointer), ...get(value), ...simd(0x0b, 2, offset)];
const advance = (local, by) => set(local, sum(get(local), by));
const each = (index, by, end, body) => [
  ...set(index, integer(0)), 0x03, NOTHING, ...body,
  ...advance(index, integer(by)), ...get(index), ...get(end), 0x49, 0x0d, 0, 0x0b,
];

const ROWS = [0, 1, 2, 3], INPUTS = [0, 1], HALVES = [0, 16], BLOCK = 32; // bytes of a row in one pass: two vectors
const [W, C, T, NUM_ROWS, N, WIDE, TALL, K, I, J] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]; // WIDE and TALL: bytes of a row
const rowOf = (r) => 10 + r, wideOf = (i) => 14 + i, tallOf = (i) => 16 + i; // pointers
const weight = (r) => 18 + r, wide = (i) => 22 + i, pair = (r, i) => 24 + 4 * i + r; // vectors
const NUM_GIVEN = 7, NUM_POINTERS = 11, NUM_VECTORS = 14;

const pairs = (body) => ROWS.flatMap((r) => INPUTS.flatMap((i) => body(r, i)));
// Number types: bytes, alignment and instructions.
const KINDS = {
  single: {
    bytes: 4, align: 2, spread: 0x09, lane: 0x1f, plus: 0x92, keep: 0x38, multiply: 0xe6, add: 0xe4, fused: 0x85,
  },
  double: {
    bytes: 8, align: 3, spread: 0x0a, lane: 0x21, plus: 0xa0, keep: 0x39, multiply: 0xf2, add: 0xf0, fused: 0x87,
  },
};
const ZERO = pairs((r, i) => set(pair(r, i), simd(0x0c, ...Array(16).fill(0))));

function loops(bytes, before, inside, after) {
  const through = [...HALVES.flatMap(inside), ...ROWS.flatMap((r) => advance(rowOf(r), integer(BLOCK))),
    ...INPUTS.flatMap((i) => advance(wideOf(i), integer(BLOCK)))];
  const below = (base, at, stride) => sum(get(base), product(at, get(stride)));
  const inputs = [
    ...ROWS.flatMap((r) => set(rowOf(r), below(W, sum(get(K), integer(r)), WIDE))),
    ...INPUTS.flatMap((i) => [
      ...set(wideOf(i), below(C, sum(get(I), integer(i)), WIDE)),
      ...set(tallOf(i), sum(below(T, sum(get(I), integer(i)), TALL), product(get(K), integer(bytes)))),
    ]),
    ...before, ...each(J, BLOCK, WIDE, through), ...after,
  ];
  return [...each(K, 4, NUM_ROWS, each(I, 2, N, inputs)), 0x0b];
}

// fused: one instruction for multiply and add, which some browsers lack.
function assembled(kind, fused) {
  const { bytes } = kind;
  const gain = (to, one, two) => set(to, fused
    ? [...get(one), ...get(two), ...get(to), ...simd(kind.fused, 0x02)]
    : [...get(to), ...get(one), ...get(two), ...simd(kind.multiply, 0x01), ...simd(kind.add, 0x01)]);
  const spread = pairs((r, i) =>
    set(pair(r, i), [...get(tallOf(i)), ...simd(kind.spread, kind.align, bytes * r)]));
  // t_ik from the sums in its vector.
  const lane = (r, i, at) => [...get(pair(r, i)), ...simd(kind.lane, at)];
  const others = [1, 2, 3].slice(0, 16 / bytes - 1);
  const gather = pairs((r, i) => [...get(tallOf(i)), ...lane(r, i, 0),
    ...others.flatMap((at) => [...lane(r, i, at), kind.plus]), kind.keep, kind.align, bytes * r]);
  const wides = (half) => INPUTS.flatMap((i) => set(wide(i), load(wideOf(i), half)));
  const weights = (half, body) => ROWS.flatMap((r) => [...set(weight(r), load(rowOf(r), half)), ...body(r)]);
  const functions = {
    forward: loops(bytes, ZERO, (half) => [...wides(half), ...weights(half, (r) =>
      INPUTS.flatMap((i) => gain(pair(r, i), weight(r), wide(i))))], gather),
    pull: loops(bytes, spread, (half) => [...wides(half), ...weights(half, (r) =>
      INPUTS.flatMap((i) => gain(wide(i), weight(r), pair(r, i)))),
    ...INPUTS.flatMap((i) => store(wideOf(i), half, wide(i)))], []),
    move: loops(bytes, spread, (half) => [...wides(half), ...weights(half, (r) =>
      [...INPUTS.flatMap((i) => gain(weight(r), wide(i), pair(r, i))), ...store(rowOf(r), half, weight(r))])], []),
  };
  const names = Object.keys(functions), letters = (text) => [...text].map((letter) => letter.charCodeAt(0));
  const locals = [2, NUM_POINTERS, I32, NUM_VECTORS, V128];
  return new Uint8Array([
    ...letters("\0asm"), 1, 0, 0, 0,
    ...section(1, [[0x60, ...list(Array(NUM_GIVEN).fill([I32])), 0]]),
    ...section(2, [[...list(letters("e")), ...list(letters("m")), 2, 0, 1]]),
    ...section(3, names.map(() => [0])),
    ...section(7, names.map((name, at) => [...list(letters(name)), 0, at])),
    ...section(10, names.map((name) => list([...locals, ...functions[name]]))),
  ]);
}

const compiled = {}; // shared by all networks; null without WebAssembly

function module(name) {
  if (name in compiled) return compiled[name];
  try {
    const codes = [true, false].map((fused) => assembled(KINDS[name], fused));
    const code = codes.find((bytes) => WebAssembly.validate(bytes));
    compiled[name] = code ? new WebAssembly.Module(code) : null;
  } catch { // forbidden, or unknown
    compiled[name] = null;
  }
  return compiled[name];
}

const FEWEST = 64; // fewer neurons on either side cost more to copy than they save
const MANY = 2 ** 18; // from this number of weights on, single precision is worth its rounding unless that is amplified

// The precision for a matrix, "single" or "double"; null if loops are as fast, or without WebAssembly.
// exact: single precision is not enough.
export function precisionFor(neurons, fanIn, exact) {
  const name = exact || neurons * fanIn < MANY ? "double" : "single";
  return Math.min(neurons, fanIn) >= FEWEST && module(name) ? name : null;
}

// N(0, 1) weights (neurons, fanIn) between two wide layers, and their products with at most `most` inputs.
export class LargeMatrix {
  constructor(precision, seed, tensor, neurons, fanIn, most) {
    const padded = (size, to) => Math.ceil(size / to) * to;
    const { bytes } = KINDS[precision];
    const Numbers = precision === "single" ? Float32Array : Float64Array;
    const rows = padded(neurons, ROWS.length), columns = padded(fanIn, BLOCK / bytes);
    Object.assign(this, { neurons, fanIn, bytes, rows, columns });
    const count = rows * columns, inputs = padded(most, INPUTS.length);
    const size = bytes * (count + inputs * (columns + rows));
    const memory = new WebAssembly.Memory({ initial: Math.ceil(size / 65536) });
    this.weights = new Numbers(memory.buffer, 0, count);
    this.wide = new Numbers(memory.buffer, bytes * count, inputs * columns);
    this.tall = new Numbers(memory.buffer, bytes * count + this.wide.byteLength, inputs * rows);
    this.done = new WebAssembly.Instance(module(precision), { e: { m: memory } }).exports;
    normals(seed, tensor, neurons, fanIn, this.weights, columns);
  }

  run(name, n) {
    const { wide, tall, rows, columns, bytes } = this;
    this.done[name](0, wide.byteOffset, tall.byteOffset, rows, n + (n % 2), bytes * columns, bytes * rows);
  }

  // scale · a Wᵀ, (n, neurons).
  forward(a, n, scale, z) {
    fill(this.wide, this.columns, a, this.fanIn, n);
    this.run("forward", n);
    take(this.tall, this.rows, scale, z, this.neurons, n);
  }

  // scale · above W, (n, fanIn).
  pull(above, n, scale, found) {
    fill(this.tall, this.rows, above, this.neurons, n);
    this.wide.fill(0, 0, (n + 1) * this.columns);
    this.run("pull", n);
    take(this.wide, this.columns, scale, found, this.fanIn, n);
  }

  // W ← W + Σ_i strengths_i delta_i a_iᵀ.
  move(strengths, delta, a) {
    const n = strengths.length, { tall, rows, neurons } = this;
    fill(this.wide, this.columns, a, this.fanIn, n);
    fill(tall, rows, delta, neurons, n);
    for (let i = 0; i < n; i++) for (let k = 0, at = i * rows; k < neurons; k++) tall[at++] *= strengths[i];
    this.run("move", n);
  }
}

// Pad an odd number of inputs with zeros.
function fill(to, stride, from, length, n) {
  for (let i = 0, at = 0; i < n; i++) for (let k = 0, row = i * stride; k < length; k++) to[row++] = from[at++];
  if (n % 2) to.fill(0, n * stride, (n + 1) * stride);
}

function take(from, stride, scale, to, length, n) {
  for (let i = 0, at = 0; i < n; i++) for (let k = 0, row = i * stride; k < length; k++) to[at++] = scale * from[row++];
}
