// Notes when a page first shows something, a heading, its own title and its figure: milliseconds since its request.
window.shown = {};
{
  const note = name => { window.shown[name] ??= performance.now(); };
  const look = () => {
    if (document.querySelector('h1')) note('headed');
    if (document.querySelector('[data-testid="stMain"] h1')) note('titled');
    if (document.querySelector('.js-plotly-plot .main-svg')) { // the end of this frame
      requestAnimationFrame(() => setTimeout(() => note('figure')));
    }
    if (!window.shown.titled || !window.shown.figure) requestAnimationFrame(look);
  };
  look();
  new PerformanceObserver(list => list.getEntriesByName('first-contentful-paint')
    .forEach(paint => { window.shown.painted = paint.startTime; })).observe({ type: 'paint', buffered: true });
}
