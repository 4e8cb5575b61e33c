(() => {
  const problems = new Set();
  const describe = (e) => `${e.localName}${e.id && "#" + e.id}.${[...e.classList].join(".")} ${JSON.stringify(e.textContent.trim().slice(0, 40))}`;
  const seen = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && e.getClientRects().length > 0;

  // Every control has a name.
  const named = (e) => {
    const by = e.getAttribute("aria-labelledby");
    if (by && document.getElementById(by)?.textContent.trim()) return true;
    if (e.getAttribute("aria-label")?.trim()) return true;
    if ([...(e.labels ?? [])].some((l) => l.textContent.trim())) return true;
    if (e.matches("button, a, summary, [role=option], [role=tab], [role=treeitem]")) return Boolean(e.textContent.trim());
    return Boolean(e.title);
  };
  for (const e of document.querySelectorAll("button, a[href], input, select, textarea, summary, [role=listbox], [role=tree], [role=tab], [role=tabpanel], [role=option], dialog")) {
    if (seen(e) && !named(e)) problems.add(`no name: ${describe(e)}`);
  }

  // Roles have the parents that they need, references lead somewhere, and ids are unique.
  const parents = { tab: "[role=tablist]", option: "[role=listbox]", treeitem: "[role=tree], [role=group]" };
  for (const [role, parent] of Object.entries(parents)) {
    for (const e of document.querySelectorAll(`[role=${role}]`)) if (!e.parentElement.closest(parent)) problems.add(`${role} without ${parent}: ${describe(e)}`);
  }
  for (const name of ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant", "for"]) {
    for (const e of document.querySelectorAll(`[${name}]`)) {
      for (const id of e.getAttribute(name).split(" ")) if (!document.getElementById(id)) problems.add(`${name}=${id} leads nowhere: ${describe(e)}`);
    }
  }
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) {
    if (ids.has(e.id)) problems.add(`two elements have the id ${e.id}`);
    ids.add(e.id);
  }
  if (!document.documentElement.lang) problems.add("the page has no language");
  if (document.querySelectorAll("main").length !== 1) problems.add("the page has no main part");
  if (document.documentElement.scrollWidth > innerWidth) problems.add(`the page is ${document.documentElement.scrollWidth} wide in a window of ${innerWidth}`);

  // Text differs from its background: WCAG 2.2, 1.4.3.
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const color = (text) => {
    const [r = 0, g = 0, b = 0, a = 1] = text.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const background = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.unshift(color(getComputedStyle(at).backgroundColor));
    return layers.reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !seen(e) || e.closest("[disabled], option, script, dialog:not([open])")) continue;
    const style = getComputedStyle(e);
    const under = background(e);
    const ratio = contrast(over(color(style.color), under), under);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio < least) problems.add(`contrast ${ratio.toFixed(2)}: ${describe(e)}`);
    if (size < 11) problems.add(`small text, ${size} px: ${describe(e)}`);
  }

  // Controls can be told from what is around them (1.4.11), and are large enough to be hit (2.5.8).
  for (const e of document.querySelectorAll("button, input, select, textarea, summary")) {
    if (!seen(e)) continue;
    const { width, height } = e.getBoundingClientRect();
    const inline = e.closest("p, li, td, .line, .tree, .node, .conversation .more, label") || e.matches(".more");
    if (!inline && (width < 24 || height < 24) && !e.matches("[type=checkbox], details:not(.menu, .help) > summary")) problems.add(`small target, ${Math.round(width)} × ${Math.round(height)}: ${describe(e)}`);
    const style = getComputedStyle(e);
    if (!e.matches("input, select, textarea") || e.matches("[type=checkbox], [disabled]")) continue;
    const ratio = contrast(color(style.borderTopColor), background(e.parentElement));
    if (ratio < 3) problems.add(`the border has a contrast of ${ratio.toFixed(2)}: ${describe(e)}`);
  }
  return [...problems];
})()
