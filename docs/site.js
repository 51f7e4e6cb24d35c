// Links to documents that are not pages of the site name the document in the repository instead.
"use strict";
(() => {
  if (typeof path_to_root !== "string") return;
  const root = new URL(path_to_root || "./", location.href).href;
  // Folders and pages below docs/ that SUMMARY.md does not list.
  const unlisted = /^(decisions|bench)\/|^performance\.html/;
  for (const link of document.querySelectorAll("main a[href]")) {
    const href = link.getAttribute("href");
    if (/^([a-z]+:|#)/.test(href)) continue;
    const target = new URL(href, location.href).href;
    const isBelow = target.startsWith(root);
    const path = target.slice(root.length);
    if (isBelow && !unlisted.test(path)) continue;
    const name = isBelow ? `docs/${path}` : href.replace(/^(\.\.\/)*/, "");
    const named = document.createElement("span");
    named.append(...link.childNodes);
    named.title = `in the repository: ${name.replace(/\.html(#|$)/, ".md$1")}`;
    named.style.textDecoration = "underline dotted";
    link.replaceWith(named);
  }
})();
