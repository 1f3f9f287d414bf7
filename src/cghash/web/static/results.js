// One ranking, or two beside each other.

import { newKey, post, remove } from "./api.js";
import { bitsButton } from "./bits.js";
import { modelName } from "./choices.js";
import { button, el, figure, icon, several, toast, track } from "./dom.js";
import { address, faceAndCaption } from "./items.js";
import { roving } from "./roving.js";

/** answers: {model, bits, results} of one or two models; choose(event, item) is called when a result is clicked. */
export function drawColumns(host, answers, { item, choose }) {
  const sections = answers.map((answer, column) => {
    const other = answers[1 - column];
    const list = el("ol", { class: "results", "aria-label": `Nearest by ${modelName(answer.model)}` },
      answer.results.map((result, rank) => tile(result, rank + 1, { answer, other, item, choose })));
    const heading = el("h2", { class: answers.length > 1 ? "" : "unseen" }, modelName(answer.model),
      answer.bits ? el("small", { class: "soft" }, ` ${several(answer.bits, "bit")}`) : null);
    roving(list, ".result").reset();
    const none = el("p", { class: "empty" }, "No item passes the filters: remove one.");
    return el("section", {}, heading, answer.results.length ? list : none);
  });
  host.classList.toggle("two", answers.length > 1);
  host.replaceChildren(...sections);
}

const unseen = (words) => el("span", { class: "unseen" }, words);

function tile(result, rank, { answer, other, item, choose }) {
  const there = other ? other.results.findIndex((one) => one.row === result.row) + 1 : null;
  const furthest = Math.max(...answer.results.map((one) => one.distance)) || 1;
  return el("li", { class: `result${there === 0 ? " alone" : ""}`, "data-row": result.row },
    el("a", { href: address(result.item), on: { click: (event) => choose(event, result.item) } },
      el("span", { class: "rank" }, unseen("rank "), String(rank)), faceAndCaption(result.item)),
    other ? elsewhere(there) : null,
    el("div", { class: "measure" },
      el("span", { class: "distance" }, unseen("distance "), figure(result.distance)),
      track(result.distance / furthest)),
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
  const wish = (wanted, sign) => button(
    (event) => tell(event.currentTarget, { item, row: result.row, wanted, shown }),
    { class: "quiet wish", disabled: result.row === end[wanted], title: `Should be ${wanted}`, "aria-pressed": "false",
      "aria-label": `${result.item.title} should be ${wanted}` },
    icon(sign), wanted);
  return el("div", { class: "wishes" }, wish("nearer", "up"), wish("farther", "down"));
}

async function tell(pressed, body) {
  pressed.disabled = true;
  try {
    pressed.dataset.key ||= newKey(); // kept until it is acknowledged: pressed again, it is the same answer
    const { answers } = await post("/api/answers/list", { key: pressed.dataset.key, ...body });
    delete pressed.dataset.key;
    pressed.setAttribute("aria-pressed", "true");
    const undo = async () => {
      await Promise.all(answers.map((answer) => remove(`/api/answers/${answer.id}`)));
      pressed.setAttribute("aria-pressed", "false");
      toast("Undone.");
    };
    const failed = (error) => toast(`${error.message} The answers stay.`);
    const noted = `Should be ${body.wanted}: noted as ${several(answers.length, "answer")}.`;
    toast(noted, { word: "Undo", run: () => undo().catch(failed) });
  } catch (error) {
    toast(`${error.message} Press it again.`);
  } finally {
    pressed.disabled = false;
    pressed.focus({ preventScroll: true });
  }
}
