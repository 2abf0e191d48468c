"use strict";
// On every page: a dialogue with the keys.
(() => {
  const keys = document.querySelector("dialog.keys");
  if (!keys) {
    document.querySelector(".keys-hint")?.remove();
    return;
  }
  addEventListener("keydown", (event) => {
    if (event.key === "?" && !event.target.closest("input, textarea, select")) keys.showModal();
  });
})();
