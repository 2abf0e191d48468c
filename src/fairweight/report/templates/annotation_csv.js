"use strict";
// annotations.csv, as tables/annotations/csv_file.py writes and reads it.
const annotationCsv = (() => {
  // A spreadsheet runs cells that begin like this; an apostrophe before them keeps it from that.
  const RUNS = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
  const GUARDED = /^'+[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

  const cell = (text) => {
    const guarded = RUNS.test(text) ? "'" + text : text;
    return /[",\r\n]/.test(guarded) ? '"' + guarded.replaceAll('"', '""') + '"' : guarded;
  };
  const write = (columns, rows) =>
    [columns, ...rows.map((row) => columns.map((name) => row[name]))]
      .map((cells) => cells.map(cell).join(",") + "\r\n").join("");

  const cells = (text, delimiter) => {
    const lines = [];
    let line = [], held = "", quoted = false, closed = false;
    const endCell = () => { line.push(held); held = ""; closed = false; };
    const endLine = () => { endCell(); lines.push(line); line = []; };
    for (let i = 0; i < text.length; i += 1) {
      const sign = text[i];
      if (quoted) {
        if (sign !== '"') held += sign;
        else if (text[i + 1] === '"') { held += '"'; i += 1; }
        else { quoted = false; closed = true; }
      } else if (sign === '"' && held === "" && !closed) quoted = true;
      else if (sign === delimiter) endCell();
      else if (sign === "\r" || sign === "\n") {
        if (sign === "\r" && text[i + 1] === "\n") i += 1;
        endLine();
      } else if (closed) throw new Error("text after a closing quote");
      else held += sign;
    }
    if (quoted) throw new Error("a quote is not closed");
    if (held !== "" || closed || line.length) endLine();
    return lines.filter((found) => found.length > 1 || found[0] !== "");
  };

  // Rows as objects with all columns; what is missing is empty.
  const read = (columns, text) => {
    const plain = text.replace(/^\ufeff/, "");
    const first = plain.split("\n", 1)[0];
    const count = (sign) => first.split(sign).length;
    const delimiter = [",", ";", "\t"].reduce((a, b) => (count(b) > count(a) ? b : a));
    const [header = [], ...lines] = cells(plain, delimiter);
    const names = header.map((name) => name.trim());
    for (const needed of ["example_id", "verdict"]) {
      if (!names.includes(needed)) throw new Error("it has no column '" + needed + "'");
    }
    return lines.map((line) => Object.fromEntries(columns.map((name) => {
      const held = line[names.indexOf(name)] ?? "";
      return [name, GUARDED.test(held) ? held.slice(1) : held];
    })));
  };
  return { write, read };
})();
