// The gallery of exemplars: filters, one key per verdict, progress, download and import.
(() => {
  const root = document.getElementById("gallery");
  const data = JSON.parse(document.getElementById("gallery-data").textContent);
  const log = annotationLog(data);
  const part = (name) => root.querySelector("[data-part='" + name + "']");
  const cards = [...root.querySelectorAll(".card")];
  const about = (card) => data.cards[cards.indexOf(card)];
  let current = cards[0];

  const said = () => {
    const found = new Map(cards.map((card) => [card, []]));
    const places = new Map(data.cards.map((c, i) => [JSON.stringify([c.task, c.example_id]), i]));
    for (const row of log.current()) {
      const place = places.get(JSON.stringify([row.task, row.example_id]));
      if (place !== undefined) found.get(cards[place]).push(row);
    }
    return found;
  };
  const mine = (rows) => rows.find((row) => row.annotator === log.annotator());
  const tell = (text) => { part("status").textContent = text; };

  const words = (verdict) => verdict.replace("_", " ");
  const line = (row) => {
    const given = row.verdict === "label_wrong" && row.label ? ", it is " + row.label : "";
    const note = row.note ? " (" + row.note + ")" : "";
    return (row.annotator || "no name") + ": " + words(row.verdict) + given + note;
  };
  const filtered = (card, rows) => {
    const { variants, task, label } = about(card);
    const asked = (name) => { const box = part(name); return box ? box.value : ""; };
    const index = (name, list) => asked(name) === "" || list.includes(data[name][asked(name)]);
    if (!index("variants", variants) || !index("tasks", [task])) return false;
    if (!index("labels", [label])) return false;
    const own = mine(rows);
    const wanted = asked("annotated");
    if (wanted === "yes") return Boolean(own);
    if (wanted === "no") return !own;
    return wanted === "" || Boolean(own && own.verdict === wanted);
  };
  const visible = () => cards.filter((card) => !card.hidden);

  const draw = () => {
    const all = said();
    let n = 0;
    for (const [card, rows] of all) {
      const own = mine(rows);
      if (own) n += 1;
      card.hidden = !filtered(card, rows);
      card.dataset.verdict = own ? own.verdict : "";
      card.querySelector(".said").replaceChildren(...rows.map((row) => {
        const item = document.createElement("li");
        item.textContent = line(row);
        return item;
      }));
    }
    part("progress").value = n;
    part("count").textContent = n + " of " + cards.length + " judged"
      + (log.annotator() ? " by " + log.annotator() : "")
      + ", " + visible().length + " shown";
    part("kept").textContent = log.refused()
      ? "This browser refuses to keep anything for this page. Download annotations.csv before you "
        + "close it; you can import it again next time."
      : "Kept in this browser, on this computer, until its data are cleared. Download "
        + "annotations.csv to hand it on.";
    part("kept").classList.toggle("refused", Boolean(log.refused()));
    const own = mine(all.get(current));
    part("note").value = own ? own.note : log.draft(about(current));
    part("label").value = own && own.verdict === "label_wrong"
      ? String(data.classes.indexOf(own.label)) : "-1";
    for (const card of cards) {
      card.tabIndex = card === current ? 0 : -1;
      if (card === current) card.setAttribute("aria-current", "true");
      else card.removeAttribute("aria-current");
    }
  };
  const choose = (card, focus = true) => {
    if (!card) return;
    current = card;
    draw();
    if (focus) current.focus();
  };
  const step = (by) => {
    const list = visible();
    const next = list[Math.max(0, Math.min(list.length - 1, list.indexOf(current) + by))];
    choose(next);
  };
  const across = () => {
    const list = visible();
    return list.filter((card) => card.offsetTop === list[0].offsetTop).length || 1;
  };

  const named = () => {
    if (log.annotator()) return true;
    tell("Write your name first: it stands beside every verdict.");
    part("name").focus();
    return false;
  };
  const judge = (verdict, more = {}) => {
    if (!named()) return;
    const { example_id, task, label } = about(current);
    const stands = data.withoutLabel.includes(verdict) || verdict === "label_wrong" ? "" : label;
    log.add({ example_id, task, verdict, label: stands, note: part("note").value, ...more });
    const list = visible();
    const next = list[list.indexOf(current) + 1];
    tell(example_id + ": " + words(verdict)
      + (verdict === "label_wrong" && !more.label ? ". Press l to give the right label." : "."));
    if (verdict === "label_wrong") choose(current);
    else choose(next || current);
  };
  const note = () => {
    const own = mine(said().get(current));
    const text = part("note").value;
    if (text === (own ? own.note : log.draft(about(current)))) return;
    if (own) log.add({ ...own, note: text });
    else {
      log.draft(about(current), text);
      tell("The note is kept with the verdict that you give.");
    }
    draw();
  };
  const relabel = () => {
    const own = mine(said().get(current));
    const given = data.classes[Number(part("label").value)] ?? "";
    if (given === (own && own.verdict === "label_wrong" ? own.label : "")) return;
    judge("label_wrong", { label: given });
  };
  const undo = () => {
    const taken = log.undo();
    const card = taken && cards.find((c) => about(c).example_id === taken.example_id
      && about(c).task === taken.task);
    draw();
    if (card && !card.hidden) choose(card);
    tell(taken ? "Undone: " + words(taken.verdict) + " on " + taken.example_id + "."
      : "There is nothing of yours to undo.");
  };

  const download = () => {
    const rows = log.current();
    const blob = new Blob([annotationCsv.write(data.columns, rows)], { type: "text/csv" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "annotations.csv";
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    tell(rows.length + " annotations written to annotations.csv.");
  };
  const bring = async () => {
    const [file] = part("file").files;
    if (!file) return;
    try {
      const rows = annotationCsv.read(data.columns, await file.text());
      const added = log.merge(rows);
      const here = new Set(data.cards.map((c) => JSON.stringify([c.task, c.example_id])));
      const away = rows.filter((r) => !here.has(JSON.stringify([r.task, r.example_id]))).length;
      tell(added + " of " + rows.length + " annotations were new"
        + (away ? "; " + away + " are about examples that are not shown here." : "."));
    } catch (error) {
      tell("Nothing was imported from " + file.name + ": " + error.message + ".");
    }
    part("file").value = "";
    draw();
  };

  const moves = {
    j: () => step(1), ArrowRight: () => step(1), k: () => step(-1), ArrowLeft: () => step(-1),
    ArrowDown: () => step(across()), ArrowUp: () => step(-across()),
    Home: () => choose(visible()[0]), End: () => choose(visible().at(-1)),
    n: () => part("note").focus(), l: () => part("label").focus(), u: undo,
  };
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const field = event.target.closest("input, select, textarea");
    if (field) {
      if (event.key === "Escape") draw(); // as it was before
      if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
        event.preventDefault();
        current.focus(); // leaving a field keeps what is in it
      }
      return;
    }
    const inButton = event.target.closest("button, summary") && event.key.length > 1;
    const act = moves[event.key] || (data.keys[event.key] && (() => judge(data.keys[event.key])));
    if (!act || inButton) return;
    event.preventDefault();
    act();
  });
  root.addEventListener("focusin", (event) => {
    const card = event.target.closest(".card");
    if (card && card !== current) choose(card, false);
  });
  part("cards").addEventListener("click", (event) => choose(event.target.closest(".card")));
  for (const button of root.querySelectorAll("button[data-verdict]")) {
    button.addEventListener("click", () => judge(button.dataset.verdict));
  }
  part("undo").addEventListener("click", undo);
  part("download").addEventListener("click", download);
  part("import").addEventListener("click", () => part("file").click());
  part("file").addEventListener("change", bring);
  part("note").addEventListener("blur", note);
  part("label").addEventListener("blur", relabel);
  part("name").addEventListener("change", () => {
    log.rename(part("name").value.trim());
    tell("");
    draw();
  });
  for (const filter of root.querySelectorAll("select[data-filter]")) {
    filter.addEventListener("change", () => {
      draw();
      if (current.hidden) choose(visible()[0], false);
    });
  }
  addEventListener("storage", (event) => {
    if (event.key !== data.storage) return;
    log.load();
    part("name").value = log.annotator();
    draw();
  });
  addEventListener("beforeunload", (event) => {
    if (log.refused() && log.current().length) event.preventDefault();
  });

  part("name").value = log.annotator();
  part("panel").hidden = false;
  draw();
})();
