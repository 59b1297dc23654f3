// Settings as an address: choices in the query string, small cost matrices in the fragment, which
// browsers do not send to servers. The second setting has the suffix 2.

const NAMES = ["loss", "matrix", "metric", "rows", "scores", "surrogate", "decoding", "eps"];
const DEFAULTS = { scores: "own", surrogate: "quadratic", decoding: "argmax" };

export function toBase64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function fromBase64(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

// settings: [{loss, matrix, metric, rows, scores, surrogate, decoding, eps, csv}], csv being bytes or null
export function toAddress(settings) {
  const query = new URLSearchParams();
  const fragment = new URLSearchParams();
  settings.forEach((setting, position) => {
    const suffix = position === 0 ? "" : String(position + 1);
    for (const name of NAMES) {
      const value = setting[name];
      if (value === null || value === undefined || value === "") continue;
      if (value === DEFAULTS[name] || (name === "matrix" && setting.csv)) continue;
      query.set(name + suffix, String(value));
    }
    if (setting.csv) fragment.set(`csv${suffix}`, toBase64(setting.csv));
  });
  const [search, hash] = [query.toString(), fragment.toString()];
  return `${search ? `?${search}` : ""}${hash ? `#${hash}` : ""}`;
}

export function fromAddress(search, hash) {
  const query = new URLSearchParams(search);
  const fragment = new URLSearchParams(hash.replace(/^#/, ""));
  const settings = [];
  for (const suffix of ["", "2"]) {
    const setting = { ...DEFAULTS };
    let found = false;
    for (const name of NAMES) {
      const value = query.get(name + suffix);
      if (value === null) continue;
      found = true;
      setting[name] = value;
    }
    const csv = fragment.get(`csv${suffix}`);
    if (csv !== null) {
      found = true;
      setting.csv = csv;
    }
    if (found) settings.push(setting);
  }
  return settings;
}
