// What people said about examples, kept in the browser's storage under the name of the audit.
const annotationLog = ({ storage, withoutLabel, keys }) => {
  const said = (row) => JSON.stringify([row.annotator, row.task, row.example_id]);
  const moment = (time) => (time ? Date.parse(time) : -Infinity);
  let held = { annotator: "", log: [], drafts: {} };
  let refused = null;

  // Another tab with the same report may have written since.
  const load = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(storage) || "null");
      if (kept && Array.isArray(kept.log)) held = { ...held, ...kept };
    } catch (error) {
      refused = error;
    }
    return held;
  };
  const save = () => {
    try {
      localStorage.setItem(storage, JSON.stringify(held));
      refused = null;
    } catch (error) {
      refused = error;
    }
  };
  const change = (how) => {
    if (!refused) load();
    how();
    save();
  };

  // One per person, task and example: the newest, of equally new ones the last.
  const current = () => {
    const found = new Map();
    for (const row of held.log) {
      const key = said(row);
      const before = found.get(key);
      if (before && moment(row.time) < moment(before.time)) continue;
      found.delete(key);
      found.set(key, row);
    }
    return [...found.values()];
  };
  const fault = (row) => {
    if (!row.example_id) return "it names no example";
    if (!Object.values(keys).includes(row.verdict)) return "'" + row.verdict + "' is no verdict";
    if (row.label && withoutLabel.includes(row.verdict)) return row.verdict + " takes no label";
    const utc = /(Z|[+-]00:?00)$/.test(row.time) && !Number.isNaN(Date.parse(row.time));
    return row.time && !utc ? "'" + row.time + "' is no time in UTC" : "";
  };
  // Importing a file twice changes nothing, and an older file replaces nothing newer.
  const merge = (rows) => {
    rows.forEach((row, i) => {
      if (fault(row)) throw new Error("row " + (i + 1) + ": " + fault(row));
    });
    let added = 0;
    change(() => {
      const newest = new Map(current().map((row) => [said(row), moment(row.time)]));
      const order = (a, b) => Number(a > b) - Number(a < b);
      for (const row of [...rows].sort((a, b) => order(moment(a.time), moment(b.time)))) {
        if (newest.get(said(row)) >= moment(row.time)) continue;
        newest.set(said(row), moment(row.time));
        held.log.push(row);
        added += 1;
      }
    });
    return added;
  };
  const undo = () => {
    let taken = null;
    change(() => {
      const place = held.log.map((row) => row.annotator).lastIndexOf(held.annotator);
      if (place >= 0) [taken] = held.log.splice(place, 1);
    });
    return taken;
  };
  const add = (row) => change(() => {
    held.log.push({ ...row, annotator: held.annotator, time: new Date().toISOString() });
    delete held.drafts[JSON.stringify([row.task, row.example_id])];
  });
  const draft = ({ task, example_id: id }, note) => {
    const key = JSON.stringify([task, id]);
    if (note === undefined) return held.drafts[key] || "";
    change(() => { held.drafts[key] = note; });
    return note;
  };

  load();
  save(); // whether it is kept is known before anything is typed
  return {
    add, undo, merge, current, draft, load,
    annotator: () => held.annotator,
    rename: (name) => change(() => { held.annotator = name; }),
    refused: () => refused,
  };
};
