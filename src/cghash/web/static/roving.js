// One tab stop for many cells: arrow keys go from cell to cell, Tab goes through the controls of the active one.

const CONTROLS = "a, button";

/** Cells are elements in `container` that match `selector`; the first control of a cell takes the focus. */
export function roving(container, selector) {
  const cells = () => [...container.querySelectorAll(selector)];
  const activate = (active) => {
    for (const cell of cells()) {
      for (const control of cell.querySelectorAll(CONTROLS)) control.tabIndex = cell === active ? 0 : -1;
    }
  };
  container.addEventListener("focusin", (event) => {
    const cell = event.target.closest(selector);
    if (cell) activate(cell);
  });
  container.addEventListener("keydown", (event) => {
    const from = event.target.closest(selector);
    const to = from && !event.ctrlKey && !event.metaKey && !event.altKey && next(cells(), from, event.key);
    if (!to) return;
    event.preventDefault();
    to.querySelector(CONTROLS).focus();
    to.scrollIntoView({ block: "nearest" });
  });
  return { reset: () => activate(cells()[0]) };
}

function next(cells, from, key) {
  const at = cells.indexOf(from);
  if (key === "ArrowRight") return cells[at + 1];
  if (key === "ArrowLeft") return cells[at - 1];
  if (key === "Home") return cells[0];
  if (key === "End") return cells.at(-1);
  if (key === "ArrowDown") return beyond(cells.slice(at + 1), from, 1);
  if (key === "ArrowUp") return beyond(cells.slice(0, at).reverse(), from, -1);
  return null;
}

/** The cell of the next row whose middle is nearest. */
function beyond(cells, from, direction) {
  const away = (cell) => Math.abs(cell.offsetLeft + (cell.offsetWidth - from.offsetWidth) / 2 - from.offsetLeft);
  const row = cells.find((cell) => direction * (cell.offsetTop - from.offsetTop) > 0)?.offsetTop;
  const candidates = cells.filter((cell) => cell.offsetTop === row);
  return candidates.sort((one, other) => away(one) - away(other))[0];
}
