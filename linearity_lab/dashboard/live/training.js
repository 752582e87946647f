// A network and its linear model, trained by the same steps of gradient descent on L = (1/2n) Σ (F − y)², F = φ(f).
//
// The linear model of F in the weights moves in function space: F_lin ← F_lin − (η/n) K₀ (F_lin − y), with the tangent
// kernel K₀(x, x') = φ'(f₀(x)) K_f(x, x') φ'(f₀(x')) of F at the start.
import { FUNCTIONS } from "./functions.js";
import { Batch, Network, largestEigenvalue, tangentKernel } from "./model.js";

// Training for one frame ends after some milliseconds; a slow network has more of them for its first few steps.
const FEW_STEPS = 5, FEW_MS = 36, MANY_MS = 12;
const GONE = 1e12; // beyond this a model counts as diverged

export class Training {
  // rate: c = ηλ/n with the largest eigenvalue λ of K₀; the linear model is stable below 2.
  constructor({ hidden, activation, output, seed, rate, points, grid }) {
    // With a saturated output, steps are large for the other weights: rounding errors grow a thousandfold in ten steps.
    const most = Math.max(points.length, grid.length), exact = output !== "linear";
    this.network = new Network(hidden, activation, seed, most, exact);
    this.exact = exact;
    this.output = FUNCTIONS[output];
    this.targets = Float64Array.from(points, ([, y]) => y);
    this.batch = new Batch(points.map(([x]) => x), hidden);
    this.curve = new Batch(grid, hidden);
    this.outputs = new Float64Array(points.length);
    this.slopes = new Float64Array(points.length);
    this.time = 0;
    this.diverged = false;
    this.look();

    this.network.forward(this.curve);
    this.network.backward(this.curve);
    const { values, slopes } = this.through(this.curve.f);
    this.startCurve = values;
    this.startKernel = this.kernel();
    this.cross = scaled(tangentKernel(this.network, this.curve, this.batch), slopes, this.slopes);
    this.startNorm = norm(this.startKernel);
    const n = points.length;
    this.largest = largestEigenvalue(this.startKernel, n);
    this.stepSize = (rate * n) / this.largest; // η
    this.startOutputs = Float64Array.from(this.outputs);
    this.linear = Float64Array.from(this.outputs);
    this.pulls = new Float64Array(n); // Σ_t (F_lin − y) at the points, from which F_lin follows everywhere
    this.startNeurons = this.neurons();
  }

  // Values and slopes of the output function.
  through(f) {
    const values = new Float64Array(f.length), slopes = new Float64Array(f.length);
    this.output(f, values, slopes);
    return { values, slopes };
  }

  // Forward and backward pass at the current weights.
  look() {
    this.network.forward(this.batch);
    this.network.backward(this.batch);
    this.output(this.batch.f, this.outputs, this.slopes);
  }

  kernel() {
    return scaled(tangentKernel(this.network, this.batch, this.batch), this.slopes, this.slopes);
  }

  // (weight, bias) of the first hidden layer's neurons.
  neurons() {
    const { weights, biases } = this.network.layers[0];
    const found = new Float32Array(2 * biases.length);
    biases.forEach((bias, k) => {
      found[2 * k] = weights[k];
      found[2 * k + 1] = bias;
    });
    return found;
  }

  loss(values) {
    let sum = 0;
    values.forEach((value, i) => { sum += (value - this.targets[i]) ** 2; });
    return sum / (2 * values.length);
  }

  step() {
    const n = this.targets.length;
    if (!this.diverged) {
      const pull = this.outputs.map((value, i) => ((value - this.targets[i]) * this.slopes[i]) / n);
      this.network.descend(this.batch, pull, this.stepSize);
      this.look();
      this.diverged = !(this.loss(this.outputs) < GONE);
    }
    if (this.loss(this.linear) < GONE) {
      const off = this.linear.map((value, i) => value - this.targets[i]);
      for (let i = 0; i < n; i++) {
        this.pulls[i] += off[i];
        for (let j = 0; j < n; j++) this.linear[i] -= (this.stepSize / n) * this.startKernel[i * n + j] * off[j];
      }
    }
    this.time++;
  }

  // Take at least one and at most `steps` steps for one frame; return their number.
  advance(steps) {
    const begun = performance.now();
    let done = 0;
    while (done < steps && (done === 0 || performance.now() - begun < (done < FEW_STEPS ? FEW_MS : MANY_MS))) {
      this.step();
      done++;
    }
    return done;
  }

  // The state to draw.
  state() {
    const n = this.targets.length;
    this.network.forward(this.curve);
    const kernel = this.kernel();
    const linearCurve = this.startCurve.map((value, g) => {
      let moved = 0;
      for (let j = 0; j < n; j++) moved += this.cross[g * n + j] * this.pulls[j];
      return value - (this.stepSize / n) * moved;
    });
    return {
      time: this.time,
      curve: this.through(this.curve.f).values,
      linearCurve,
      outputs: Float64Array.from(this.outputs),
      linear: Float64Array.from(this.linear),
      kernel,
      change: norm(kernel.map((value, i) => value - this.startKernel[i])) / this.startNorm,
      rate: (this.stepSize * largestEigenvalue(kernel, n)) / n,
      loss: this.loss(this.outputs),
      linearLoss: this.loss(this.linear),
      neurons: this.neurons(),
      diverged: this.diverged,
      linearDiverged: !(this.loss(this.linear) < GONE),
    };
  }
}

function scaled(kernel, left, right) {
  return kernel.map((value, at) => value * left[Math.floor(at / right.length)] * right[at % right.length]);
}

export function norm(values) {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}
