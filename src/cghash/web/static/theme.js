// Light or dark: what the system says, unless the reader chose.
// A classic script in the head, so that no frame is drawn in the wrong one.
(() => {
  const root = document.documentElement;
  const KEY = "cghash.theme";
  const kept = () => { try { return localStorage.getItem(KEY); } catch { return null; } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => { root.dataset.theme = kept() ?? (system.matches ? "dark" : "light"); };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const other = root.dataset.theme === "dark" ? "light" : "dark";
      root.dataset.theme = other;
      try {
        localStorage.setItem(KEY, other);
      } catch {
        // a private window keeps nothing: the choice lasts for this page
      }
    });
  });
})();
