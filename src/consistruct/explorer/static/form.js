// One setting as a form: choices, fields of the chosen loss, and the spec that they amount to.

const SPEC = "spec"; // value of the choice of a loss that is written as a spec
const MATRIX = "matrix";
const METRIC = "metric"; // a metric of the whole data set, at a confusion
const ZERO_ONE = "zero-one";
const FULL_IS_QUICK = ["hamming", "block"]; // by symmetry, whatever their size
const MOST_LABELS = 1000n; // of a 0-1 loss to compare with
const WANTED = {
  [MATRIX]: "Cost matrix: choose a CSV file, or drop it here",
  [METRIC]: "Confusion, counts of predictions and true labels: choose a CSV file, or drop it here",
};
const BAYES = ["log", "sparsemax"]; // surrogates that estimate a distribution

export class SettingForm {
  // onChange(slow): a choice was made (slow: text is being typed); onFile(file): a matrix was given
  constructor(root, options, { onChange, onFile }) {
    this.form = root.querySelector("form");
    this.options = options;
    this.onChange = onChange;
    this.onFile = onFile;
    this.maxEps = null;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.input = (name) => this.form.elements.namedItem(name);
    this.fill();
    this.listen();
  }

  fill() {
    const kinds = this.options.losses.map(({ name, title }) => [name, title]);
    kinds.push(
      [SPEC, "Any other, written as a spec"],
      [MATRIX, "My own cost matrix (CSV file)"],
      [METRIC, "A metric, at a confusion (CSV file)"],
    );
    fillSelect(this.input("kind"), kinds);
    for (const [name, choices] of [
      ["metric", this.options.metrics],
      ["scores", this.options.scores],
      ["surrogate", this.options.surrogates],
      ["decoding", this.options.decodings],
    ]) {
      fillSelect(this.input(name), choices.map(({ name: value, title }) => [value, title]));
    }
  }

  listen() {
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.input("kind").addEventListener("change", () => this.chooseKind());
    this.input("spec").addEventListener("input", () => this.readSpec());
    for (const name of ["metric", "scores", "surrogate", "decoding"]) {
      this.input(name).addEventListener("change", () => this.changed(false));
    }
    this.input("blocks").addEventListener("input", () => this.changed(true));
    this.input("eps").addEventListener("input", () => {
      this.moveSlider();
      this.changed(true);
    });
    this.input("slider").addEventListener("input", () => {
      const share = Number(this.input("slider").value) / 1000;
      this.input("eps").value = String(Number((share * this.maxEps).toPrecision(4)));
      this.changed(true);
    });
    this.input("rows").addEventListener("change", () => this.onFile(null));
    this.input("typed").addEventListener("change", () => {
      const text = this.input("typed").value;
      if (text.trim()) this.onFile(new File([text], "typed.csv"));
    });
    const file = this.input("file");
    file.addEventListener("change", () => file.files.length && this.onFile(file.files[0]));
    const drop = this.form.querySelector(".drop");
    for (const type of ["dragenter", "dragover"]) {
      drop.addEventListener(type, (event) => {
        event.preventDefault();
        drop.classList.add("over");
      });
    }
    for (const type of ["dragleave", "drop"]) {
      drop.addEventListener(type, () => drop.classList.remove("over"));
    }
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length) this.onFile(event.dataTransfer.files[0]);
    });
  }

  changed(slow) {
    this.show();
    this.onChange(slow);
  }

  // --- loss ---

  chooseKind() {
    const offer = this.offer();
    if (offer) this.setSpec(format(offer, offer.fields.map((field) => field.default)));
    this.input("eps").value = "";
    this.buildFields();
    this.changed(false);
    if (this.kind() === SPEC) this.input("spec").focus();
  }

  kind() {
    return this.input("kind").value;
  }

  offer() {
    return this.options.losses.find(({ name }) => name === this.kind());
  }

  setSpec(spec) {
    this.input("spec").value = spec;
  }

  // a spec that fits no offer stands for itself
  readSpec() {
    const spec = this.input("spec").value.trim();
    const fits = this.options.losses.find((offer) => pattern(offer).test(spec));
    this.input("kind").value = fits ? fits.name : SPEC;
    this.input("eps").value = "";
    this.buildFields();
    this.changed(true);
  }

  buildFields() {
    const place = this.part("fields");
    const offer = this.offer();
    const values = offer ? pattern(offer).exec(this.input("spec").value.trim()) : null;
    const kept = place.dataset.offer === (offer?.name ?? "");
    if (!kept) place.replaceChildren();
    place.dataset.offer = offer?.name ?? "";
    if (!offer) return;
    offer.fields.forEach((field, position) => {
      let input = place.querySelectorAll("input")[position];
      if (!input) {
        const label = document.createElement("label");
        label.textContent = field.label;
        input = document.createElement("input");
        input.autocomplete = "off";
        if (field.kind === "sizes") {
          input.type = "text";
          input.title = "4x25: four groups of 25; or 3,5,2";
        } else {
          input.type = "number";
          input.min = field.kind === "integer" ? "1" : "0";
          input.step = field.kind === "integer" ? "1" : "any";
        }
        input.addEventListener("input", () => this.readFields());
        label.append(input);
        place.append(label);
      }
      const value = values ? values[position + 1] : field.default;
      if (document.activeElement !== input) input.value = value;
    });
  }

  readFields() {
    const inputs = [...this.part("fields").querySelectorAll("input")];
    this.setSpec(format(this.offer(), inputs.map((input) => input.value.trim())));
    this.input("eps").value = "";
    this.changed(true);
  }

  // --- what is shown, what is requested ---

  show() {
    const matrix = this.usesMatrix();
    this.part("spec").hidden = matrix;
    this.part("upload").hidden = !matrix;
    this.part("metric").hidden = this.kind() !== METRIC;
    if (matrix) this.part("wanted").textContent = WANTED[this.kind()];
    this.part("blocks").hidden = this.input("scores").value !== "blocks";
    const bayes = BAYES.includes(this.input("surrogate").value);
    this.part("decoding").hidden = !bayes;
    if (!bayes) this.input("decoding").value = "argmax";
    this.input("slider").disabled = !this.maxEps;
  }

  setRange(maxEps, at) {
    this.maxEps = maxEps;
    this.input("eps").placeholder = at === null ? "chosen for you" : `${at.toPrecision(3)} (chosen)`;
    this.at = at;
    this.moveSlider();
    this.show();
  }

  moveSlider() {
    if (!this.maxEps) return;
    const typed = this.input("eps").value;
    const eps = typed === "" ? this.at : Number(typed);
    const slider = this.input("slider");
    slider.max = "1000";
    if (eps !== null && document.activeElement !== slider) {
      slider.value = String(Math.round((1000 * eps) / this.maxEps));
    }
    slider.setAttribute("aria-valuetext", `ε = ${eps === null ? "none" : eps.toPrecision(3)}`);
  }

  setting(matrix) {
    const eps = this.input("eps").value.trim();
    const blocks = this.input("scores").value === "blocks";
    return {
      loss: this.usesMatrix() ? "" : this.input("spec").value.trim(),
      matrix: this.usesMatrix() ? matrix : "",
      metric: this.kind() === METRIC ? this.input("metric").value : "",
      scores: blocks ? `blocks:${this.input("blocks").value.trim()}` : this.input("scores").value,
      surrogate: this.input("surrogate").value,
      decoding: this.input("decoding").value,
      eps: eps === "" ? null : Number(eps),
    };
  }

  usesMatrix() {
    return [MATRIX, METRIC].includes(this.kind());
  }

  // a setting beside this one that is not the same and quickly computed; `report` is what this
  // one gave, if it has: own scores where others were chosen; one score per prediction, or per
  // group, where that has a formula; else the 0-1 loss over as many labels
  other(report) {
    const [scores, surrogate] = [this.input("scores"), this.input("surrogate")];
    const small = report !== null && BigInt(report.n_labels) <= MOST_LABELS;
    if (scores.value !== "own") scores.value = "own";
    else if (FULL_IS_QUICK.includes(this.kind())) scores.value = "full";
    else if (this.kind() === "mixed") this.load({ ...this.setting(""), scores: `blocks:${this.groups()}` });
    else if (small && this.kind() !== ZERO_ONE) this.load({ ...this.setting(""), ...zeroOne(report) });
    else surrogate.value = surrogate.value === "quadratic" ? "logistic" : "quadratic";
    this.show();
  }

  groups() {
    return this.input("spec").value.split(":")[1] ?? "";
  }

  rows() {
    return this.input("rows").value;
  }

  // a setting from an address: unknown choices are left to the server, which states what is allowed
  load(setting) {
    const matrix = Boolean(setting.matrix || setting.csv || setting.metric);
    if (matrix) {
      this.input("kind").value = setting.metric ? METRIC : MATRIX;
      choose(this.input("metric"), setting.metric ?? "");
      if (["pred", "true"].includes(setting.rows)) this.input("rows").value = setting.rows;
    } else {
      this.setSpec(setting.loss ?? this.options.losses[0].name);
      const spec = this.input("spec").value.trim();
      const fits = this.options.losses.find((offer) => pattern(offer).test(spec));
      this.input("kind").value = fits ? fits.name : SPEC;
    }
    const [family, sizes] = splitOnce(setting.scores ?? "own");
    choose(this.input("scores"), family);
    this.input("blocks").value = family === "blocks" ? sizes : "";
    choose(this.input("surrogate"), setting.surrogate ?? "quadratic");
    choose(this.input("decoding"), setting.decoding ?? "argmax");
    const eps = Number(setting.eps);
    this.input("eps").value = setting.eps && Number.isFinite(eps) ? String(eps) : "";
    this.buildFields();
    this.show();
  }
}

function zeroOne(report) {
  return { loss: `${ZERO_ONE}:${report.n_labels}`, matrix: "", metric: "", csv: null, eps: null };
}

function fillSelect(select, choices) {
  select.replaceChildren(
    ...choices.map(([value, title]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = title;
      return option;
    }),
  );
}

function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}

function splitOnce(text) {
  const at = text.indexOf(":");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function format(offer, values) {
  let position = 0;
  return offer.spec.replaceAll("{}", () => values[position++]);
}

// what the spec of an offer looks like, with one group per field
function pattern(offer) {
  const groups = offer.fields.map((field) =>
    field.kind === "sizes" ? "([0-9x,]*)" : field.kind === "integer" ? "([0-9]*)" : "([0-9.eE+-]*)",
  );
  const escaped = offer.spec.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll("-", "[-_]");
  let position = 0;
  return new RegExp(`^${escaped.replaceAll("{}", () => groups[position++])}$`, "i");
}
