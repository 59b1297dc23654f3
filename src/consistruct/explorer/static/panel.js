// One setting: its form, the computation that it requests, and the result.

import * as api from "./api.js";
import { SettingForm } from "./form.js";
import { ResultView } from "./result.js";
import { fromBase64 } from "./state.js";

const TYPING = 350; // milliseconds without a key before a computation starts
const PATIENCE = 250; // before progress is shown

export class Panel {
  // onState(): setting or result changed
  constructor(letter, options, onState) {
    this.options = options;
    this.onState = onState;
    this.root = document.getElementById("panel").content.firstElementChild.cloneNode(true);
    this.part = (name) => this.root.querySelector(`[data-part="${name}"]`);
    this.form = new SettingForm(this.root, options, {
      onChange: (slow) => this.schedule(slow),
      onFile: (file) => this.takeFile(file),
    });
    this.view = new ResultView(this.part("result"), options);
    this.matrix = null; // {id, bytes, in_address}
    this.content = null; // promise of the bytes of the last file
    this.reading = 0; // counts files: an answer about an earlier one is dropped
    this.turn = 0; // counts computations, likewise
    this.job = null;
    this.finished = null; // the job whose result is shown
    this.name(letter);
    this.part("cancel").addEventListener("click", () => this.cancelOrStart());
  }

  name(letter) {
    this.letter = letter;
    this.root.querySelector(".panel-title").textContent = letter ? `Setting ${letter}` : "Setting";
    this.root.setAttribute("aria-label", letter ? `Setting ${letter}` : "Setting");
  }

  // --- the setting ---

  setting() {
    return this.form.setting(this.matrix?.id ?? "");
  }

  forAddress() {
    const setting = this.setting();
    if (!this.form.usesMatrix()) return { ...setting, rows: "", csv: null };
    const csv = this.matrix?.in_address ? this.matrix.bytes : null;
    return { ...setting, rows: this.form.rows(), csv };
  }

  async load(setting) {
    this.form.load(setting);
    if (setting.csv) {
      let bytes;
      try {
        bytes = fromBase64(setting.csv);
      } catch {
        this.fail("the address is damaged");
        return;
      }
      await this.read(Promise.resolve(bytes));
      return;
    }
    if (setting.matrix) this.matrix = { id: setting.matrix, bytes: null, in_address: false };
    await this.run();
  }

  // beside the setting of another panel one that differs, with the file that it has or waits for
  async beside(other) {
    const matrix = other.form.usesMatrix();
    this.form.load({ ...other.forAddress(), matrix: matrix ? "file" : "", csv: null });
    this.form.other(other.finished?.result.report ?? null);
    this.content = other.content;
    this.matrix = other.matrix;
    await (matrix && this.content ? this.read(this.content) : this.run());
  }

  // a file, or null: the one that is there is to be read with other rows
  takeFile(file) {
    if (file !== null) return this.read(this.bytesOf(file));
    return this.content && this.read(this.content);
  }

  async bytesOf(file) {
    const { upload_bytes: limit } = this.options.limits;
    if (file.size > limit) {
      throw new api.ServerError(
        `the file has ${file.size} bytes, but the explorer accepts at most ${limit}; ` +
          "use `consistruct analyze cost:FILE.csv`",
      );
    }
    return new Uint8Array(await file.arrayBuffer());
  }

  async read(content) {
    this.stop();
    this.content = content;
    this.reading += 1;
    const reading = this.reading;
    try {
      const bytes = await content;
      const found = await api.uploadMatrix(bytes, this.form.rows());
      if (reading !== this.reading) return;
      this.matrix = { ...found, bytes };
    } catch (error) {
      if (reading !== this.reading) return;
      this.matrix = null;
      if (!this.form.usesMatrix()) return;
      this.stop(); // a choice that was made meanwhile has started a computation
      this.part("upload-note").textContent = "";
      this.fail(error instanceof api.ServerError ? error.message : "the file could not be read");
      return;
    }
    this.describe(this.matrix);
    this.schedule(false);
  }

  describe(found) {
    const names = found.names.join(", ");
    const more = found.n_predictions > found.names.length && names ? ", …" : "";
    const shared = found.in_address
      ? "It is part of the address."
      : "It is too large to be part of the address, which works only while this server is running.";
    this.part("upload-note").textContent =
      `${found.n_predictions} predictions × ${found.n_true_labels} true labels` +
      `${names ? `: ${names}${more}` : ""}. ${shared}`;
  }

  // --- the computation ---

  schedule(slow) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), slow ? TYPING : 0);
    this.onState();
  }

  // end what is under way; what is shown stays
  stop() {
    this.turn += 1;
    clearTimeout(this.timer);
    if (this.job) api.cancel(this.job.id).catch(() => {});
    this.job = null;
  }

  // nothing that is under way may come back
  close() {
    this.stop();
    this.reading += 1;
  }

  async run() {
    this.stop();
    const turn = this.turn;
    this.part("error").hidden = true;
    if (this.form.usesMatrix() && !this.matrix) {
      this.part("result").hidden = true;
      this.part("work").hidden = true;
      this.part("upload-note").textContent =
        "Numbers only, or label names in the first row and column; the corner may say what the " +
        "rows are: pred or true.";
      this.finished = null;
      this.onState();
      return;
    }
    const late = setTimeout(() => turn === this.turn && this.showWork(), PATIENCE);
    try {
      let job = await api.submit(this.setting());
      if (turn !== this.turn) {
        if (!isFinished(job)) api.cancel(job.id).catch(() => {});
        return;
      }
      this.job = isFinished(job) ? null : job;
      while (!isFinished(job)) {
        this.progress(job);
        job = await api.follow(job.id, job.version);
        if (turn !== this.turn) return;
      }
      this.job = null;
      clearTimeout(late);
      await this.end(job);
    } catch (error) {
      if (turn !== this.turn) return;
      this.job = null;
      clearTimeout(late);
      if (!(error instanceof api.ServerError)) throw error;
      this.fail(error.message);
    }
  }

  async end(job) {
    if (job.state === "cancelled") {
      this.part("work").hidden = false;
      this.part("progress").hidden = true;
      this.part("stage").textContent = "Cancelled.";
      this.part("cancel").textContent = "Compute again";
      this.root.classList.add("stale");
      return;
    }
    if (job.state === "failed") {
      this.fail(job.error);
      return;
    }
    this.part("work").hidden = true;
    this.root.classList.remove("stale");
    this.finished = job;
    const { report, sections } = job.result;
    this.form.setRange(report.max_eps, report.at);
    await this.view.show(job.id, job.result);
    this.part("announce").textContent = `Result: ${sections[0].answer}`;
    this.root.dataset.shown = job.id;
    this.onState();
  }

  showWork() {
    this.part("work").hidden = false;
    this.part("progress").hidden = false;
    this.part("cancel").textContent = "Cancel";
    this.root.classList.add("stale");
  }

  progress(job) {
    const bar = this.part("progress");
    const counted = job.total > 0;
    this.part("stage").textContent =
      `Computing: ${job.stage}${counted ? `, ${job.done} of ${job.total}` : ""} …`;
    if (counted) {
      bar.max = job.total;
      bar.value = job.done;
    } else {
      bar.removeAttribute("value");
    }
  }

  cancelOrStart() {
    if (this.job) api.cancel(this.job.id).catch(() => {});
    else this.run();
  }

  fail(message) {
    this.part("work").hidden = true;
    this.part("result").hidden = true;
    this.root.classList.remove("stale");
    const place = this.part("error");
    place.hidden = false;
    place.textContent = message;
    this.finished = null;
    this.onState();
  }
}

function isFinished(job) {
  return ["done", "failed", "cancelled"].includes(job.state);
}
