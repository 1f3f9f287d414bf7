// Ways to ask without an item: a text or a vector in the one field, an image chosen, dropped or pasted.

import { byId, toast } from "./dom.js";
import { readVector } from "./state.js";

const images = new Map(); // key in the address → Blob, as long as the page lives

export const imageOf = (key) => images.get(key);

function placeholder({ queries, dimension }) {
  if (queries.text) return `Type a text, or paste a vector of ${dimension} numbers`;
  if (queries.image) return `Drop an image, or paste a vector of ${dimension} numbers`;
  return `Paste a vector of ${dimension} numbers`;
}

/** Calls asked({text} | {vector} | {image}) when the reader asks something. */
export function setUpAsking(workspace, asked) {
  const field = byId("ask-text");
  field.placeholder = placeholder(workspace);
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const words = field.value.trim();
    const vector = readVector(words);
    if (vector && vector.length !== workspace.dimension && !workspace.queries.text) {
      toast(`A vector here has ${workspace.dimension} numbers; these are ${vector.length}.`);
    } else if (vector && (vector.length === workspace.dimension || !workspace.queries.text)) asked({ vector });
    else if (words && workspace.queries.text) asked({ text: words });
    else if (words) toast(`Words cannot be searched here: ${placeholder(workspace).toLowerCase()}, or choose an item.`);
  });
  if (workspace.queries.image) setUpImages((blob) => asked(keepImage(blob)));
  else forbidDrops();
}

function keepImage(blob) {
  const name = blob.name || "pasted image";
  const image = images.has(name) ? `${name} ${images.size + 1}` : name;
  images.set(image, blob);
  return { image };
}

function setUpImages(chosen) {
  const file = byId("ask-file");
  const button = byId("ask-image");
  const take = (files) => {
    const image = [...files].find((one) => one.type.startsWith("image/"));
    if (image) chosen(image);
    else if (files.length) toast("That is not an image.");
  };
  button.hidden = false;
  button.addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    take(file.files);
    file.value = "";
  });
  document.addEventListener("paste", (event) => event.clipboardData.files.length && take(event.clipboardData.files));
  setUpDrops(take);
}

const hasFiles = (event) => event.dataTransfer?.types.includes("Files");

function setUpDrops(take) {
  const veil = byId("drop");
  let own = false; // a thumbnail of this page is dragged, not a file
  let inside = 0;
  const show = (yes) => {
    inside = yes ? inside : 0;
    veil.hidden = !yes;
  };
  document.addEventListener("dragstart", () => { own = true; });
  document.addEventListener("dragend", () => { own = false; });
  document.addEventListener("dragenter", (event) => {
    inside += 1;
    if (hasFiles(event) && !own) show(true);
  });
  document.addEventListener("dragleave", () => {
    inside -= 1;
    if (inside <= 0) show(false);
  });
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    show(false);
    if (!own) take(event.dataTransfer.files);
  });
}

/** Otherwise the browser would leave the page and open the file. */
function forbidDrops() {
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    toast("Images cannot be searched in this workspace.");
  });
}
