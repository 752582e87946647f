// Cumulative layout shift since the first paint, as https://web.dev/cls counts it for one visit without input.
new PerformanceObserver(list => list.getEntries().filter(each => !each.hadRecentInput)
  .forEach(each => { window.layoutShift = (window.layoutShift ?? 0) + each.value; }))
  .observe({ type: 'layout-shift', buffered: true });

// When a canvas is drawn for the third time: then something moves.
{
  let frames = 0, last = -1;
  const { stroke } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.stroke = function (...path) {
    if (document.timeline.currentTime !== last && ++frames === 3) window.movedAt = performance.now();
    last = document.timeline.currentTime;
    return stroke.apply(this, path);
  };
}
