"use strict";
// Verdicts by key or button; whatever is shown as saved is on the server's disk.
(() => {
  const KEYS = { w: "label_wrong", a: "ambiguous", h: "model_harmful", f: "fine", s: "skip" };
  const gallery = window.fairweightGallery;
  const csrf = document.querySelector("meta[name=csrf]").content;
  const study = document.querySelector("meta[name=study]").content;
  const name = document.querySelector(".annotator input[name=annotator]");
  const status = document.querySelector(".annotator .status");
  const dialog = document.querySelector(".note-dialog");

  // Storage may be forbidden; then the name lives as long as the page.
  const kept = (write) => { try { return write(); } catch { return null; } };
  name.value = kept(() => localStorage.getItem("fairweight-annotator")) ?? "";
  name.addEventListener("input", () => {
    kept(() => localStorage.setItem("fairweight-annotator", name.value));
  });
  name.form.addEventListener("submit", (event) => event.preventDefault());

  const say = (text, bad = false) => {
    status.textContent = text;
    status.classList.toggle("bad", bad);
  };
  const post = async (what, body) => {
    const answer = await fetch(`/audit/${encodeURIComponent(study)}/${what}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
      body: JSON.stringify(body),
    });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  };
  const show = (card, given) => {
    const list = card.querySelector(".given");
    list.replaceChildren(...given.map((one) => {
      const entry = document.createElement("li");
      entry.className = "verdict";
      entry.classList.add(one.verdict);
      entry.title = one.note;
      entry.textContent = one.verdict.replace("_", " ") + (one.label ? `: ${one.label}` : "");
      if (one.annotator) {
        const who = document.createElement("span");
        who.className = "who";
        who.textContent = one.annotator;
        entry.append(" ", who);
      }
      return entry;
    }));
  };
  // One after the other: an undo must not overtake the verdict that it takes back.
  let line = Promise.resolve();
  const queue = (work) => {
    line = line.then(work).catch((error) => say(error.message, true));
    return line;
  };

  const annotate = (card, verdict, label = "", note = "", moved = "") => queue(async () => {
    card.classList.add("saving");
    try {
      const saved = await post("annotate", {
        example_id: gallery.exact(card).id, task: gallery.exact(card).task, verdict, label, note,
        annotator: name.value,
      });
      show(card, saved.given);
      const nameless = name.value.trim() ? "" : " No name was given; type yours above.";
      const number = `${saved.n_annotated} annotated.`;
      say(`Saved: ${verdict.replace("_", " ")}. ${number}${moved}${nameless}`);
    } finally {
      card.classList.remove("saving");
    }
  });
  const undo = () => queue(async () => {
    const taken = await post("undo", { annotator: name.value });
    if (!taken.undone) return say("There is nothing to undo.");
    const card = gallery.find(taken.example_id, taken.task);
    if (card) show(card, taken.given);
    say(`Undone: ${taken.undone.verdict.replace("_", " ")}. ${taken.n_annotated} annotated.`);
  });
  const openNote = (card) => {
    dialog.querySelector(".of-example").textContent =
      `Example ${card.dataset.id}, recorded as ${gallery.exact(card).label}`;
    dialog.querySelector("[name=label]").value = "";
    dialog.querySelector("[name=note]").value = "";
    dialog.showModal();
    dialog.querySelector("[name=note]").focus();
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest("input, textarea, select, dialog")) return;
    const card = gallery.current();
    if (event.key === "u") {
      event.preventDefault();
      undo();
    } else if (!card && (KEYS[event.key] || event.key === "n")) {
      event.preventDefault();
      say("No example is selected: click one, or press j.", true);
    } else if (card && KEYS[event.key]) {
      event.preventDefault();
      const verdict = KEYS[event.key];
      if (document.querySelectorAll(".card").length > 1) gallery.next();
      const now = gallery.current();
      const moved = now === card ? "" : ` Next: ${now.dataset.id}.`;
      annotate(card, verdict, "", "", moved);
    } else if (card && event.key === "n") {
      event.preventDefault();
      openNote(card);
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-verdict]");
    if (event.target.closest("button[data-action=undo]")) undo();
    if (!button) return;
    const inDialog = button.closest("dialog") === dialog;
    const card = inDialog ? gallery.current() : button.closest(".card") ?? gallery.current();
    if (!card) return say("No example is selected: click one, or press j.", true);
    if (inDialog) {
      const field = (which) => dialog.querySelector(`[name=${which}]`).value;
      annotate(card, button.dataset.verdict, field("label"), field("note"));
      dialog.close();
    } else {
      annotate(card, button.dataset.verdict);
    }
  });
})();
