// The table of all versions: none is ever lost, any can be used or compared.

import { button, byId, el, figure, icon, percent, several, when } from "./dom.js";

export function drawVersions({ models, current }, { use, compare }) {
  byId("versions").hidden = models.length === 0;
  const labelled = models.some((model) => model.report?.mean_average_precision);
  const precision = labelled ? ["Mean average precision"] : [];
  const head = ["Version", "Learned from", "Bits", "Held-out answers told right", ...precision, "Learned"];
  byId("versions-table").replaceChildren(
    el("thead", {}, el("tr", {}, head.map((word) => el("th", { scope: "col" }, word)), el("td"))),
    el("tbody", {}, models.map((model) => row(model, current, labelled, { use, compare }))));
}

function row(model, current, labelled, { use, compare }) {
  const { version, report } = model;
  const heldOut = report?.held_out;
  const act = (word, run) => button(() => run(version), { "aria-label": `${word} version ${version}` }, word);
  const inUse = version === current ? el("span", { class: "current" }, icon("check"), "in use") : act("Use", use);
  return el("tr", { "data-version": version },
    el("th", { scope: "row" }, String(version)),
    el("td", {}, model.answers ? several(model.answers, "answer") : model.name),
    el("td", {}, `${model.bits}`),
    el("td", {}, heldOut?.count ? `${percent(heldOut.after)} of ${heldOut.count}` : "–"),
    labelled ? el("td", {}, figure(report?.mean_average_precision?.after)) : null,
    el("td", {}, when(model.created)),
    el("td", {}, el("span", { class: "ways" }, inUse, version === current ? null : act("Compare", compare))));
}
