// Requests to the server that sent this page, and to no other.

export class ServerError extends Error {}

async function answer(response) {
  let body;
  try {
    body = await response.json();
  } catch {
    throw new ServerError(`the server answered with status ${response.status}`);
  }
  if (!response.ok) throw new ServerError(body.error ?? `status ${response.status}`);
  return body;
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "omit", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("the server does not answer; is `consistruct explore` still running?");
  }
  return answer(response);
}

export const getOptions = () => ask("/api/options");

export const uploadMatrix = (bytes, rows) =>
  ask(`/api/matrices?${new URLSearchParams({ rows })}`, {
    method: "POST",
    headers: { "content-type": "text/csv" },
    body: bytes,
  });

export const submit = (setting) =>
  ask("/api/jobs", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(setting),
  });

export const follow = (id, version) => ask(`/api/jobs/${encodeURIComponent(id)}?after=${version}`);

export const cancel = (id) =>
  ask(`/api/jobs/${encodeURIComponent(id)}/cancel`, { method: "POST", keepalive: true });

export const compare = (first, second) =>
  ask(`/api/compare?${new URLSearchParams({ a: first, b: second })}`);

export const fileAddress = (id, name) => `/api/jobs/${encodeURIComponent(id)}/files/${name}`;
