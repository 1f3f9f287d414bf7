// The understand page: what a version knows, how sure it is, and what its bits mean.

import { get } from "./api.js";
import { lineChart } from "./charts.js";
import { announce, byId, count, el, figure, noProblem, numbers, percent, problem, several, track } from "./dom.js";
import { faces, setUpItems } from "./items.js";

const BITS = 8;

let shownBits = BITS;
let version;

function options({ models, current }) {
  byId("version").replaceChildren(...models.map((model) => el("option", { value: model.version },
    `Version ${model.version}${model.version === current ? ", in use" : ""}: ${model.name}`)));
  byId("version-field").hidden = false;
}

async function show(number) {
  version = number;
  shownBits = BITS;
  byId("version").value = String(number);
  noProblem();
  try {
    const model = await get(`/api/models/${number}`);
    byId("shown").hidden = false;
    drawCertificate(model);
    drawHistory(model);
    await Promise.all([drawBits(), drawCurve()]);
    announce(`Version ${number}.`);
  } catch (error) {
    byId("shown").hidden = true;
    problem(error.message);
  }
}

const STOPPED = {
  optimal: "No further hash function can improve this model.",
  n_bits: "All bits that were asked for are in use; more of them would still improve the model.",
  no_function: "The search found no further hash function that improves this model.",
  time_limit: "The time was up; more bits would still improve the model.",
};

function inWords({ status, gap, exact }) {
  const proven = exact ? "this family" : "the functions that were found";
  const stopped = STOPPED[status] ?? "It was stopped.";
  if (gap === null) return stopped;
  if (gap < 0.001) return `${stopped} No model of ${proven} has a lower objective.`;
  return `${stopped} No model of ${proven}, of however many bits, has an objective more than ${percent(gap)} lower.`;
}

function drawCertificate({ certificate, bits, method, answers }) {
  const none = `${method} gives no certificate: it does not say how far from the best it stopped.`;
  byId("certificate").textContent = certificate ? inWords(certificate) : none;
  byId("certificate-report").hidden = !certificate;
  byId("certificate-message").textContent = certificate?.message ?? "";
  const facts = [["bits", count(bits)], ["answers learned from", count(answers)]];
  if (certificate) {
    facts.unshift(["objective", figure(certificate.objective)], ["bound from below", figure(certificate.bound)],
      ["gap between them", percent(certificate.gap)]);
  }
  numbers(byId("certificate-numbers"), facts);
}

function drawHistory({ history }) {
  const objective = history?.objective ?? [];
  if (objective.length < 2) {
    byId("history").replaceChildren(el("p", { class: "soft" }, "No history was kept."));
    return;
  }
  const x = objective.map((_, at) => at + 1);
  const series = [{ name: "objective", x, y: objective }];
  if (history.bound?.some((value) => value !== null)) series.push({ name: "bound", x, y: history.bound });
  const charts = [lineChart({ series, label: "Objective and bound, bit by bit", xLabel: "bits", from: 0 })];
  if (history.satisfied?.some((value) => value !== null)) {
    const satisfied = { name: "share of triplets satisfied", x, y: history.satisfied };
    charts.push(lineChart({ series: [satisfied], label: "Triplets satisfied, bit by bit", xLabel: "bits", to: 1 }));
  }
  byId("history").replaceChildren(...charts);
}

async function drawCurve() {
  const card = byId("curve-card");
  try {
    const { recall, precision, mean_average_precision: mean, queries } = await get(`/api/models/${version}/curve`);
    const over = several(queries, "query", "queries");
    const curve = { name: "precision", x: recall, y: precision };
    const whole = { from: 0, to: 1, xFrom: 0, xTo: 1 };
    byId("curve").replaceChildren(
      el("p", {}, `Mean average precision ${figure(mean)}, over ${over}: items of the same label count as right.`),
      lineChart({ series: [curve], label: "Precision by recall", xLabel: "recall", ...whole }));
    card.hidden = false;
  } catch (error) {
    card.hidden = true; // a workspace without labels has none
    if (error.status !== 404) throw error;
  }
}

async function drawBits() {
  const { bits } = await get(`/api/models/${version}/bits`, { count: shownBits });
  const heaviest = Math.max(...bits.map((bit) => bit.weight)) || 1;
  byId("bits").replaceChildren(...bits.map((bit) => oneBit(bit, heaviest)));
  byId("more").hidden = bits.length < shownBits;
}

function side(value, share, items, labels) {
  const mostly = labels?.length ? `, mostly ${labels.join(", ")}` : "";
  return el("div", { class: "side" }, el("p", {}, `${value}: ${percent(share)} of the items${mostly}`), faces(items));
}

function oneBit(about, heaviest) {
  const { bit, weight, ones } = about;
  const share = (about.share_of_weight * 100).toFixed(1);
  return el("li", { class: "bit card", id: `bit-${bit}` },
    el("div", { class: "about" }, el("h3", {}, `Bit ${bit}`), track(weight / heaviest),
      el("span", { class: "soft" }, `weight ${figure(weight)}, ${share} % of all`)),
    side(0, 1 - ones, about.zero, about.zero_labels), side(1, ones, about.one, about.one_labels));
}

async function start() {
  try {
    const [workspace, list] = await Promise.all([get("/api/workspace"), get("/api/models")]);
    setUpItems(workspace);
    list.models.reverse();
    if (!list.models.length) {
      const ways = [["Teach", "/teach"], ["Learn", "/learn"]];
      problem("No model yet: compare some items, then learn from what you answered.", ways);
      return;
    }
    options(list);
    const asked = Number(new URLSearchParams(location.search).get("model"));
    const known = list.models.some((model) => model.version === asked);
    byId("version").addEventListener("change", ({ target }) => {
      history.replaceState(null, "", `/understand?model=${target.value}`);
      show(Number(target.value));
    });
    byId("more").addEventListener("click", () => {
      shownBits += 2 * BITS;
      drawBits().catch((error) => problem(error.message));
    });
    await show(known ? asked : list.current ?? list.models[0].version);
  } catch (error) {
    problem(error.message);
  }
}

start();
