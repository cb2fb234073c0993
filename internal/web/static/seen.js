// What of a question was on the screen: reported with a decision.

/** The parts of a question that were on the screen. */
export class Seen {
  /** Watches the elements with data-seen in a root. */
  constructor(root) {
    this.root = root;
    this.parts = new Map(); // element: its height, and the intervals of it that were on the screen
    for (const el of root.querySelectorAll("[data-seen]")) this.parts.set(el, { height: 0, seen: [] });
    const later = () => requestAnimationFrame(() => this.measure());
    for (const event of ["scroll", "toggle", "resize", "visibilitychange"]) {
      addEventListener(event, later, { capture: true, passive: true, signal: this.ended.signal });
    }
    later();
  }

  ended = new AbortController();

  /** Notes what is on the screen now. */
  measure() {
    if (!this.root.isConnected) return this.ended.abort();
    if (document.visibilityState !== "visible" || document.querySelector("dialog:modal")) return;
    for (const [el, part] of this.parts) {
      const box = el.getBoundingClientRect();
      if (Math.abs(box.height - part.height) > 1) Object.assign(part, { height: box.height, seen: [] }); // a new layout
      const [top, bottom] = this.onScreen(el, box);
      if (bottom > top) part.seen.push([top - box.top, bottom - box.top]);
    }
  }

  /** The vertical range of an element that is neither scrolled away nor below the decision bar. */
  onScreen(el, box) {
    let top = Math.max(box.top, 0);
    let bottom = Math.min(box.bottom, innerHeight);
    for (let p = el.parentElement; p && p !== document.body; p = p.parentElement) {
      if (getComputedStyle(p).overflowY === "visible") continue;
      const clip = p.getBoundingClientRect();
      top = Math.max(top, clip.top);
      bottom = Math.min(bottom, clip.bottom);
    }
    const bar = this.root.querySelector(".decide")?.getBoundingClientRect();
    return [top, bar && bar.top > box.top ? Math.min(bottom, bar.top) : bottom];
  }

  /** "all" if every line was on the screen and nothing is folded or cut off, otherwise "part". */
  visible() {
    this.measure();
    if (this.parts.size === 0) return "";
    for (const [el, part] of this.parts) {
      let to = 0;
      for (const [top, bottom] of part.seen.sort((a, b) => a[0] - b[0])) {
        if (top <= to + 2) to = Math.max(to, bottom);
      }
      if (to < part.height - 2 || [el, ...el.querySelectorAll("*")].some(hidesText)) return "part";
    }
    return "all";
  }
}

/** Whether an element folds or cuts off a part of its content. */
function hidesText(el) {
  if (el.matches("details:not([open])")) return true;
  if (el.clientWidth <= 1 || el.namespaceURI !== "http://www.w3.org/1999/xhtml") return false; // for screen readers; an icon
  const style = getComputedStyle(el);
  return (style.overflowX !== "visible" && el.scrollWidth > el.clientWidth + 1) || (style.overflowY !== "visible" && el.scrollHeight > el.clientHeight + 1);
}
