"use strict";
// Figures are fetched and drawn when they come into view.
(() => {
  // The interpreter (ast) runs expressions without eval, which the policy of the page forbids.
  const options = {
    ast: true, renderer: "svg", actions: false, defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  };
  const absent = (figure, sentence) => {
    const note = figure.querySelector(".absent");
    note.textContent = sentence;
    note.hidden = false;
    figure.querySelector(".canvas").hidden = true;
    figure.classList.add("not-drawn");
  };
  const draw = async (figure) => {
    try {
      const answer = await fetch(figure.dataset.source);
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.error);
      if (found.reason) return absent(figure, `Not drawn, because ${found.reason}.`);
      figure.querySelector(".canvas").setAttribute("aria-label", found.alt);
      await window.vegaEmbed(figure.querySelector(".chart"), found.spec, options);
      figure.classList.add("drawn");
    } catch (error) {
      absent(figure, `This figure could not be drawn: ${error.message}`);
    }
  };
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watch.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "400px" });
  for (const figure of document.querySelectorAll("figure.lazy")) watch.observe(figure);
})();
