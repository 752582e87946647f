// Activations and outputs: each fills values σ(z) and slopes σ'(z) of a whole array.

const ERF_STEPS = 256; // nodes per unit; between them a cubic through values and slopes, off by less than 4e-12
const ERF_REACH = 6; // beyond, erf is ±1 to the last digit
const ERF_SLOPE = 2 / Math.sqrt(Math.PI);
const ERF_VALUES = new Float64Array(ERF_REACH * ERF_STEPS + 2);
const ERF_SLOPES = ERF_VALUES.map((_, node) => ERF_SLOPE * Math.exp(-((node / ERF_STEPS) ** 2)));
ERF_VALUES.forEach((_, node) => { ERF_VALUES[node] = erfByItsSeries(node / ERF_STEPS); });

// erf z = (2/√π) e^(−z²) Σ_k 2^k z^(2k+1) / (1·3·…·(2k+1)): all terms are positive, nothing cancels.
function erfByItsSeries(z) {
  let term = z, sum = z;
  for (let k = 1; term > 1e-18 * sum; k++) sum += term *= (2 * z * z) / (2 * k + 1);
  return Math.min(1, ERF_SLOPE * Math.exp(-z * z) * sum);
}

export function erf(z) {
  const size = Math.abs(z);
  if (!(size < ERF_REACH)) return Math.sign(z);
  const node = Math.floor(size * ERF_STEPS);
  const t = size * ERF_STEPS - node, u = 1 - t;
  const value =
    u * u * ((1 + 2 * t) * ERF_VALUES[node] + (t / ERF_STEPS) * ERF_SLOPES[node]) +
    t * t * ((1 + 2 * u) * ERF_VALUES[node + 1] - (u / ERF_STEPS) * ERF_SLOPES[node + 1]);
  return z < 0 ? -value : value;
}

export const FUNCTIONS = {
  tanh(z, value, slope) {
    for (let i = 0; i < z.length; i++) {
      const t = 1 - 2 / (Math.exp(2 * z[i]) + 1); // half the time of Math.tanh, to 2·10⁻¹⁶
      value[i] = t;
      slope[i] = 1 - t * t;
    }
  },
  erf(z, value, slope) {
    for (let i = 0; i < z.length; i++) {
      value[i] = erf(z[i]);
      slope[i] = ERF_SLOPE * Math.exp(-z[i] * z[i]);
    }
  },
  relu(z, value, slope) {
    for (let i = 0; i < z.length; i++) {
      value[i] = z[i] > 0 ? z[i] : 0;
      slope[i] = z[i] > 0 ? 1 : 0;
    }
  },
  gelu(z, value, slope) {
    for (let i = 0; i < z.length; i++) {
      const below = 0.5 * (1 + erf(z[i] * Math.SQRT1_2));
      value[i] = z[i] * below;
      slope[i] = below + z[i] * 0.5 * ERF_SLOPE * Math.SQRT1_2 * Math.exp(-0.5 * z[i] * z[i]);
    }
  },
  swish(z, value, slope) {
    for (let i = 0; i < z.length; i++) {
      const s = 1 / (1 + Math.exp(-z[i]));
      value[i] = z[i] * s;
      slope[i] = s * (1 + z[i] * (1 - s));
    }
  },
  linear(z, value, slope) {
    value.set(z);
    slope.fill(1);
  },
};
