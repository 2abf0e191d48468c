"use strict";
// Tables whose headings are buttons sort by them; the web page has this script too.
(() => {
  const order = (a, b) => {
    if (a === b) return 0;
    if (a === "" || b === "") return a === "" ? 1 : -1; // nothing comes last, either way
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.parentElement;
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = head.closest("table").tBodies[0];
      const key = (row) => {
        const cell = row.cells[head.cellIndex];
        return "sort" in cell.dataset ? cell.dataset.sort : cell.textContent;
      };
      const rows = [...body.rows].sort((r, s) => {
        const a = key(r), b = key(s);
        return a === "" || b === "" || !down ? order(a, b) : order(b, a);
      });
      body.append(...rows);
    });
  }
})();
