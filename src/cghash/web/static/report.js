// What a new version changes: on held-out answers, on labels, and on results that can be looked at.

import { get } from "./api.js";
import { button, el, figure, icon, percent, put, several } from "./dom.js";
import { address, faceAndCaption, faces } from "./items.js";

const UNTESTED = "No answer is held out yet: teach a while, and before and after can be told.";

/** version: as /api/models gives it; against: a version to compare with, or "vectors"; use(version) puts one in use. */
export function drawReport(host, { version, against, current, use }) {
  const { report } = version;
  const inUse = current === version.version;
  const numbered = against !== "vectors";
  const other = numbered ? `version ${against}` : "the vectors";
  const go = (number, word, kind = null) => button(() => use(number), { class: kind }, word);
  const changes = el("div", { class: "changes" });
  host.classList.add("card");
  put(host,
    el("h2", { id: "report-title" }, `Version ${version.version}`, el("small", { class: "soft" }, ` ${version.name}`)),
    el("dl", { class: "numbers" }, report ? facts(report) : null),
    report?.held_out.count ? null : el("p", { class: "soft" }, UNTESTED),
    el("div", { class: "verdict" },
      inUse ? el("span", { class: "current" }, icon("check"), "in use") : null,
      inUse ? null : go(version.version, "Use this model", "primary"),
      inUse && numbered ? go(against, `Go back to ${other}`) : null,
      !inUse && current !== null ? el("span", { class: "soft" }, `Version ${current} is in use.`) : null),
    el("h3", {}, `What changed most, against ${other}`), changes);
  host.hidden = false;
  drawChanges(changes, version.version, numbered ? against : null);
}

const fact = (term, value) => el("div", {}, el("dt", {}, term), el("dd", {}, value));
const arrow = ({ before, after }, words) => `${words(before)} → ${words(after)}`;

function facts({ held_out: heldOut, mean_overlap: overlap, mean_average_precision: precision }) {
  const held = `of ${several(heldOut.count, "held-out answer")} told right`;
  return [
    heldOut.count ? fact(held, arrow(heldOut, percent)) : null,
    precision ? fact("mean average precision, by labels", arrow(precision, (value) => figure(value, 2))) : null,
    fact("of an item’s ten nearest stayed", figure(overlap * 10, 2)),
  ];
}

async function drawChanges(host, version, against) {
  try {
    const { changes } = await get(`/api/models/${version}/changes`, { against });
    host.replaceChildren(...changes.map(change));
  } catch (error) {
    host.replaceChildren(el("p", { class: "soft" }, error.message));
  }
}

function change({ item, before, after, overlap }) {
  const known = new Set(before.map((one) => one.row));
  const line = (word, strip) => el("div", { class: "before-after" }, el("span", {}, word), strip);
  const label = `${item.title}: ${percent(overlap)} of its nearest stayed`;
  return el("div", { class: "change", role: "group", "aria-label": label },
    el("a", { href: address(item) }, faceAndCaption(item, 96)),
    line("before", faces(before)), line("after", faces(after, 96, (one) => (known.has(one.row) ? null : "new here"))));
}
