// Trains in a worker, so that no width freezes the page. Each message gets one answer.
import { secondTask } from "./second.js";
import { Training } from "./training.js";

let training = null, setup = null;

self.onmessage = ({ data: { start, steps, second } }) => {
  if (second) {
    self.postMessage({ added: secondTask(training, setup), id: setup.id });
    return;
  }
  if (start) {
    training = new Training(start);
    setup = start;
  }
  const done = steps ? training.advance(steps) : 0;
  const { startKernel, startCurve, startOutputs, startNeurons } = training;
  const begun = start ? { ...start, startKernel, startCurve, startOutputs, startNeurons } : null;
  self.postMessage({ begun, done, ...training.state() });
};
