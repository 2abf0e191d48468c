"use strict";
// On every page: tables that sort, and a dialogue with the keys.
(() => {
  const order = (a, b) => {
    if (a === b) return 0;
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  for (const button of document.querySelectorAll("table.sortable th button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = head.closest("table").tBodies[0];
      const key = (row) => row.cells[head.cellIndex].dataset.sort ?? "";
      body.append(...[...body.rows].sort((r, s) => {
        const a = key(r), b = key(s);
        if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1; // nothing comes last
        return down ? order(b, a) : order(a, b);
      }));
    });
  }

  const keys = document.querySelector("dialog.keys");
  if (!keys) {
    document.querySelector(".keys-hint")?.remove();
    return;
  }
  addEventListener("keydown", (event) => {
    if (event.key === "?" && !event.target.closest("input, textarea, select")) keys.showModal();
  });
})();
