"use strict";
(() => {
  const element = document.getElementById("specs");
  const config = JSON.parse(element.dataset.config); // the theme that all figures share
  // The figures' specifications repeat themselves, so they are sent compressed.
  const unpacked = async () => {
    const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(text).text());
  };
  const figures = unpacked();
  window.fairweightFigures = { figures, config }; // for the buttons that save them
  // The interpreter (ast) runs expressions without eval, which the page's policy forbids.
  const options = {
    ast: true, renderer: "svg", actions: false,
    tooltip: { disableDefaultStyle: true },
  };
  // One after the other, while nothing else is to be done: the finding can be read meanwhile.
  let specs = {};
  const waiting = [];
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 1));
  const next = () => {
    const chart = waiting.shift();
    if (!chart) return;
    window.vegaEmbed(chart, { ...specs[chart.dataset.figure], config }, options).catch((error) => {
      chart.classList.add("failed");
      chart.textContent = "This figure could not be drawn: " + error.message;
    }).finally(() => idle(next));
  };
  const draw = (chart) => {
    if (!specs[chart.dataset.figure] || chart.dataset.drawn) return;
    chart.dataset.drawn = "yes";
    if (waiting.push(chart) === 1) idle(next);
  };
  // A closed section is drawn when it is first opened: a report may hold many variants.
  figures.then((unpackedSpecs) => {
    specs = unpackedSpecs;
    for (const section of document.querySelectorAll("details.figures")) {
      // What is folded inside is drawn when that is opened.
      const own = (chart) => chart.closest("details.figures") === section;
      const all = () => [...section.querySelectorAll(".chart")].filter(own).forEach(draw);
      if (section.open) all();
      section.addEventListener("toggle", () => { if (section.open) all(); });
    }
  }).catch((error) => {
    for (const chart of document.querySelectorAll(".chart")) {
      chart.classList.add("failed");
      chart.textContent = "This browser cannot unpack the figures: " + error.message;
    }
  });

  // A link of the contents opens what it leads to.
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    for (let part = target; part; part = part.parentElement) {
      if (part instanceof HTMLDetailsElement) part.open = true;
    }
  };
  addEventListener("hashchange", reveal);
  reveal();
  // What is folded belongs to the finding, and paper cannot be unfolded.
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll(".part, .rest, [data-printed]")) part.open = true;
  });
})();
