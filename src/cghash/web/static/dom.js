// Elements, words and messages. What comes from the API becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Children that are there: those left out by a condition are null or false. */
const present = (children) => children.flat().filter((child) => child !== false && (child ?? null) !== null);

function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "css") {
      for (const [property, amount] of Object.entries(value)) element.style.setProperty(property, amount);
    } else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...present(children));
  return element;
}

/** An element: attributes by name, `on` its listeners, `css` its custom properties, children as nodes or text. */
export const el = (tag, attributes = {}, ...children) => dress(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) =>
  dress(document.createElementNS(SVG, tag), attributes, children);
export const icon = (name) =>
  svg("svg", { class: "icon", "aria-hidden": "true" }, svg("use", { href: `#icon-${name}` }));
/** A bar, `share` of it full. */
export const track = (share) =>
  el("span", { class: "track", "aria-hidden": "true", css: { "--share": share.toFixed(3) } });
/** A button: run(event) is called when it is pressed. */
export const button = (run, attributes, ...children) =>
  el("button", { type: "button", on: { click: run }, ...attributes }, ...children);
/** These and nothing else in `host`. */
export const put = (host, ...children) => host.replaceChildren(...present(children));
export const byId = (id) => document.getElementById(id);

export const count = (number) => number.toLocaleString("en-GB");
export const several = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
export const percent = (share) => ((share ?? null) === null ? "–" : `${Math.round(share * 100)} %`);
export const figure = (number, digits = 3) =>
  (number ?? null) === null ? "–" : number.toLocaleString("en-GB", { maximumSignificantDigits: digits });

export function duration(seconds) {
  if ((seconds ?? null) === null) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export const when = (created) =>
  new Date(created).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** Terms and values as a description list. */
export const numbers = (list, pairs) =>
  list.replaceChildren(...pairs.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));

/** Say it to a screen reader. */
export function announce(words) {
  const live = byId("live");
  live.textContent = ""; // the same words twice are two messages
  setTimeout(() => { live.textContent = words; }, 50);
}

/** A message at the edge of the page, with at most one thing to do about it. */
export function toast(words, action = null, seconds = action ? 60 : 8) {
  const close = () => box.remove();
  const box = el("div", { class: "toast" }, el("span", {}, words));
  announce(words);
  const act = () => {
    close();
    action.run();
  };
  if (action) box.append(button(act, {}, action.word));
  box.append(button(close, { class: "quiet round", "aria-label": "Close" }, icon("close")));
  byId("toasts").replaceChildren(box);
  setTimeout(close, seconds * 1000);
}

/** One sentence in place of the content, with a way on: `ways` are [word, address or function]. */
export function problem(words, ways = [["Try again", () => location.reload()]]) {
  const box = byId("problem");
  const links = ways.map(([word, way]) =>
    (typeof way === "string" ? el("a", { class: "button", href: way }, word) : button(way, {}, word)));
  box.replaceChildren(el("p", {}, words), el("p", { class: "ways" }, links));
  box.hidden = false;
}

export function noProblem() {
  byId("problem").hidden = true;
}
