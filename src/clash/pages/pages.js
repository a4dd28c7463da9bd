"use strict";
// What every page does: explain terms, say which tables scroll, open what is folded for printing.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the button carries the same text as its description
  let openTerm = null;

  const hide = () => { openTerm = null; tip.hidden = true; };

  // Under the line that holds the term, above it at the foot of the window, always inside.
  const show = (term) => {
    openTerm = term;
    tip.textContent = term.getAttribute("aria-description");
    if (!tip.isConnected) document.body.append(tip);
    tip.hidden = false;
    const box = term.getBoundingClientRect(), width = document.documentElement.clientWidth;
    const below = box.bottom + 8, above = box.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(16, Math.min(box.left, width - tip.offsetWidth - 16))}px`;
    tip.style.top = `${below + tip.offsetHeight > innerHeight - 8 && above > 56 ? above : below}px`;
  };

  const termOf = (event) => event.target.closest?.(".term");
  addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const over = termOf(event);
    if (over) show(over);
    else if (openTerm && openTerm !== document.activeElement && !tip.contains(event.target)) hide();
  });
  addEventListener("focusin", (event) => { const on = termOf(event); if (on) show(on); else hide(); });
  addEventListener("focusout", hide);
  addEventListener("click", (event) => {
    const on = termOf(event);
    if (on) show(on);
    else if (!tip.contains(event.target)) hide();
  });
  addEventListener("scroll", hide, { passive: true });
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

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
  mark();

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.fold:not([open])")];
    for (const fold of folded) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of folded) fold.open = false; });
})();
