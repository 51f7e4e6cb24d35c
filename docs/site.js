// Documents outside of docs/ are no pages of the site: links to them say where in the repository they are.
"use strict";
(() => {
  const ups = (text) => (/^(\.\.\/)*/.exec(text)?.[0].length ?? 0) / 3;
  // mdBook says in each page how far it is from the site's root.
  const depth = ups(typeof path_to_root === "string" ? path_to_root : "");
  for (const link of document.querySelectorAll("main a[href]")) {
    const href = link.getAttribute("href");
    if (ups(href) <= depth) continue;
    const named = document.createElement("span");
    named.append(...link.childNodes);
    named.title = `in the repository: ${href.slice(3 * ups(href)).replace(/\.html(#|$)/, ".md$1")}`;
    named.style.textDecoration = "underline dotted";
    link.replaceWith(named);
  }
})();
