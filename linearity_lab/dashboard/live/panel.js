// A panel of a page: drawn frame by frame while visible; may begin before Streamlit's scripts have loaded (early.js).

export class Panel {
  // Insert `root`, then call `frame()` at intervals of at least `least` milliseconds.
  open(parent, root, least) {
    Object.assign(this, { root, least, since: 0, visible: true });
    parent.append(root);
    this.sizes = new ResizeObserver(() => { this.stale = true; });
    this.sizes.observe(root);
    // Several changes may arrive together, in order: a page that grew and scrolled back.
    this.sight = new IntersectionObserver((seen) => { this.visible = seen.at(-1).isIntersecting; });
    this.sight.observe(root);
    const frame = (now) => {
      this.request = requestAnimationFrame(frame);
      if (!this.visible || now - this.since < this.least) return;
      this.since = now;
      this.frame();
    };
    frame(performance.now());
  }

  close() {
    cancelAnimationFrame(this.request);
    this.sizes.disconnect();
    this.sight.disconnect();
    this.root.remove();
  }
}

const panels = new WeakMap();

// Take over the panel of an early page, with its focus and scroll position; close another page's panel.
// Its class is from another script, so names are compared.
function begunEarly(Kind, parent) {
  const { page, panel } = window.early ?? {};
  window.early = {};
  if (panel?.constructor.name !== Kind.name) {
    panel?.close();
    page?.remove();
    return undefined;
  }
  const { scrollTop } = page, focused = panel.root.getRootNode().activeElement;
  panel.least = 0;
  parent.append(panel.root);
  page.remove();
  focused?.focus({ preventScroll: true });
  if (scrollTop) document.querySelector('[data-testid="stMain"]').scrollTop = scrollTop;
  return panel;
}

// Show a panel of this class in an element of Streamlit; return a function that closes it.
export function mount(Kind, parent, data) {
  const here = panels.get(parent) ?? begunEarly(Kind, parent) ?? new Kind(parent, data);
  panels.set(parent, here);
  here.update(data);
  return () => {
    panels.get(parent)?.close();
    panels.delete(parent);
  };
}
