"use strict";
// Every figure as a file: SVG, PNG, or the numbers that it is drawn from as CSV.
(() => {
  const { figures, config } = window.fairweightFigures; // from page.js
  const INK = "#24292f", PAPER = "#ffffff"; // a file knows no page whose colours it could take

  const download = (name, blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };

  const inked = (part, key) => {
    if (key === "values") return part;
    if (Array.isArray(part)) return part.map((held) => inked(held));
    if (part && typeof part === "object") {
      return Object.fromEntries(Object.entries(part).map(([k, held]) => [k, inked(held, k)]));
    }
    return part === "currentColor" ? INK : part;
  };

  // Drawn once more in ink on paper, away from the page.
  const drawn = async (spec, use) => {
    const paper = inked({ ...spec, config: { ...config, background: PAPER } });
    const room = document.createElement("div");
    const made = await window.vegaEmbed(room, paper, { ast: true, renderer: "none", actions: false });
    try {
      return await use(made.view);
    } finally {
      made.finalize();
    }
  };

  // The same rows as `fairweight report figure ID --out FILE.csv`: report/figures/export.py.
  const tables = (part, found) => {
    if (Array.isArray(part)) part.forEach((held) => tables(held, found));
    else if (part && typeof part === "object") {
      const values = part.data && part.data.values;
      if (Array.isArray(values) && values.length && values.some((row) => Object.keys(row).length)) {
        found.set(JSON.stringify(values), values);
      }
      for (const [key, held] of Object.entries(part)) if (key !== "data") tables(held, found);
    }
    return found;
  };
  const FORMULA = /^'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (typeof value === "object") value = JSON.stringify(value);
    let text = String(value);
    if (typeof value === "string" && FORMULA.test(text) && !NUMBER.test(text)) text = "'" + text;
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  const csv = (spec) => {
    const parts = [...tables(spec, new Map()).values()];
    const several = parts.length > 1;
    const rows = parts.flat();
    const picture = (name) => {
      const held = rows.find((row) => row[name] !== null && row[name] !== undefined);
      return held && typeof held[name] === "string" && held[name].startsWith("data:image/");
    };
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((n) => !picture(n));
    const lines = [(several ? ["part", ...columns] : columns).map(cell)];
    parts.forEach((own, i) => own.forEach((row) => {
      const cells = columns.map((name) => cell(row[name]));
      lines.push(several ? [String(i + 1), ...cells] : cells);
    }));
    return lines.map((line) => line.join(",") + "\n").join("");
  };

  const kinds = {
    svg: async (spec) => new Blob([await drawn(spec, (view) => view.toSVG())], { type: "image/svg+xml" }),
    png: (spec) => drawn(spec, async (view) => {
      const canvas = await view.toCanvas(2);
      return new Promise((done) => canvas.toBlob(done, "image/png"));
    }),
    csv: async (spec) => new Blob([csv(spec)], { type: "text/csv" }),
  };
  for (const button of document.querySelectorAll(".save button")) {
    const figure = button.parentElement.dataset.of;
    const kind = button.dataset.kind;
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        download(`${figure}.${kind}`, await kinds[kind]((await figures)[figure]));
      } catch (error) {
        button.textContent = kind.toUpperCase() + " failed: " + error.message;
      } finally {
        button.disabled = false;
      }
    });
  }
})();
