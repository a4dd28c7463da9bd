// What the scripts of pages share. Texts of others reach a page through textContent only: nothing
// here builds markup from a string.
const dom = (() => {
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) node.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
    }
    for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
    return node;
  };
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  // Characters that act unseen (controls, changes of direction) are written out.
  const text = (value) => {
    const string = String(value).replace(/\r\n/g, "\n");
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
  const inflate = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  };
  return { el, svg, text, inflate };
})();
