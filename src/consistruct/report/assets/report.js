"use strict";
// Draws the figures of a report and keeps their colors those of the page.
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const { figures, colors, config } = read("figures");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // a copy, because Plotly writes into what it draws; light colors become dark ones by name
  const copy = (value, map) => {
    if (Array.isArray(value)) return value.map((entry) => copy(entry, map));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, copy(entry, map)]));
    }
    return typeof value === "string" && Object.hasOwn(map, value) ? map[value] : value;
  };

  const draw = () => {
    for (const [key, figure] of Object.entries(figures)) {
      const { data, layout } = copy(figure, dark.matches ? colors : {});
      if (window.innerWidth < 600) layout.font.size = 11;
      Plotly.react(document.getElementById(`figure-${key}`), data, layout, config);
    }
  };

  const save = (button) => {
    const { name, type, text } = read("files")[Number(button.dataset.file)];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  draw();
  const fit = new ResizeObserver((entries) => {
    for (const entry of entries) {
      if (entry.contentRect.width > 0) Plotly.Plots.resize(entry.target); // 0: behind a fold
    }
  });
  for (const key of Object.keys(figures)) fit.observe(document.getElementById(`figure-${key}`));
  dark.addEventListener("change", draw);
  for (const button of document.querySelectorAll("button[data-file]")) {
    button.addEventListener("click", () => save(button));
  }
})();
