"""Faults that axe misses: overflowing elements, and covered or low-contrast words in charts."""

from playwright.sync_api import Page

STICKING_OUT = """() => {
  const width = document.documentElement.clientWidth, found = [];
  for (const each of document.querySelectorAll('[data-testid=stMain] *')) {
    if (each.getBoundingClientRect().right <= width + 1) continue;
    let at = each.parentElement;  // up to what clips or scrolls it and does not stick out itself
    const holds = () => getComputedStyle(at).overflowX !== 'visible'
                     && at.getBoundingClientRect().right <= width + 1;
    while (at && at.dataset.testid !== 'stMain' && !holds()) at = at.parentElement;
    if (!at || at.dataset.testid === 'stMain')
      found.push(each.tagName + ' ' + (each.textContent || '').slice(0, 40));
  }
  const main = document.querySelector('[data-testid=stMain]');
  return main.scrollWidth > main.clientWidth ? ['the page scrolls', ...found] : found;
}"""
OVER_THE_TOOLS = """() => [...document.querySelectorAll('.js-plotly-plot')].filter(chart => {
  const bars = [...chart.querySelectorAll('.modebar-group')];
  const tools = bars.map(each => each.getBoundingClientRect());
  return [...chart.querySelectorAll('.legendtext')].some(each => {
    const word = each.getBoundingClientRect();
    return tools.some(tool => tool.left < word.right && word.left < tool.right
                           && tool.top < word.bottom && word.top < tool.bottom);
  });
}).map(chart => chart.querySelector('.legend').textContent)"""
ON_EACH_OTHER = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(chart => {
  const kinds = [
    '.textpoint text', '.annotation text', '.shape-label text', '.xtick text', '.ytick text',
    '.legendtext', '.xtitle', '.ytitle',
  ];
  const words = [...chart.querySelectorAll(kinds.join(', '))]
    .map(each => [each.textContent, each.getBoundingClientRect()])
    .filter(([text, box]) => text.trim() && box.width);
  return words.flatMap(([text, one], index) => words.slice(index + 1).filter(([, other]) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 3
  ).map(([other]) => `${text} and ${other}`));
})"""
# Cells and buttons have separate colors; labels of a slider are invisible.
PALE_WORDS = """() => {
  const ink = getComputedStyle(document.querySelector('[data-testid=stApp]')).color;
  return [...document.querySelectorAll('.js-plotly-plot .main-svg text')].filter(word =>
    !word.closest('.heatmap-label, .menulayer, .slider-label-group, .hoverlayer') &&
    getComputedStyle(word).fill !== ink
  ).map(word => word.textContent + ' ' + getComputedStyle(word).fill);
}"""


def faults(page: Page) -> list[str]:
    """Elements wider than the page.

    Words of charts that overlap tools or each other, or have too little contrast.
    """
    return [
        f"{what}: {found}"
        for what, script in (
            ("too wide", STICKING_OUT),
            ("covered", OVER_THE_TOOLS),
            ("on each other", ON_EACH_OTHER),
            ("pale", PALE_WORDS),
        )
        for found in page.evaluate(script)
    ]
