// Has a page follow what happens: at each event the page is fetched anew, and its parts that are others now take the
// place of those that are shown. Without script the pages say the same when they are loaded again.
"use strict";
(() => {
  const main = document.querySelector("main");
  if (!main) return;
  const DELAY = 100;
  let timer = null;
  let busy = false;
  let again = false;

  const opened = (part) => new Set([...part.querySelectorAll("details[open] > summary")].map((each) => each.textContent));

  const take = (fresh) => {
    for (const part of document.querySelectorAll("[data-part]")) {
      const other = fresh.getElementById(part.id);
      // What somebody is filling in stays as it is.
      const isBusy = part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, summary, button");
      if (!other || isBusy || part.innerHTML === other.innerHTML) continue;
      const open = opened(part);
      part.replaceChildren(...[...other.childNodes].map((node) => document.importNode(node, true)));
      for (const summary of part.querySelectorAll("details > summary")) {
        if (open.has(summary.textContent)) summary.parentElement.open = true;
      }
    }
  };

  const refresh = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (answer.redirected) location.reload();
      else if (answer.ok) take(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The server is away; the next event comes when it is back.
    }
    busy = false;
    if (again) {
      again = false;
      soon();
    }
  };

  const soon = () => {
    if (timer === null) {
      timer = setTimeout(() => {
        timer = null;
        refresh();
      }, DELAY);
    }
  };

  if (main.dataset.events) {
    const source = new EventSource(main.dataset.events);
    source.addEventListener("message", soon);
    source.addEventListener("open", () => { main.dataset.live = "on"; });
    source.addEventListener("error", () => { main.dataset.live = "off"; });
    addEventListener("pagehide", () => source.close());
  } else if (main.dataset.every) {
    setInterval(refresh, Number(main.dataset.every));
  }
})();
