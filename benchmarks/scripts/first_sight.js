// Controls visible without a click, except in tabs; curves by name in each panel, without bands and guides.
guide => {
  const kinds = ['stSelectbox', 'stMultiSelect', 'stNumberInput', 'stTextInput', 'stTextArea', 'stSlider', 'stCheckbox',
                 'stRadio', 'stButtonGroup', 'stFileUploader'];
  const seen = each => each.checkVisibility() && each.getBoundingClientRect().height > 0 &&
    !each.closest('details:not([open])');
  const ours = [...document.querySelectorAll('*')].filter(each => each.shadowRoot)
    .flatMap(each => [...each.shadowRoot.querySelectorAll('.live input, .live select')]);
  const widgets = [...kinds.flatMap(kind => [...document.querySelectorAll(`[data-testid="${kind}"]`)]), ...ours];
  const top = each => each ? Math.round(each.getBoundingClientRect().top) : null;
  const main = document.querySelector('[data-testid="stMain"]');
  const plots = [...document.querySelectorAll('.js-plotly-plot')].filter(each => each._fullData);
  const drawing = [...document.querySelectorAll('*')].map(each => each.shadowRoot?.querySelector('.graph .frame'));
  const figure = drawing.find(Boolean) ?? plots.find(seen);
  const tabs = [...document.querySelectorAll('[data-testid="stTabs"]')].find(each => top(each) > top(figure));
  const isCurve = ({ type, visible, mode, fill, x, line }) => type === 'scatter' && visible === true &&
    mode.includes('lines') && !mode.includes('text') && fill !== 'toself' && x[0] !== null && line.color !== guide;
  const curves = plots.map(plot => plot._fullData.filter(isCurve));
  const counted = curves.flatMap(each => Object.values(Object.groupBy(each, curve => curve.yaxis ?? 'y')))
    .map(each => new Set(each.map(({ legendgroup, name, line }) => `${legendgroup || name} ${line.dash}`)).size);
  return {
    controls: widgets.filter(each => seen(each) && !each.closest('[data-testid="stTabs"]')).length,
    curves: plots.length ? Math.max(0, ...counted) : null,
    lines: curves.flatMap(each => Object.values(Object.groupBy(each, curve => curve.legendgroup || curve.name)))
      .map(each => [each[0].line.color, Math.max(...each.map(curve => curve.opacity ?? 1))]),
    words: [...document.querySelectorAll('.js-plotly-plot :is(.cartesianlayer, .infolayer) text, [role="tab"] p')]
      .filter(each => seen(each) && !each.closest('.heatmap-label'))
      .map(each => getComputedStyle(each)[each.tagName === 'text' ? 'fill' : 'color']),
    ground: getComputedStyle(document.querySelector('[data-testid="stApp"]')).backgroundColor,
    figure: figure ? top(figure) + main.scrollTop : null,
    bottom: figure ? Math.round(Math.max(...[figure, plots.find(seen)].filter(Boolean)
      .map(each => each.getBoundingClientRect().bottom))) + main.scrollTop : null,
    shift: Math.round(1000 * (window.layoutShift ?? 0)) / 1000,
    before_tabs: tabs ? top(tabs) + main.scrollTop : main.scrollHeight,
    height: main.scrollHeight,
  };
}
