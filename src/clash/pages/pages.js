"use strict";
// What every page does: keep tooltips on the screen, close them with Escape, say which tables
// scroll, open what is folded before printing.
(() => {
  const place = (term) => {
    const tip = term.querySelector("[role=tooltip]"), box = term.getBoundingClientRect();
    if (!tip) return;
    term.classList.remove("shut");
    term.classList.toggle("left", box.left + tip.offsetWidth > document.documentElement.clientWidth - 16);
    term.classList.toggle("up", box.bottom + tip.offsetHeight > innerHeight - 16 && box.top > tip.offsetHeight + 64);
  };
  for (const type of ["pointerover", "focusin"]) {
    addEventListener(type, (event) => {
      const term = event.target.closest?.(".term");
      if (term && !term.contains(event.relatedTarget)) place(term);
    });
  }
  addEventListener("click", (event) => {
    // Safari does not focus a button that is clicked; a second touch closes the tooltip again.
    const button = event.target.closest?.(".term > button");
    if (!button) return;
    if (document.activeElement !== button) button.focus();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const term of document.querySelectorAll(".term:hover, .term:focus-within")) term.classList.add("shut");
  });

  const mark = () => {
    for (const wide of document.querySelectorAll(".wide")) {
      const scrolls = wide.scrollWidth > wide.clientWidth + 1;
      wide.classList.toggle("scrolls", scrolls);
      if (scrolls) wide.tabIndex = 0; else wide.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", mark);
  addEventListener("toggle", mark, true);
  addEventListener("DOMContentLoaded", mark);

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.fold:not([open])")];
    for (const fold of folded) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of folded) fold.open = false; });
})();
