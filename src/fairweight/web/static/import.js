"use strict";
// A file of annotations is sent as it is; the server reads it.
(() => {
  const form = document.querySelector("form.import");
  const status = form.querySelector(".status");
  const meta = (name) => document.querySelector(`meta[name=${name}]`).content;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    status.textContent = "Importing…";
    try {
      const answer = await fetch(`/audit/${encodeURIComponent(meta("study"))}/import`, {
        method: "POST",
        headers: { "Content-Type": "text/csv", "X-CSRF-Token": meta("csrf") },
        body: form.elements.file.files[0],
      });
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.error);
      const unknown = found.n_unknown ? `, ${found.n_unknown} about examples that are not here` : "";
      status.textContent = `${found.n_new} of ${found.n_rows} are new${unknown}. Load the page again to see them.`;
    } catch (error) {
      status.textContent = error.message;
    }
  });
})();
