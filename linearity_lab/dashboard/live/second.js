// Do two tasks add? A second network from the same start learns a second task, the same heights moved along by a third
// of the points, for as many steps. With w₁ and w₂ after the tasks and F = f(w) − f(w₀): E = ‖F(w₁ + w₂ − w₀) − F(w₁) − F(w₂)‖ / ‖F(w₁) + F(w₂)‖
// over the plotted inputs.
import { Batch, Network } from "./model.js";
import { Training, norm } from "./training.js";

// The points of the second task: a mirror image would be the first task itself for an even target.
export function movedAlong(points) {
  const by = Math.max(1, Math.round(points.length / 3));
  return points.map(([x], i) => [x, points[(i + by) % points.length][1]]);
}

// The second curve, the curve with both changes of the weights, the sum of both changes, and E.
export function secondTask(training, setup) {
  const points = movedAlong(setup.points), second = new Training({ ...setup, points });
  while (second.time < training.time) second.step();
  const { curve, startCurve } = training, first = training.state().curve;
  const other = second.state().curve;
  const merged = mergedNetwork(training, second, setup);
  const batch = new Batch(curve.inputs, setup.hidden);
  merged.forward(batch);
  const both = training.through(batch.f).values;
  const summed = first.map((value, i) => value + other[i] - startCurve[i]);
  const miss = both.map((value, i) => value - summed[i]);
  const size = norm(summed.map((value, i) => value - startCurve[i]));
  return { second: other, both, summed, error: norm(miss) / size, points, time: training.time };
}

// The network with weights w₁ + w₂ − w₀; a fresh network of the same seed has w₀.
function mergedNetwork(training, second, setup) {
  const merged = new Network(setup.hidden, setup.activation, setup.seed, setup.grid.length, training.exact);
  merged.layers.forEach((layer, index) => {
    const one = training.network.layers[index], two = second.network.layers[index];
    add(weightsOf(layer), weightsOf(one), weightsOf(two));
    if (layer.biases) add(layer.biases, one.biases, two.biases);
  });
  return merged;
}

function weightsOf({ large, weights }) {
  return large ? large.weights : weights;
}

// start ← one + two − start.
function add(start, one, two) {
  for (let k = 0; k < start.length; k++) start[k] = one[k] + two[k] - start[k];
}
