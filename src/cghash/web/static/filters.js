// Filters by attribute: a panel to choose them, chips to see and remove them.

import { button, byId, el, figure, icon } from "./dom.js";

const SIGNS = ["<=", ">=", "=", "~"];
const WORDS = { "=": "is", ">=": "at least", "<=": "at most", "~": "contains" };

/** {name, sign, value} of `year>=1990`; the longest known name wins, as names may contain signs. */
export function parse(filter, attributes) {
  const names = attributes.map((attribute) => attribute.name).sort((one, other) => other.length - one.length);
  for (const name of names) {
    const sign = filter.startsWith(name) && SIGNS.find((one) => filter.startsWith(one, name.length));
    if (sign) return { name, sign, value: filter.slice(name.length + sign.length) };
  }
  return null;
}

export class Filters {
  constructor(attributes, changed) {
    Object.assign(this, { attributes, changed, filters: [] });
    this.panel = byId("filters");
    this.opener = byId("filters-open");
    this.opener.hidden = attributes.length === 0;
    this.opener.addEventListener("click", () => this.open(this.panel.hidden));
    this.panel.addEventListener("submit", (event) => event.preventDefault());
    this.panel.addEventListener("change", () => this.changed(this.chosen()));
    this.panel.addEventListener("keydown", (event) => event.key === "Escape" && this.open(false));
    this.panel.append(...attributes.map(control));
  }

  open(yes) {
    this.panel.hidden = !yes;
    this.opener.setAttribute("aria-expanded", String(yes));
    if (yes) this.panel.querySelector("select, input").focus();
    else this.opener.focus();
  }

  /** Panel and chips show these. */
  show(filters) {
    this.filters = filters;
    for (const input of this.panel.elements) input.value = "";
    for (const filter of filters) {
      const { name, sign, value } = parse(filter, this.attributes) ?? {};
      const input = [...this.panel.elements].find((one) => one.dataset.name === name && one.dataset.sign === sign);
      if (input) input.value = value;
    }
    this.chips();
  }

  chosen() {
    return [...this.panel.elements].filter((input) => input.value.trim() !== "" && input.checkValidity())
      .map((input) => `${input.dataset.name}${input.dataset.sign}${input.value.trim()}`);
  }

  chips() {
    const chips = this.filters.map((filter) => {
      const { name, sign, value } = parse(filter, this.attributes) ?? { name: filter, sign: "", value: "" };
      const words = `${name} ${WORDS[sign] ?? ""} ${value}`.trim();
      const remove = () => this.changed(this.filters.filter((one) => one !== filter));
      const hint = el("span", { class: "unseen" }, ", remove");
      return el("li", {}, button(remove, { class: "chip" }, words, icon("close"), hint));
    });
    if (chips.length > 1) chips.push(el("li", {}, button(() => this.changed([]), { class: "quiet" }, "Remove all")));
    byId("chips").replaceChildren(...chips);
  }
}

function control({ name, kind, values, least, most }) {
  if (values) {
    const options = values.map((value) => el("option", { value }, String(value)));
    return el("label", { class: "field" }, el("span", {}, name),
      el("select", { "data-name": name, "data-sign": "=" }, el("option", { value: "" }, "any"), options));
  }
  if (kind === "text") {
    return el("label", { class: "field" }, el("span", {}, `${name} contains`),
      el("input", { type: "text", "data-name": name, "data-sign": "~" }));
  }
  const bound = (sign, words, value) => el("input", { type: "number", step: "any", "data-name": name, "data-sign": sign,
    "aria-label": `${name}, ${words}`, placeholder: value === null ? words : figure(value, 4) });
  const bounds = [bound(">=", "at least", least), el("span", { class: "soft" }, "to"), bound("<=", "at most", most)];
  return el("fieldset", { class: "field" }, el("legend", {}, name), el("span", { class: "range" }, bounds));
}
