// The HTTP API, and nothing else: every answer is JSON, every failure an ApiError with one sentence.

export class ApiError extends Error {
  /** status 0: the server could not be reached. */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** The API's sentences begin small and end bare; on the page they stand alone. */
const sentence = (words) => `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`;

const address = (path, params) => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") query.append(name, one);
    }
  }
  const words = query.toString();
  return words ? `${path}?${words}` : path;
};

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer.", 0);
  }
  if (response.status === 401) location.assign("/login");
  const body = await response.json().catch(() => null);
  if (response.ok) return body;
  throw new ApiError(sentence(body?.error ?? `the server answered ${response.status}`), response.status);
}

const json = (method, body, options) =>
  ({ method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), ...options });

export const get = (path, params = {}, options = {}) => ask(address(path, params), options);
export const post = (path, body = {}, options = {}) => ask(path, json("POST", body, options));
export const remove = (path, options = {}) => ask(path, json("DELETE", {}, options));
export const postImage = (path, params, blob, options = {}) =>
  ask(address(path, params), { method: "POST", headers: { "Content-Type": blob.type }, body: blob, ...options });

/** A key that no other answer has; randomUUID is only there on https and localhost. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
