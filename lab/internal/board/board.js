"use strict";
// Follows the board's events, and takes the teacher's secret out of the
// address. Without it every page still works by its forms and a reload.
(() => {
  const login = document.getElementById("login");
  if (login && location.hash.length > 1) {
    login.elements.secret.value = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
    login.submit();
    return;
  }
  const main = document.querySelector("main[data-follow]");
  if (!main || !window.EventSource) return;
  const away = document.querySelector(".away");

  async function refresh() {
    const reply = await fetch(main.dataset.page);
    const next = new DOMParser().parseFromString(await reply.text(), "text/html");
    const body = next.querySelector("main");
    if (!body) return;
    const header = document.querySelector("header"), nextHeader = next.querySelector("header");
    if (header && nextHeader) header.replaceWith(nextHeader);
    const had = main.contains(document.activeElement);
    main.replaceChildren(...body.childNodes);
    main.dataset.value = body.dataset.value;
    if (had) {
      const heading = main.querySelector("h2, h1");
      heading.tabIndex = -1;
      heading.focus();
    }
  }

  const source = new EventSource("/events");
  source.onopen = () => { away.hidden = true; };
  source.onerror = () => { away.hidden = false; };
  source.onmessage = (event) => {
    const pulse = JSON.parse(event.data);
    for (const el of document.querySelectorAll("[data-live]")) el.textContent = pulse[el.dataset.live];
    if (String(pulse[main.dataset.follow]) !== main.dataset.value) refresh();
  };
})();
