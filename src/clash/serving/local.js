"use strict";
// What the scripts of local pages share. Texts of others reach a page through textContent only:
// nothing here builds markup from a string.
const local = (() => {
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
    return node;
  };
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  // Text with its invisible characters written out.
  const text = (value) => {
    const string = String(value);
    const parts = document.createDocumentFragment();
    let last = 0;
    for (const match of string.matchAll(HIDDEN)) {
      const code = "U+" + match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      parts.append(string.slice(last, match.index), el("span", { class: "odd" }, code));
      last = match.index + match[0].length;
    }
    parts.append(string.slice(last));
    return parts;
  };
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
  return { el, svg, text, ask, token };
})();
