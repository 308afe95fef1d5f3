// What is wider than its place moves in itself: let the keyboard reach it, too.
const reach = () => {
  for (const each of document.querySelectorAll("article pre, .table-wrapper, .formula, article p:has(> img)")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
};
addEventListener("load", reach);
addEventListener("resize", reach);
