"use strict";
// Makes a player of each strip of stills. Without it, and for who wants less
// motion, the strip is all there.
(() => {
  const less = matchMedia("(prefers-reduced-motion: reduce)");
  const pace = 2600;
  const make = (tag, attributes, text) => {
    const e = document.createElement(tag);
    for (const name of Object.keys(attributes)) e.setAttribute(name, attributes[name]);
    if (text) e.textContent = text;
    return e;
  };
  for (const picture of document.querySelectorAll(".picture")) {
    const stills = [...picture.querySelectorAll(".stills > li")];
    if (!stills[1]) continue;
    const captions = stills.map((s) => s.querySelector("svg > title").textContent);
    const last = stills.length - 1;
    const name = picture.querySelector(".stills").getAttribute("aria-label");
    const bar = make("div", { class: "player", role: "group", "aria-label": name });
    const back = make("button", { type: "button" }, "◀ Back");
    const play = make("button", { type: "button" }, "▶ Play");
    const step = make("button", { type: "button" }, "Step ▶");
    const range = make("input", { type: "range", min: 1, max: stills.length, value: 1, "aria-label": "Step of " + stills.length });
    const all = make("button", { type: "button", "aria-pressed": "false" }, "All steps");
    bar.append(back, play, step, range, all);
    picture.prepend(bar);
    let at = 0, timer = 0;

    const show = (n) => {
      at = Math.min(Math.max(n, 0), last);
      stills.forEach((s, i) => s.classList.toggle("now", i === at));
      range.value = at + 1;
      range.setAttribute("aria-valuetext", captions[at]);
      back.setAttribute("aria-disabled", String(at === 0));
      step.setAttribute("aria-disabled", String(at === last));
      stills[at].setAttribute("aria-live", timer ? "off" : "polite");
    };
    const pause = () => {
      clearInterval(timer);
      timer = 0;
      play.textContent = "▶ Play";
    };
    const one = (yes) => {
      pause();
      picture.classList.toggle("one", yes);
      all.setAttribute("aria-pressed", String(!yes));
    };
    back.addEventListener("click", () => { one(true); show(at - 1); });
    step.addEventListener("click", () => { one(true); show(at + 1); });
    range.addEventListener("input", () => { one(true); show(range.value - 1); });
    all.addEventListener("click", () => one(!picture.classList.contains("one")));
    play.addEventListener("click", () => {
      if (timer) return pause();
      one(true);
      play.textContent = "⏸ Pause";
      timer = setInterval(() => {
        if (at === last) return pause();
        show(at + 1);
        if (at === last) pause();
      }, pace);
      show(at === last ? 0 : at);
    });
    const settle = () => {
      picture.classList.toggle("playing", !less.matches);
      one(!less.matches);
      show(at);
    };
    less.addEventListener("change", settle);
    settle();
  }
})();
