"use strict";
(() => {
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const byId = (id) => document.getElementById(id);

  // Tools that need this script are hidden until it runs.
  all(".tools, form.filter").forEach((tool) => { tool.hidden = false; });

  const root = document.documentElement;
  const theme = byId("theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const labelTheme = () => theme.setAttribute("aria-pressed", String(dark()));
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; labelTheme(); });
  labelTheme();

  // A problem of a large run lies in the file as base64 of gzipped HTML, made and escaped by porism.
  async function unpack(details) {
    const packed = byId(details.dataset.packed || "");
    if (!packed) return;
    delete details.dataset.packed;
    const body = details.querySelector(".body");
    try {
      const bytes = Uint8Array.from(atob(packed.textContent), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      body.innerHTML = await new Response(stream).text();
      packed.remove();
      makeSortable(body);
    } catch (error) {
      body.textContent = "This browser cannot unpack the problem: " + error;
    }
  }
  async function unfold(details) {
    details.open = true;
    if (details.dataset.packed) await unpack(details);
  }
  document.addEventListener("toggle", ({ target }) => { if (target.open && target.dataset.packed) unpack(target); }, true);

  async function follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (!id) return;
    const problem = byId(id.split("-")[0]);
    if (problem instanceof HTMLDetailsElement) await unfold(problem);
    const target = byId(id);
    if (!target) return;
    for (let up = target; up; up = up.parentElement) if (up instanceof HTMLDetailsElement) up.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", follow);
  follow();

  const unfoldAll = byId("unfold");
  if (unfoldAll) unfoldAll.addEventListener("click", async () => {
    const open = unfoldAll.getAttribute("aria-pressed") !== "true";
    unfoldAll.setAttribute("aria-pressed", String(open));
    for (const details of all("details.problem")) {
      if (details.hidden) continue;
      if (open) await unfold(details); else details.open = false;
    }
  });

  function makeSortable(where) {
    for (const table of all("table.sortable", where)) {
      const heads = [...table.tHead.rows[0].cells];
      heads.forEach((head, column) => {
        if (!head.dataset.sort) return;
        const button = document.createElement("button");
        button.type = "button";
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => sort(table, head, column));
      });
    }
  }
  // The rows of a long list stand in several tables, and are sorted as one.
  function sort(table, head, column) {
    const tables = table.closest("#all") ? all("#all table") : [table];
    const numeric = head.dataset.sort === "number";
    const first = numeric && head.textContent !== "Rank" ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const { cells } of tables.map((each) => each.tHead.rows[0])) {
      for (const each of cells) each.removeAttribute("aria-sort");
      cells[column].setAttribute("aria-sort", order);
    }
    const sign = order === "ascending" ? 1 : -1;
    const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const movable = (each) => [...each.tBodies[0].rows].filter((row) => !row.classList.contains("fixed"));
    const sizes = tables.map((each) => movable(each).length);
    const rows = tables.flatMap(movable);
    const collator = new Intl.Collator(undefined, { numeric: true });
    const keyed = rows.map((row) => [value(row), row]);
    keyed.sort(([a], [b]) => sign * (numeric ? Number(a) - Number(b) : collator.compare(a, b)));
    tables.forEach((each, i) => each.tBodies[0].prepend(...keyed.splice(0, sizes[i]).map(([, row]) => row)));
    if (tables.length > 1) hideEmpty();
  }
  function hideEmpty() {
    for (const part of all(".part")) part.hidden = !part.querySelector("tbody tr:not([hidden]), details.problem:not([hidden])");
  }
  makeSortable(document);

  const form = byId("filter");
  if (form) {
    const total = all("#all tbody tr").length;
    let rows;
    const apply = () => {
      rows ??= all("#all tbody tr").map((row) => {
        const details = byId(row.cells[0].firstElementChild.hash.slice(1));
        return { row, details, text: row.textContent.toLowerCase(), state: row.dataset.state.split(" ") };
      });
      const words = byId("query").value.toLowerCase().split(/\s+/).filter(Boolean);
      const state = byId("state").value;
      let shown = 0;
      for (const each of rows) {
        const fits = words.every((word) => each.text.includes(word)) && (!state || each.state.includes(state));
        each.row.hidden = each.details.hidden = !fits;
        shown += fits;
      }
      hideEmpty();
      document.body.classList.toggle("filtered", shown < total);
      byId("count").textContent = `${shown} of ${total}`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    byId("count").textContent = `${total} of ${total}`;
  }

  // A page served by `porism view` is followed by a newer one: what was unfolded stays so.
  const live = document.body.dataset.live;
  if (live) {
    const kept = JSON.parse(sessionStorage.getItem("porism") || "{}");
    if (kept.theme) { root.dataset.theme = kept.theme; labelTheme(); }
    for (const id of kept.open || []) {
      const details = byId(id);
      if (details) unfold(details);
    }
    new EventSource("events").addEventListener("message", (event) => {
      if (event.data === live) return;
      const open = all("details[open][id]").map((details) => details.id);
      sessionStorage.setItem("porism", JSON.stringify({ open, theme: root.dataset.theme }));
      location.reload();
    });
  }

  addEventListener("beforeprint", () => all("details:not([data-packed])").forEach((details) => { details.open = true; }));
})();
