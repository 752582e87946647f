// Trains in a worker, so that no width freezes the page. Each message gets one answer.
import { Training } from "./training.js";

let training = null;

self.onmessage = ({ data: { start, steps } }) => {
  if (start) training = new Training(start);
  const done = steps ? training.advance(steps) : 0;
  const { startKernel, startCurve, startOutputs, startNeurons } = training;
  const begun = start ? { ...start, startKernel, startCurve, startOutputs, startNeurons } : null;
  self.postMessage({ begun, done, ...training.state() });
};
