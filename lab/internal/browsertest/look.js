(() => {
  const faults = [];
  const say = (e, what) => faults.push(`${what}: <${e.tagName.toLowerCase()} class="${e.getAttribute("class") ?? ""}"> ${(e.textContent ?? "").trim().slice(0, 40)}`);
  const all = (s, root = document) => [...root.querySelectorAll(s)];
  const shown = (e) => e.checkVisibility({ opacityProperty: false, visibilityProperty: true }) && !e.closest("details:not([open]) > :not(summary)");

  // Colours.
  const rgba = (c) => {
    const m = c.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return c.startsWith("color(srgb") ? [m[0] * 255, m[1] * 255, m[2] * 255, m[3] ?? 1] : [m[0], m[1], m[2], m[3] ?? 1];
  };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const dark = matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement).colorScheme.includes("dark");
  const canvas = dark ? [18, 18, 18, 1] : [255, 255, 255, 1];
  const behind = (e) => {
    const layers = [];
    for (let n = e; n instanceof Element; n = n.parentElement) {
      const c = rgba(getComputedStyle(n).backgroundColor);
      if (c[3] > 0) layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((under, c) => over(c, under), canvas);
  };
  // Behind a text in an SVG is the last shape before it that covers its middle.
  const behindSVG = (text) => {
    const svg = text.ownerSVGElement, box = text.getBoundingClientRect();
    const x = box.x + box.width / 2, y = box.y + box.height / 2;
    let c = behind(svg);
    for (const shape of all("rect, path, circle, ellipse, polygon", svg)) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING) || shape.closest("defs, pattern, clipPath")) continue;
      const r = shape.getBoundingClientRect(), s = getComputedStyle(shape);
      if (x < r.x || x > r.right || y < r.y || y > r.bottom || s.fill === "none" || s.fill.startsWith("url") || !shown(shape)) continue;
      const f = rgba(s.fill);
      f[3] *= Number(s.fillOpacity) * Number(s.opacity);
      c = over(f, c);
    }
    return c;
  };
  let texts = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !shown(e) || e.closest("script, style, option, desc, title")) continue;
    if (e.closest(":disabled, [aria-disabled=true]")) continue;
    const s = getComputedStyle(e), inSVG = e.ownerSVGElement;
    if (s.clipPath !== "none" || (!inSVG && e.getBoundingClientRect().width <= 1)) continue; // for screen readers only
    texts++;
    const back = inSVG ? behindSVG(e) : behind(e);
    const fore = over(rgba(inSVG ? s.fill : s.color), back);
    const scale = inSVG ? (inSVG.getScreenCTM()?.a ?? 1) : 1;
    const size = parseFloat(s.fontSize) * scale, need = size >= 24 || (size >= 18.66 && Number(s.fontWeight) >= 700) ? 3 : 4.5;
    const is = contrast(fore, back);
    if (is < need - 0.005) say(e, `contrast ${is.toFixed(2)}, needs ${need}`);
    if (size < 9) say(e, `text of ${size.toFixed(1)} px`);
  }

  // Names.
  const labelled = (e) => (e.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean).map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
  const nameOf = (e) => (labelled(e) || e.getAttribute("aria-label") || [...(e.labels ?? [])].map((l) => l.textContent).join(" ") || (e.matches("input, select, textarea") ? "" : e.textContent) || e.title || "").trim();
  for (const e of all("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex], [role=region], [role=group]")) if (!nameOf(e)) say(e, "no name");
  for (const e of all("svg, img, [role=img]")) {
    if (e.closest("[aria-hidden=true]")) continue;
    const name = e.getAttribute("alt") ?? (labelled(e) || e.getAttribute("aria-label") || e.querySelector(":scope > title")?.textContent);
    if (!name?.trim()) say(e, "a picture without a description");
    if (e.tagName.toLowerCase() === "svg" && e.getAttribute("role") !== "img") say(e, "an svg that is no img");
  }
  for (const e of all("table")) if (!e.caption?.textContent.trim() && !document.getElementById(e.getAttribute("aria-labelledby"))?.textContent.trim()) say(e, "a table without a caption, or a heading that is its name");
  for (const e of all("th")) if (!e.scope) say(e, "a heading cell without a scope");
  for (const e of all("fieldset")) if (!e.querySelector("legend")?.textContent.trim()) say(e, "a fieldset without a legend");

  // Order.
  if (!document.documentElement.lang) faults.push("no language");
  if (!document.title.trim()) faults.push("no title");
  if (all("main").length !== 1) faults.push(`${all("main").length} main elements`);
  if (all("h1").length !== 1) faults.push(`${all("h1").length} h1 elements`);
  let level = 0;
  for (const e of all("h1, h2, h3, h4, h5, h6")) {
    if (!shown(e)) continue;
    const n = Number(e.tagName[1]);
    if (n > level + 1) say(e, `heading ${n} after ${level}`);
    level = n;
  }
  const ids = new Set();
  for (const e of all("[id]")) {
    if (ids.has(e.id)) say(e, `id ${e.id} twice`);
    ids.add(e.id);
  }
  for (const a of ["aria-labelledby", "aria-describedby", "aria-controls", "for"])
    for (const e of all(`[${a}]`)) for (const id of e.getAttribute(a).split(/\s+/).filter(Boolean)) if (!ids.has(id)) say(e, `${a} into nothing: ${id}`);
  for (const e of all("*")) for (const a of e.attributes) if (a.name.startsWith("on")) say(e, `an inline handler: ${a.name}`);
  for (const e of all("[tabindex]")) if (e.tabIndex > 0) say(e, "a tab order of its own");

  // Room.
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1) {
    faults.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${width}`);
    const rolls = (e) => e !== document.body && e.parentElement && (getComputedStyle(e.parentElement).overflowX !== "visible" || rolls(e.parentElement));
    for (const e of all("body *")) if (shown(e) && !rolls(e) && e.getBoundingClientRect().right > width + 1) { say(e, "sticks out"); break; }
  }
  // What can be pressed is large enough to hit (WCAG 2.2: 24 px).
  for (const e of all("button, input:not([type=hidden]), summary, select")) {
    if (!shown(e)) continue;
    const box = (e.labels?.[0] ?? e).getBoundingClientRect();
    if (box.height < 24 || box.width < 24) say(e, `a target of ${box.width.toFixed(0)} × ${box.height.toFixed(0)} px`);
  }
  return { faults, texts };
})()
