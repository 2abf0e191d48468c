"use strict";
// Moving between examples with keys. The present one is remembered through a reload.
(() => {
  const cards = [...document.querySelectorAll(".card")];
  const exact = new Map(cards.map((card) => [card, JSON.parse(card.dataset.exact)]));
  let at = cards.findIndex((card) => card.classList.contains("current"));

  const go = (to, focus = true) => {
    if (!cards.length) return;
    const next = Math.min(Math.max(to, 0), cards.length - 1);
    if (at >= 0) {
      cards[at].classList.remove("current");
      cards[at].removeAttribute("aria-current");
    }
    at = next;
    cards[at].classList.add("current");
    cards[at].setAttribute("aria-current", "true");
    if (focus) {
      cards[at].focus({ preventScroll: true });
      cards[at].scrollIntoView({ block: "nearest" });
    }
    const place = new URL(location);
    place.hash = `example-${at + 1}`;
    if (cards.length > 1) history.replaceState(null, "", place);
  };
  // Cards in a row share their top: a step down is a step to the same place in the next row.
  const perRow = () => {
    const top = cards[0]?.offsetTop;
    return Math.max(cards.filter((card) => card.offsetTop === top).length, 1);
  };
  const follow = (selector) => document.querySelector(selector)?.click();

  window.fairweightGallery = {
    current: () => cards[at] ?? null,
    next: () => go(at + 1),
    exact: (card) => exact.get(card),
    find: (id, task) => cards.find((card) => {
      const own = exact.get(card);
      return own.id === id && own.task === task;
    }),
    select: (card) => go(cards.indexOf(card), false),
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, dialog, summary")) return;
    const moves = {
      j: () => go(at + 1), k: () => go(at - 1),
      ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1),
      ArrowDown: () => go(at < 0 ? 0 : at + perRow()), ArrowUp: () => go(at - perRow()),
      "[": () => follow("a[rel=prev]"), "]": () => follow("a[rel=next]"),
    };
    if (moves[event.key] && cards.length) {
      event.preventDefault();
      moves[event.key]();
    } else if (event.key === "Enter" && event.target === cards[at]) {
      cards[at].querySelector("a")?.click();
    }
  });
  for (const [place, card] of cards.entries()) {
    card.addEventListener("focusin", () => { if (at !== place) go(place, false); });
    card.addEventListener("click", () => { if (at !== place) go(place, false); });
  }
  const remembered = /^#example-(\d+)$/.exec(location.hash);
  if (remembered && cards.length > 1) go(Number(remembered[1]) - 1);
})();
