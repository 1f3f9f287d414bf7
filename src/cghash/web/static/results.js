// One ranking, or two beside each other.

import { newKey, post, remove } from "./api.js";
import { bitsButton } from "./bits.js";
import { announce, el, figure, icon, several, toast } from "./dom.js";
import { faceAndCaption } from "./items.js";
import { roving } from "./roving.js";

export const modelName = (model) => (model === "vectors" ? "Vectors (Euclidean)" : `Version ${model}`);

/** answers: {model, bits, results} of one or two models; open(item) is called when a result is chosen. */
export function drawColumns(host, answers, { item, open }) {
  const sections = answers.map((answer, column) => {
    const other = answers[1 - column];
    const list = el("ol", { class: "results", "aria-label": `Nearest by ${modelName(answer.model)}` },
      answer.results.map((result, rank) => tile(result, rank + 1, { answer, other, item, open })));
    const heading = el("h2", { class: answers.length > 1 ? "" : "unseen" }, modelName(answer.model),
      answer.bits ? el("small", { class: "soft" }, ` ${several(answer.bits, "bit")}`) : null);
    roving(list, ".result").reset();
    return el("section", {}, heading, answer.results.length ? list : el("p", { class: "empty" }, "No item passes the filters: remove one."));
  });
  host.classList.toggle("two", answers.length > 1);
  host.replaceChildren(...sections);
}

function tile(result, rank, { answer, other, item, open }) {
  const there = other ? other.results.findIndex((one) => one.row === result.row) + 1 : null;
  const furthest = Math.max(...answer.results.map((one) => one.distance)) || 1;
  const choose = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // another tab: the address will do
    event.preventDefault();
    open(result.item);
  };
  return el("li", { class: `result${there === 0 ? " alone" : ""}`, "data-row": result.row },
    el("a", { href: `/?item=${result.row}`, on: { click: choose } },
      el("span", { class: "rank" }, el("span", { class: "unseen" }, "rank "), String(rank)), faceAndCaption(result.item)),
    other ? elsewhere(there) : null,
    el("div", { class: "measure" },
      el("span", { class: "distance" }, el("span", { class: "unseen" }, "distance "), figure(result.distance)),
      el("span", { class: "track", "aria-hidden": "true", css: { "--share": (result.distance / furthest).toFixed(3) } })),
    result.bits ? bitsButton(result, answer.bits) : null,
    item === null ? null : wishes(result, item, answer.results.map((one) => one.row)));
}

/** Never by colour alone: a sign and words. */
const elsewhere = (rank) => (rank === 0
  ? el("span", { class: "tag only" }, icon("only"), "only here")
  : el("span", { class: "tag" }, `rank ${rank} there`));

/** The first cannot be nearer, the last not farther: nothing shown stands there to compare with. */
function wishes(result, item, shown) {
  const end = { nearer: shown[0], farther: shown.at(-1) };
  const wish = (wanted, sign) => el("button", { type: "button", class: "quiet wish", "aria-pressed": "false", title: `Should be ${wanted}`,
    disabled: result.row === end[wanted],
    "aria-label": `${result.item.title} should be ${wanted}`,
    on: { click: (event) => tell(event.currentTarget, { item, row: result.row, wanted, shown }) } }, icon(sign), wanted);
  return el("div", { class: "wishes" }, wish("nearer", "up"), wish("farther", "down"));
}

async function tell(button, body) {
  button.disabled = true;
  try {
    const { answers } = await post("/api/answers/list", { key: newKey(), ...body });
    button.setAttribute("aria-pressed", "true");
    announce(`Should be ${body.wanted}: noted.`);
    const undo = async () => {
      await Promise.all(answers.map((answer) => remove(`/api/answers/${answer.id}`)));
      button.setAttribute("aria-pressed", "false");
      toast("Undone.");
    };
    const failed = (error) => toast(`${error.message} The answers stay.`);
    toast(`Should be ${body.wanted}: noted as ${several(answers.length, "answer")}.`, { word: "Undo", run: () => undo().catch(failed) });
  } catch (error) {
    toast(`${error.message} Nothing was noted; try again.`);
  } finally {
    button.disabled = false;
    button.focus({ preventScroll: true });
  }
}
