// Fully connected networks of one input and one output in the NTK parameterization, in double precision:
// z = W a / √fan_in + b, all W, b ~ N(0, 1), hidden layers with biases, the output layer without.
// Matrices are row by row: activations (n, m), weights (neurons, fan_in).
import { FUNCTIONS } from "./functions.js";
import { LargeMatrix, precisionFor } from "./products.js";
import { normals } from "./random.js";

// State of a network on n inputs: f (n), and for each hidden layer z, σ(z), σ'(z) and δ = ∂f/∂z, all (n, m).
export class Batch {
  constructor(inputs, hidden) {
    this.size = inputs.length;
    this.inputs = Float64Array.from(inputs);
    this.f = new Float64Array(this.size);
    const zeros = (m) => new Float64Array(this.size * m);
    this.layers = hidden.map((m) => ({ width: m, z: zeros(m), a: zeros(m), slope: zeros(m), delta: zeros(m) }));
  }

  // Inputs of hidden layer `index`, or of the output layer.
  below(index) {
    return index === 0 ? this.inputs : this.layers[index - 1].a;
  }
}

export class Network {
  // hidden: widths of the hidden layers; most: maximum number of inputs per pass; exact: rounding is amplified.
  constructor(hidden, activation, seed, most, exact) {
    this.hidden = hidden;
    this.activate = FUNCTIONS[activation];
    const sizes = [1, ...hidden, 1];
    this.layers = sizes.slice(1).map((neurons, index) => {
      const fanIn = sizes[index], precision = precisionFor(neurons, fanIn, exact);
      return {
        neurons,
        fanIn,
        scale: 1 / Math.sqrt(fanIn),
        large: precision && new LargeMatrix(precision, seed, 2 * index, neurons, fanIn, most),
        weights: precision ? null : normals(seed, 2 * index, neurons, fanIn),
        biases: index < hidden.length ? normals(seed, 2 * index + 1, 1, neurons) : null,
      };
    });
  }

  forward(batch) {
    this.layers.forEach((layer, index) => {
      const here = batch.layers[index];
      applyLayer(layer, batch.below(index), batch.size, here ? here.z : batch.f);
      if (here) this.activate(here.z, here.a, here.slope);
    });
  }

  // δ of every hidden layer, after `forward`.
  backward(batch) {
    let above = new Float64Array(batch.size).fill(1);
    for (let index = this.layers.length - 1; index > 0; index--) {
      const here = batch.layers[index - 1];
      pullBack(this.layers[index], above, batch.size, here.delta);
      for (let i = 0; i < here.delta.length; i++) here.delta[i] *= here.slope[i];
      above = here.delta;
    }
  }

  // One step of descent, w ← w − rate Σ_i pull_i ∇f(x_i), after `backward`.
  descend(batch, pull, rate) {
    this.layers.forEach((layer, index) => {
      const delta = index < batch.layers.length ? batch.layers[index].delta : null;
      moveLayer(layer, batch.below(index), delta, pull, rate);
    });
  }
}

// In a first layer each neuron has one input, so the long loop over neurons is the inner one.
const FEW = 8;

function applyLayer({ neurons, fanIn, scale, weights, biases, large }, a, n, z) {
  if (large) {
    large.forward(a, n, scale, z);
  } else if (fanIn <= FEW) {
    for (let i = 0, to = 0; i < n; i++) {
      for (let k = 0, row = 0; k < neurons; k++, to++) {
        let sum = 0;
        for (let j = 0, at = i * fanIn; j < fanIn; j++) sum += weights[row++] * a[at++];
        z[to] = scale * sum;
      }
    }
  } else {
    products(weights, neurons, a, n, fanIn, scale, z);
  }
  if (biases) for (let i = 0, to = 0; i < n; i++) for (let k = 0; k < neurons; k++) z[to++] += biases[k];
}

// scale · a Wᵀ, (n, neurons). Two neurons and four inputs together: six numbers are read for eight products.
function products(weights, neurons, a, n, fanIn, scale, z) {
  for (let k = 0; k < neurons; k += 2) {
    const row = k * fanIn, next = k + 1 < neurons ? row + fanIn : row; // the last of an odd number is computed twice
    for (let i = 0; i < n; i += 4) {
      const a0 = i * fanIn, a1 = Math.min(i + 1, n - 1) * fanIn;
      const a2 = Math.min(i + 2, n - 1) * fanIn, a3 = Math.min(i + 3, n - 1) * fanIn;
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      for (let j = 0; j < fanIn; j++) {
        const v = weights[row + j], w = weights[next + j];
        const x0 = a[a0 + j], x1 = a[a1 + j], x2 = a[a2 + j], x3 = a[a3 + j];
        s0 += v * x0; s1 += v * x1; s2 += v * x2; s3 += v * x3;
        t0 += w * x0; t1 += w * x1; t2 += w * x2; t3 += w * x3;
      }
      const sums = [s0, s1, s2, s3], others = [t0, t1, t2, t3];
      for (let b = 0; b < 4 && i + b < n; b++) {
        z[(i + b) * neurons + k] = scale * sums[b];
        if (next !== row) z[(i + b) * neurons + k + 1] = scale * others[b];
      }
    }
  }
}

// Σ_k above_k W_k / √fan_in, (n, fan_in), for `above` (n, neurons); four neurons and two inputs together.
function pullBack({ neurons, fanIn, scale, weights, large }, above, n, found) {
  if (large) {
    large.pull(above, n, scale, found);
    return;
  }
  found.fill(0);
  for (let k = 0; k < neurons; k += 4) {
    const rows = [0, 1, 2, 3].map((b) => Math.min(k + b, neurons - 1) * fanIn);
    const [r0, r1, r2, r3] = rows;
    const pull = (i, b) => (i < n && k + b < neurons ? scale * above[i * neurons + k + b] : 0);
    for (let i = 0; i < n; i += 2) {
      const c0 = pull(i, 0), c1 = pull(i, 1), c2 = pull(i, 2), c3 = pull(i, 3);
      const d0 = pull(i + 1, 0), d1 = pull(i + 1, 1), d2 = pull(i + 1, 2), d3 = pull(i + 1, 3);
      const to = i * fanIn, other = i + 1 < n ? to + fanIn : to;
      for (let j = 0; j < fanIn; j++) {
        const w0 = weights[r0 + j], w1 = weights[r1 + j], w2 = weights[r2 + j], w3 = weights[r3 + j];
        found[to + j] += c0 * w0 + c1 * w1 + c2 * w2 + c3 * w3;
        found[other + j] += d0 * w0 + d1 * w1 + d2 * w2 + d3 * w3;
      }
    }
  }
}

// W_k ← W_k − rate Σ_i pull_i δ_ik a_i / √fan_in, and the biases alike; δ = 1 for the output layer.
function moveLayer({ neurons, fanIn, scale, weights, biases, large }, a, delta, pull, rate) {
  const n = pull.length;
  const strength = (i, k) => (i < n ? -rate * pull[i] * (delta ? delta[i * neurons + k] : 1) : 0);
  if (biases) {
    for (let i = 0, at = 0; i < n; i++) {
      const c = -rate * pull[i];
      for (let k = 0; k < neurons; k++) biases[k] += c * delta[at++];
    }
  }
  if (large) {
    large.move(pull.map((each) => -rate * scale * each), delta, a);
    return;
  }
  if (fanIn <= FEW) {
    for (let i = 0; i < n; i++) {
      const c = -rate * scale * pull[i];
      for (let k = 0, row = 0; k < neurons; k++) {
        const d = c * (delta ? delta[i * neurons + k] : 1);
        for (let j = 0, at = i * fanIn; j < fanIn; j++) weights[row++] += d * a[at++];
      }
    }
    return;
  }
  for (let k = 0; k < neurons; k++) {
    const row = k * fanIn;
    for (let i = 0; i < n; i += 4) {
      const c0 = scale * strength(i, k), c1 = scale * strength(i + 1, k);
      const c2 = scale * strength(i + 2, k), c3 = scale * strength(i + 3, k);
      const a0 = i * fanIn, a1 = Math.min(i + 1, n - 1) * fanIn;
      const a2 = Math.min(i + 2, n - 1) * fanIn, a3 = Math.min(i + 3, n - 1) * fanIn;
      for (let j = 0; j < fanIn; j++) {
        weights[row + j] += c0 * a[a0 + j] + c1 * a[a1 + j] + c2 * a[a2 + j] + c3 * a[a3 + j];
      }
    }
  }
}

// The tangent kernel of f in closed form, after `backward` on both batches, (n1, n2):
// K(x, x') = Σ_layers (⟨a, a'⟩ / fan_in + 1) ⟨δ, δ'⟩ + ⟨a_L, a_L'⟩ / m_L.
export function tangentKernel(network, one, other) {
  const found = new Float64Array(one.size * other.size);
  const same = one === other;
  network.layers.forEach(({ fanIn, biases }, index) => {
    const a1 = one.below(index), a2 = other.below(index), here = one.layers[index], there = other.layers[index];
    for (let i = 0; i < one.size; i++) {
      for (let j = same ? i : 0; j < other.size; j++) {
        const inputs = dot(a1, i * fanIn, a2, j * fanIn, fanIn) / fanIn;
        const part = biases
          ? (inputs + 1) * dot(here.delta, i * here.width, there.delta, j * here.width, here.width)
          : inputs;
        found[i * other.size + j] += part;
        if (same && i !== j) found[j * other.size + i] += part;
      }
    }
  });
  return found;
}

function dot(a, at, b, from, length) {
  let sum = 0;
  for (let k = 0; k < length; k++) sum += a[at + k] * b[from + k];
  return sum;
}

const SQUARINGS = 24; // for λ to 1/(e 2²⁴), however close the next eigenvalue is

// The largest eigenvalue λ of a symmetric positive semidefinite matrix K (n, n): Tr K P / Tr P with P = K^(2^s), squared
// until it has rank one.
export function largestEigenvalue(matrix, n) {
  const trace = (of) => { let sum = 0; for (let i = 0; i < n; i++) sum += of[i * n + i]; return sum; };
  const size = trace(matrix);
  if (!(size > 0 && size < Infinity)) return size;
  let power = matrix.map((value) => value / size), square = new Float64Array(n * n);
  for (let round = 0; round < SQUARINGS; round++) {
    for (let i = 0; i < n; i++) {
      for (let j = i; j < n; j++) square[i * n + j] = square[j * n + i] = dot(power, i * n, power, j * n, n);
    }
    const left = trace(square);
    for (let at = 0; at < square.length; at++) square[at] /= left;
    [power, square] = [square, power];
    if (1 - left < 1e-15) break;
  }
  return dot(matrix, 0, power, 0, n * n);
}
