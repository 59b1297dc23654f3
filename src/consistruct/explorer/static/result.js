// A report on the page: the sections of the report model with their figures, in place, so that a
// moving ε redraws and nothing jumps. Every text from outside goes through textContent.

import { fileAddress } from "./api.js";
import { figureElement, forget, showFigure } from "./figures.js";

const LONG = 48; // characters of a fact that takes a line of its own
const FIRST = ["consistency", "curve"]; // what a reader looks at while moving ε

export class ResultView {
  constructor(place, options) {
    this.place = place;
    this.options = options;
    this.sections = new Map();
  }

  async show(id, result) {
    const { sections, figures, table } = result;
    const shape = sections.map(({ key, charts }) => `${key}:${charts.filter((c) => figures[c])}`).join();
    if (shape !== this.shape) this.build(sections, figures);
    this.shape = shape;
    this.place.hidden = false;
    for (const section of sections) this.fill(this.sections.get(section.key), section);
    fillTable(this.table, table);
    for (const link of this.links) link.href = fileAddress(id, link.dataset.file);
    const drawing = [];
    for (const [key, figure] of Object.entries(figures)) {
      const plot = this.plots.get(key);
      if (plot) drawing.push(showFigure(plot.plot, figure, this.options), plot.tell(figure));
    }
    await Promise.all(drawing);
  }

  build(sections, figures) {
    forget(this.place);
    this.place.replaceChildren();
    this.sections.clear();
    this.plots = new Map();
    const rank = ({ key }) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
    for (const section of sections.toSorted((one, other) => rank(one) - rank(other))) {
      const root = element("section", "answer");
      root.dataset.key = section.key;
      const parts = {
        question: element("h3"),
        answer: element("p", "short"),
        figures: element("div", "figures"),
        facts: element("dl", "facts"),
        more: element("details"),
      };
      parts.more.append(element("summary", "", "What this means, and what it does not"));
      parts.details = element("div");
      parts.more.append(parts.details);
      for (const key of section.charts) {
        if (!figures[key]) continue;
        const made = figureElement(figures[key], "h4");
        parts.figures.append(made.place);
        this.plots.set(key, made);
      }
      const inner = [parts.figures, parts.facts, parts.more];
      if (section.fold) {
        parts.fold = element("details", "fold");
        parts.fold.append(element("summary", "", section.fold), parts.details, ...inner.slice(0, 2));
        root.append(parts.question, parts.answer, parts.fold);
      } else {
        root.append(parts.question, parts.answer, ...inner);
      }
      this.place.append(root);
      this.sections.set(section.key, parts);
    }
    this.place.append(this.buildTable(), this.buildFiles());
  }

  fill(parts, section) {
    parts.question.textContent = section.question;
    parts.answer.textContent = section.answer;
    parts.facts.replaceChildren(
      ...section.facts.map(([name, value]) => {
        const pair = element("div", value.length > LONG ? "long" : "");
        pair.append(element("dt", "", name), element("dd", "", value));
        return pair;
      }),
    );
    parts.facts.hidden = section.facts.length === 0;
    parts.details.replaceChildren(...section.details.map((text) => element("p", "", text)));
    parts.more.hidden = section.details.length === 0;
  }

  buildTable() {
    const more = element("details", "numbers");
    more.append(element("summary", "", "The curve in numbers"));
    const scroll = element("div", "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "The curve in numbers");
    const table = element("table");
    const head = element("tr");
    for (const name of ["ε", "H from about", "to about", "status", "better", "predicted"]) {
      const cell = element("th", "", name);
      cell.scope = "col";
      head.append(cell);
    }
    const header = element("thead");
    header.append(head);
    this.table = element("tbody");
    table.append(header, this.table);
    scroll.append(table);
    more.append(scroll);
    return more;
  }

  buildFiles() {
    const files = element("p", "files");
    files.append(element("span", "", "Download: "));
    this.links = this.options.files.map(({ name, title }) => {
      const link = element("a", "", title);
      link.setAttribute("download", "");
      link.dataset.file = name;
      files.append(link, " ");
      return link;
    });
    return files;
  }
}

export function element(tag, name = "", text = null) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== null) made.textContent = text;
  return made;
}

function fillTable(body, rows) {
  body.replaceChildren(
    ...rows.map((cells) => {
      const row = element("tr");
      row.append(...cells.map((text) => element("td", "", text)));
      return row;
    }),
  );
}
