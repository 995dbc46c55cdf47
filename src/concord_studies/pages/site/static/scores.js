// The explorer of the arena's scores: what the arena's page calls (concord_studies.pages.site.papers).
"use strict";
addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector(".scores[data-scores]");
  if (!place) return;
  const loaded = document.createElement("script");
  loaded.src = place.dataset.scores;
  loaded.addEventListener("load", () => explore(concordScores));
  document.head.append(loaded);

  function explore({ names, rows, called = {} }) {
    // What is chosen by is a key, so that links last; what is read is its name.
    const KEYS = { task: ["problem", "zeta"], network: ["topology", "agents"], fault: ["fault", "loss", "link", "bandwidth", "parts"] };
    const USUAL = { network: "ring", fault: "none" };
    const texts = { experiment: {}, task: {}, network: {}, fault: {} };
    const data = rows.map(([experiment, task, entry, price, level, state, value, lo, hi]) => {
      const labels = Object.fromEntries(names[task].split("+").map((part) => part.split("=")));
      const about = {};
      for (const [key, parts] of Object.entries(KEYS)) {
        const found = parts.filter((part) => part in labels);
        about[key] = found.map((part) => labels[part]).join(", ") || (USUAL[key] ?? names[task]);
        texts[key][about[key]] = found.map((part) => called[`${part}=${labels[part]}`] ?? labels[part]).join(", ") || about[key];
      }
      texts.experiment[names[experiment]] = names[experiment].replaceAll("_", " ");
      return { experiment: names[experiment], ...about, entry: names[entry], price: names[price], level: names[level], state: names[state], value, lo, hi };
    });
    // Cells without a score have no price and level: they stay, whichever is chosen.
    const free = { price: "", level: "" };
    const chosen = Object.fromEntries(new URLSearchParams(location.hash.startsWith("#scores?") ? location.hash.slice(8) : ""));
    const state = { experiment: "tasks", task: "", network: "", fault: "", price: "gradients", level: "worst", entry: "", sort: "value", down: "", ...chosen };
    const form = place.querySelector("form"), table = place.querySelector("tbody"), said = place.querySelector("[role=status]");
    const number = (x) => (x === null ? "" : x >= 1e-3 && x < 1e4 ? String(x) : x.toExponential(2));
    const shown = (row) => row.state === "scored" ? number(row.value) : row.state;
    const fits = (row, but) => Object.keys(state).every((key) => {
      if (key === but || key === "sort" || key === "down" || !state[key]) return true;
      if (key === "entry") return `${row.entry} ${called[row.entry] ?? ""}`.toLowerCase().includes(state.entry.toLowerCase());
      return row[key] === state[key] || row[key] === free[key];
    });

    function draw() {
      for (const select of form.querySelectorAll("select")) {
        const key = select.name;
        const values = [...new Set(data.filter((row) => fits(row, key)).map((row) => row[key]))].filter(Boolean).sort();
        if (state[key] && !values.includes(state[key])) values.push(state[key]);
        select.replaceChildren(new Option("all", ""), ...values.map((value) => new Option(texts[key]?.[value] ?? value, value, false, value === state[key])));
      }
      form.elements.entry.value = state.entry;
      const found = data.filter((row) => fits(row));
      const rank = (row) => state.sort === "value" ? (row.state === "scored" ? row.value : row.state === "diverged" ? 1e300 : Infinity) : row[state.sort];
      found.sort((a, b) => { const [x, y] = [rank(a), rank(b)]; return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1); });
      table.replaceChildren(...found.slice(0, 200).map((row) => {
        const line = document.createElement("tr");
        for (const key of ["entry", "value", "interval", "experiment", "task", "network", "fault", "price", "level"]) {
          const cell = line.insertCell();
          if (key === "value") cell.textContent = shown(row);
          else if (key === "interval") cell.textContent = row.lo === null || row.hi === null ? "" : `${number(row.lo)} to ${number(row.hi)}`;
          else cell.textContent = (key === "entry" ? called[row.entry] : texts[key]?.[row[key]]) ?? row[key];
        }
        return line;
      }));
      for (const button of place.querySelectorAll("th button")) {
        const own = button.value === state.sort;
        button.parentElement.setAttribute("aria-sort", own ? (state.down ? "descending" : "ascending") : "none");
      }
      said.textContent = `${found.length} scores${found.length > 200 ? ", the first 200 shown" : ""}`;
      const hash = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
      place.querySelector("a.permalink").href = `#scores?${hash}`;
    }

    form.addEventListener("input", (event) => { state[event.target.name] = event.target.value; draw(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    place.querySelector("thead").addEventListener("click", ({ target }) => {
      if (!target.value) return;
      state.down = state.sort === target.value && !state.down ? "1" : "";
      state.sort = target.value;
      draw();
    });
    place.querySelector("a.permalink").addEventListener("click", (event) => { event.preventDefault(); history.replaceState(null, "", event.target.href); });
    place.hidden = false;
    draw();
  }
});
