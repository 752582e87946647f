// Follows a run of a page: the browser times the clicks itself, and when the progress line and the figure both show a point.
() => {
  window.shownAt = {};
  document.addEventListener('click', event => {
    window.clickedAt ??= Date.now() / 1000;
    if (event.target.closest('button')?.textContent.includes('Stop')) window.stopAt ??= Date.now() / 1000;
  }, true);
  setInterval(() => {
    const hosts = Array.from(document.querySelectorAll('[data-testid="stBidiComponentIsolated"]'));
    const line = hosts.map(each => each.shadowRoot?.querySelector('[data-testid="job-progress"]')).find(Boolean);
    const done = line ? Number((line.textContent.match(/(\d+) of \d+ widths/) || [0, 0])[1]) : 0;
    const chart = document.querySelector('.js-plotly-plot');
    const seeds = chart && chart.data ? chart.data.filter(trace => trace.mode === 'markers') : [];
    const drawn = seeds.length ? new Set(Array.from(seeds[0].x, Number)).size : 0;
    const captions = Array.from(document.querySelectorAll('[data-testid="stCaptionContainer"]'));
    const stopped = captions.some(caption => caption.textContent.includes('Stopped:'));
    if (window.stopAt && stopped) window.stoppedAt ??= Date.now() / 1000;
    if (!window.clickedAt) window.before = drawn;
    if (window.clickedAt && drawn && drawn !== window.before) window.firstAt ??= Date.now() / 1000;
    const shown = drawn <= done ? drawn : 0; // before the first point the earlier figure is there, with more widths
    for (let count = 1; count <= shown; count++) window.shownAt[count] ??= Date.now() / 1000;
  }, 25);
}
