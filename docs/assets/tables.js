// Filters and sorts the tables that carry data-facets; without it every row stands where it was written.
"use strict";
(() => {
  const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function element(tag, properties, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function labelled(title, control) {
    return element("label", { className: `sift-${control.name}` }, element("span", {}, title), control);
  }

  function select(name, none, options) {
    const all = [["", none], ...options].map(([value, text]) => element("option", { value, textContent: text }));
    return element("select", { name }, ...all);
  }

  // The words of a cell without its title and without the age, which changes every day.
  function said(cell) {
    const copy = cell.cloneNode(true);
    for (const aside of copy.querySelectorAll(".label, .age, .stale")) aside.remove();
    return copy.textContent.trim().replace(/\s+/g, " ");
  }

  function facetsOf(cell) {
    const marked = [...cell.querySelectorAll("[data-facet]")];
    return marked.length ? marked.map((each) => each.dataset.facet) : [said(cell)];
  }

  // Text sorts as text with numbers in it: 2026.10 is a release after 2026.9. Only a column of numbers is one of numbers.
  function sortKey(cell, numeric) {
    const given = cell.querySelector("[data-sort]")?.dataset.sort;
    if (given === undefined && cell.querySelector(".absent")) return null;
    const text = given ?? said(cell);
    const time = cell.querySelector("time");
    if (given === undefined && time && text.startsWith(time.textContent)) return time.dateTime;
    if (!numeric && given === undefined) return text;
    const number = given === undefined ? Number.parseFloat(text.replace(/[\s,]/g, "")) : Number(text);
    return Number.isNaN(number) ? (numeric ? null : text) : number;
  }

  // What is not known comes last, whichever way the rest is sorted.
  function compare(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : order.compare(a, b));
  }

  function equip(frame, prefix) {
    const table = frame.querySelector("table");
    const body = table.tBodies[0];
    const written = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const titles = heads.map((head) => head.textContent.trim());
    const names = titles.map((title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-"));

    const find = element("input", { type: "search", name: "find", autocomplete: "off", spellcheck: false });
    const sort = select("sort", "as listed", names.flatMap((name, column) => [
      [name, `${titles[column]}, rising`],
      [`-${name}`, `${titles[column]}, falling`],
    ]));
    const facets = [];
    for (const column of frame.dataset.facets.split(" ").filter(Boolean).map(Number)) {
      const values = written.map((row) => facetsOf(row.cells[column]));
      const counts = new Map();
      for (const value of values.flat()) counts.set(value, (counts.get(value) ?? 0) + 1);
      if (counts.size < 2) continue;
      const options = [...counts].sort(([a], [b]) => order.compare(a, b)).map(([value, count]) => [value, `${value} (${count})`]);
      facets.push({ title: titles[column], values, control: select(names[column], "all", options) });
    }
    const shown = element("output", {});
    const clear = element("button", { type: "button", textContent: "Show all" });
    const filters = [find, ...facets.map((facet) => facet.control)];
    const controls = [...filters, sort];

    function matching() {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      return (row, at) =>
        facets.every(({ values, control }) => !control.value || values[at].includes(control.value)) &&
        (!words.length || words.every((word) => row.textContent.toLowerCase().includes(word)));
    }

    function filter() {
      const matches = matching();
      let count = 0;
      written.forEach((row, at) => {
        row.hidden = !matches(row, at);
        if (!row.hidden) count += 1;
      });
      const sifted = filters.some((control) => control.value);
      clear.hidden = !sifted;
      shown.value = sifted ? `${count} of ${written.length} shown` : `${written.length} rows`;
      shown.classList.toggle("sifted", sifted);
    }

    function arrange() {
      const sign = sort.value.startsWith("-") ? -1 : 1;
      const column = names.indexOf(sort.value.replace(/^-/, ""));
      heads.forEach((head, at) => {
        if (at === column) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      const numeric = heads[column]?.align === "right";
      const keyed = written.map((row) => [column < 0 ? null : sortKey(row.cells[column], numeric), row]);
      body.append(...keyed.sort(([a], [b]) => compare(a, b, sign)).map(([, row]) => row));
    }

    function remember() {
      const address = new URL(location.href);
      for (const { name, value } of controls) {
        if (value) address.searchParams.set(prefix + name, value);
        else address.searchParams.delete(prefix + name);
      }
      history.replaceState(history.state, "", address);
    }

    function recall() {
      const { searchParams } = new URL(location.href);
      for (const control of controls) {
        const wanted = searchParams.get(prefix + control.name) ?? "";
        control.value = wanted;
        if (control.value !== wanted) control.value = "";
      }
    }

    function showAll() {
      for (const control of filters) control.value = "";
      filter();
      remember();
    }

    // A link to a row leads there, even past a filter that hides it.
    function reveal() {
      const row = document.getElementById(location.hash.slice(1))?.closest("tr");
      if (!row?.hidden || row.parentElement !== body) return;
      showAll();
      row.scrollIntoView();
    }

    heads.forEach((head, column) => {
      const button = element("button", { type: "button" }, ...head.childNodes);
      button.addEventListener("click", () => {
        const turns = [names[column], `-${names[column]}`, ""];
        sort.value = turns[(turns.indexOf(sort.value) + 1) % turns.length];
        arrange();
        remember();
      });
      head.append(button);
    });
    find.addEventListener("input", filter);
    for (const { control } of facets) control.addEventListener("change", filter);
    sort.addEventListener("change", arrange);
    for (const control of controls) control.addEventListener("change", remember);
    clear.addEventListener("click", () => {
      showAll();
      find.focus();
    });
    window.addEventListener("hashchange", reveal);

    const tools = element(
      "div",
      { className: "sift" },
      labelled("Find", find),
      ...facets.map(({ title, control }) => labelled(title, control)),
      labelled("Sort by", sort),
      element("span", { className: "sift-shown" }, shown, clear),
    );
    tools.setAttribute("role", "group");
    tools.setAttribute("aria-label", "Filter and sort the table");
    frame.before(tools);
    frame.classList.add("sortable");
    recall();
    filter();
    if (sort.value) arrange();
    reveal();
  }

  document.querySelectorAll(".table[data-facets]").forEach((frame, at) => equip(frame, at ? `${at + 1}-` : ""));
})();
