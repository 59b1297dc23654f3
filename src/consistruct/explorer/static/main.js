// The page: one or two settings, their address, and their comparison.

import * as api from "./api.js";
import { figureElement, forget, showFigure } from "./figures.js";
import { Panel } from "./panel.js";
import { element } from "./result.js";
import { fromAddress, toAddress } from "./state.js";

const FIRST = { loss: "hamming:10x2" };

let options;
const panels = [];
const byId = (id) => document.getElementById(id);

async function start() {
  const place = byId("panels");
  try {
    options = await api.getOptions();
  } catch (error) {
    place.append(element("p", "error", error.message));
    return;
  }
  byId("version").textContent = `consistruct ${options.version}.`;
  const settings = fromAddress(window.location.search, window.location.hash);
  if (settings.length === 0) settings.push(FIRST);
  for (const setting of settings) addPanel().load(setting);
  byId("compare").addEventListener("click", toggleComparison);
  byId("share").addEventListener("click", share);
  byId("skip").addEventListener("click", skip);
  // a pasted address whose fragment alone differs is another setting
  window.addEventListener("hashchange", () => window.location.reload());
  window.addEventListener("pagehide", () => panels.forEach((panel) => panel.stop()));
  for (const type of ["dragover", "drop"]) {
    // a file that misses its place must not replace the page
    window.addEventListener(type, (event) => event.preventDefault());
  }
}

function addPanel() {
  const panel = new Panel("", options, () => changed());
  panels.push(panel);
  byId("panels").append(panel.root);
  nameAll();
  return panel;
}

function nameAll() {
  const two = panels.length > 1;
  panels.forEach((panel, position) => panel.name(two ? "AB"[position] : ""));
  byId("panels").classList.toggle("two", two);
  byId("compare").setAttribute("aria-pressed", String(two));
  byId("compare").textContent = two ? "Back to one setting" : "Compare two settings";
}

function toggleComparison() {
  if (panels.length > 1) {
    const removed = panels.pop();
    removed.close();
    forget(removed.root);
    removed.root.remove();
    nameAll();
  } else {
    const second = addPanel();
    second.beside(panels[0]);
    second.root.scrollIntoView({ block: "nearest" });
    second.form.input("scores").focus();
  }
  changed();
}

function changed() {
  byId("share-note").textContent = "";
  const address = toAddress(panels.map((panel) => panel.forAddress()));
  window.history.replaceState(null, "", address || window.location.pathname);
  compare();
}

let compared = "";

async function compare() {
  const place = byId("comparison");
  const jobs = panels.map((panel) => panel.finished?.id);
  const wanted = jobs.length === 2 && jobs.every(Boolean) ? jobs.join() : "";
  if (wanted === compared) return;
  compared = wanted;
  if (!wanted) {
    place.hidden = true;
    return;
  }
  let figures;
  try {
    ({ figures } = await api.compare(...jobs));
  } catch {
    compared = "";
    return; // the panels say what is wrong
  }
  if (wanted !== compared) return;
  place.hidden = false;
  const target = byId("comparison-figures");
  const shape = Object.keys(figures).join();
  if (target.dataset.shape !== shape) {
    forget(target);
    target.replaceChildren();
    target.dataset.shape = shape;
    target.figures = new Map();
    for (const [key, figure] of Object.entries(figures)) {
      const made = figureElement(figure, "h3");
      target.append(made.place);
      target.figures.set(key, made);
    }
  }
  for (const [key, figure] of Object.entries(figures)) {
    const { plot, tell } = target.figures.get(key);
    tell(figure);
    await showFigure(plot, figure, options);
  }
}

async function share() {
  const note = byId("share-note");
  try {
    await navigator.clipboard.writeText(window.location.href);
    note.textContent = "Copied. It opens the same settings in an explorer on the same port.";
  } catch {
    note.textContent = "Copy it from the address bar: it contains the settings you see.";
  }
}

function skip(event) {
  event.preventDefault(); // the fragment of the address is taken
  const result = panels[0].part("result");
  if (!result.hidden) result.focus();
}

start();
