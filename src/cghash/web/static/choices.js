// By what to search: a model version or the vectors, another beside it, and how many bits.

import { byId, el, several } from "./dom.js";

export const modelName = (model) => (model === "vectors" ? "Vectors (Euclidean)" : `Version ${model}`);

const PAUSE = 100; // ms that the slider must rest before it is searched

export class Choices {
  /** current: version in use, or null; models: the newest first; changed({model} | {beside} | {bits}). */
  constructor({ current, models }, changed) {
    Object.assign(this, { current, models });
    for (const name of ["model", "beside"]) {
      byId(name).addEventListener("change", ({ target }) => changed({ [name]: chosen(target.value) }));
    }
    let pause;
    byId("bits").addEventListener("input", ({ target: { value, max } }) => {
      drawBits();
      clearTimeout(pause);
      pause = setTimeout(() => changed({ bits: value === max ? null : Number(value) }), PAUSE);
    });
  }

  /** The model behind a choice: "" is the one in use, and the vectors where there is none. */
  model(choice) {
    return choice === "" ? this.current ?? "vectors" : choice;
  }

  most(choice) {
    return this.models.find(({ version }) => version === this.model(choice))?.bits ?? 0;
  }

  /** The bits to ask a model for: null is all of them. */
  bits(choice, bits) {
    return bits !== null && bits < this.most(choice) ? bits : null;
  }

  show({ model, beside, bits }) {
    const inUse = this.current ? ["", `Current (version ${this.current})`] : null;
    this.fill(byId("model"), inUse, this.current ? model : model || "vectors");
    this.fill(byId("beside"), ["", "nothing"], beside);
    const most = Math.max(this.most(model), beside === "" ? 0 : this.most(beside));
    byId("bits-field").hidden = most < 2;
    byId("bits").max = most;
    byId("bits").value = Math.min(bits ?? most, most);
    drawBits();
  }

  fill(select, first, choice) {
    const versions = this.models.map(({ version, bits, answers }) =>
      [version, `Version ${version}: ${several(bits, "bit")}, ${several(answers, "answer")}`]);
    const entries = [first, ...versions, ["vectors", modelName("vectors")]].filter(Boolean);
    select.replaceChildren(...entries.map(([value, words]) => el("option", { value }, words)));
    select.value = String(choice);
  }
}

const chosen = (value) => (value === "" || value === "vectors" ? value : Number(value));

function drawBits() {
  const { value, max } = byId("bits");
  byId("bits-shown").textContent = value === max ? `all ${max}` : `${value} of ${max}`;
}
