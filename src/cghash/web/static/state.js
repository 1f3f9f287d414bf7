// What the search page shows, as its address: so that reload, back and a bookmark work.

const LONGEST_VECTOR = 1800; // characters; a longer one lives in the history alone
const number = (word) => (/^\d+$/.test(word ?? "") ? Number(word) : null);

/** {query: {item} | {text} | {vector} | {image} | null, model, beside, bits, filters}; "" is the current model. */
export function readState(search, kept) {
  const params = new URLSearchParams(search);
  const model = (name) => (params.get(name) === "vectors" ? "vectors" : number(params.get(name)) ?? "");
  return {
    query: readQuery(params) ?? kept?.query ?? null,
    model: model("model"),
    beside: model("beside"),
    bits: number(params.get("bits")),
    filters: params.getAll("filter"),
  };
}

function readQuery(params) {
  if (params.has("item")) return { item: number(params.get("item")) ?? -1 };
  if (params.has("text")) return { text: params.get("text") };
  if (params.has("vector")) return { vector: readVector(params.get("vector")) ?? [] };
  if (params.has("image")) return { image: params.get("image") };
  return null;
}

export function writeState({ query, model, beside, bits, filters }) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, model, beside, bits })) {
    const words = String(value ?? "");
    if (words && words.length <= LONGEST_VECTOR) params.set(name, words);
  }
  for (const filter of filters) params.append("filter", filter);
  const words = params.toString();
  return words ? `/?${words}` : "/";
}

/** Numbers between commas, blanks, semicolons or line ends, in brackets or not; null if it is anything else. */
export function readVector(words) {
  const parts = words.trim().replace(/^[[(]|[\])]$/g, "").split(/[\s,;]+/).filter(Boolean);
  const vector = parts.map(Number);
  return parts.length > 1 && vector.every(Number.isFinite) ? vector : null;
}
