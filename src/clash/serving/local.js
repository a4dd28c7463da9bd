"use strict";
// What a page asks of the local server that sent it.
const local = (() => {
  // The token comes after the # of the address, and is kept for reloads of this tab.
  const kept = "clash-token " + location.host;
  if (/^#[\w-]{20,}$/.test(location.hash)) {
    sessionStorage.setItem(kept, location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem(kept) || "";
  const ask = async (what, request = {}) => {
    const answer = await fetch("/api/" + what, {
      method: "POST", headers: { "Content-Type": "application/json", "X-Clash-Token": token },
      body: JSON.stringify(request),
    });
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.error);
    return value;
  };
  return { ask, token };
})();
