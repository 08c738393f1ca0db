// Sets the theme before the first paint. A classic script, since modules run after it.
(() => {
  try {
    const chosen = localStorage.getItem("blackboard.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is switched off: the system's theme holds.
  }
})();
