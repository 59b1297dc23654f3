// Figures of the report model, drawn by Plotly in the colors of the page.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const NARROW = 480; // pixels; letters are smaller on a phone, so that axes keep their titles
const drawn = new Set(); // elements to draw again when the colors change

function recolored(value, colors) {
  if (typeof value === "string") return colors[value] ?? value;
  if (Array.isArray(value)) return value.map((entry) => recolored(entry, colors));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [key, recolored(entry, colors)]),
    );
  }
  return value;
}

function draw(element) {
  const { figure, options } = element.explorer;
  element.style.height = `${figure.layout.height}px`; // what Plotly keeps when the width changes
  const shown = dark.matches ? recolored(figure, options.theme_colors) : structuredClone(figure);
  if (element.clientWidth < NARROW) shown.layout.font.size = 11;
  return window.Plotly.react(element, shown.data, shown.layout, options.plotly_config);
}

// a plot fills its column, also when the column changes and the window does not
const resizing = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (drawn.has(target) && target.clientWidth > 0) window.Plotly.Plots.resize(target);
  }
});

// the element shows this figure from now on
export function showFigure(element, figure, options) {
  element.explorer = { figure, options };
  const first = !drawn.has(element);
  drawn.add(element);
  return draw(element).then(() => first && resizing.observe(element));
}

export function forget(root) {
  for (const element of root.querySelectorAll(".plot")) {
    drawn.delete(element);
    resizing.unobserve(element);
    if (element.explorer) window.Plotly.purge(element);
  }
}

// heading, place for the plot and caption; `tell` sets the words of a figure
export function figureElement(figure, level) {
  const place = document.createElement("figure");
  const heading = document.createElement(level);
  const plot = document.createElement("div");
  plot.className = "plot";
  plot.setAttribute("role", "group"); // it holds buttons
  const caption = document.createElement("figcaption");
  place.append(heading, plot, caption);
  const tell = (shown) => {
    const { title, caption: text } = shown.layout.meta;
    heading.textContent = title;
    caption.textContent = text;
    plot.setAttribute("aria-label", `${title}. ${text}`);
  };
  tell(figure);
  return { place, plot, tell };
}

dark.addEventListener("change", () => drawn.forEach((element) => draw(element)));
