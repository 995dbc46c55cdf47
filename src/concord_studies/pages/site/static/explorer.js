// Curves to work with: what a figure's page calls with the data of the figure (concord_studies.pages.site.curves).
"use strict";
(() => {
  const COLORS = ["#2f7fc1", "#d1580b", "#0f9168", "#b5529b", "#a37b00", "#6a6fd0", "#c43d4b", "#4b8f9e", "#8a8f2a", "#8c6d5a"];
  const ALL = "all";
  const element = (tag, attributes = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), attributes);
    made.append(...children);
    return made;
  };

  function explorer(place, data) {
    const keys = Object.keys(data.axes);
    const state = {
      chosen: Object.fromEntries(keys.map((key) => {
        const shown = new Set(data.runs.filter((run) => run.first).map((run) => run.labels[key] ?? null));
        return [key, shown];
      })),
      agents: new Set(data.start.agents),
      beside: new Set(["", "_exact", "_point"]),
      metric: data.metrics[0][0],
      x: "k",
      panels: data.start.panels.join("+"),
      colors: ALL,
      xlog: false,
      ylog: data.start.log,
      bands: true,
    };

    const controls = element("div", { className: "explorer-controls" });
    const plots = element("div", { className: "explorer-plots" });
    const legend = element("div", { className: "explorer-legend" });
    const said = element("p", { className: "explorer-said" });
    said.setAttribute("role", "status");

    function boxes(title, options, set) {
      const field = element("fieldset", {}, element("legend", { textContent: title }));
      for (const [value, text] of options) {
        const box = element("input", { type: "checkbox", checked: set.has(value) });
        box.addEventListener("change", () => {
          if (box.checked) set.add(value); else set.delete(value);
          draw();
        });
        field.append(element("label", {}, box, ` ${text}`));
      }
      controls.append(field);
    }
    function menu(title, options, key) {
      const select = element("select");
      for (const [value, text] of options) select.add(new Option(text, value, false, value === state[key]));
      select.addEventListener("change", () => { state[key] = select.value; draw(); });
      controls.append(element("label", { className: "menu" }, `${title} `, select));
    }
    function toggle(title, key) {
      const box = element("input", { type: "checkbox", checked: state[key] });
      box.addEventListener("change", () => { state[key] = box.checked; draw(); });
      controls.append(element("label", { className: "menu" }, box, ` ${title}`));
    }

    for (const key of keys) boxes(data.axes[key].name, data.axes[key].values, state.chosen[key]);
    if (data.agents.length > 1) boxes("agent", data.agents, state.agents);
    const kinds = new Set(data.runs.flatMap((run) => run.curves.map((curve) => curve.beside)));
    if (kinds.size > 1) boxes("lines", data.beside.filter(([end]) => kinds.has(end)), state.beside);
    if (data.metrics.length > 1) menu("quantity", data.metrics, "metric");
    if (data.prices.length) menu("horizontal axis", [["k", "iteration"], ...data.prices], "x");
    const splits = [...keys.map((key) => [key, data.axes[key].name]), ["agent", "agent"]];
    const both = data.start.panels.length > 1
      ? [[data.start.panels.join("+"), data.start.panels.map((key) => data.axes[key].name).join(" and ")]] : [];
    if (keys.length) {
      menu("panels by", [["", "one panel"], ...both, ...splits], "panels");
      menu("colors by", [[ALL, "whatever differs"], ...splits], "colors");
    }
    toggle("log horizontal", "xlog");
    toggle("log vertical", "ylog");
    toggle("intervals", "bands");
    const csv = element("button", { type: "button", textContent: "CSV of these curves" });
    const svg = element("button", { type: "button", textContent: "SVG of these curves" });
    csv.addEventListener("click", () => save(`${data.name}.csv`, "text/csv", asCsv()));
    svg.addEventListener("click", () => save(`${data.name}.svg`, "image/svg+xml", asSvg()));
    controls.append(csv, svg);
    place.replaceChildren(controls, legend, plots, said);

    const nameOf = (key, value) =>
      key === "agent" ? (data.agents.find(([a]) => a === value) ?? [0, value])[1]
        : (data.axes[key].values.find(([v]) => v === value) ?? [0, "none"])[1];
    const spoken = (key, value) => (key === "agent" && /\d/.test(value) ? "agent " : "") + nameOf(key, value);

    function chosen() {
      const found = [];
      for (const run of data.runs) {
        const shown = keys.every((key) => !(key in run.labels) || state.chosen[key].has(run.labels[key]));
        if (!shown) continue;
        const x = state.x === "k" ? run.k : run.x[state.x];
        if (!x) continue;
        for (const curve of run.curves) {
          const network = ["_floor", "_point"].includes(curve.beside) && curve.agent === "network";
          if (curve.metric !== state.metric || !state.beside.has(curve.beside)) continue;
          if (!network && !state.agents.has(curve.agent)) continue;
          const labels = { ...run.labels, agent: network ? null : curve.agent };
          found.push({ labels, x, curve, run });
        }
      }
      return found;
    }
    function points(lines) {
      const panelKeys = state.panels ? state.panels.split("+") : [];
      const all = [...keys, "agent"];
      const varying = all.filter((key) => !panelKeys.includes(key)
        && new Set(lines.map((line) => line.labels[key] ?? null)).size > (key === "agent" ? 0 : 1));
      const several = varying.filter((key) => new Set(lines.filter((l) => l.labels[key] != null).map((l) => l.labels[key])).size > 1);
      const colorKeys = state.colors === ALL ? (several.length ? several : ["agent"]) : [state.colors];
      const text = (labels, wanted) => wanted.filter((key) => labels[key] != null)
        .map((key) => spoken(key, labels[key])).join(", ");
      return lines.flatMap(({ labels, x, curve, run }, line) => {
        const panel = panelKeys.filter((key) => labels[key] != null)
          .map((key) => `${data.axes[key]?.name ?? key}: ${nameOf(key, labels[key])}`).join(", ");
        const kind = data.beside.find(([end]) => end === curve.beside)[1];
        const color = text(labels, colorKeys) || (labels.agent == null ? kind : "all");
        return x.map((at, index) => ({
          line, panel, color, kind, beside: curve.beside, x: at, k: run.k[index], folder: run.folder, labels,
          name: text(labels, all.filter((key) => varying.includes(key))),
          y: curve.v.length === 1 ? curve.v[0] : curve.v[index],
          lo: curve.lo?.[index] ?? null, hi: curve.hi?.[index] ?? null,
        }));
      }).filter((point) => point.y !== null
        && (!state.ylog || point.y > 0) && (!state.xlog || point.x > 0));
    }

    let shown = [];
    function draw() {
      const lines = chosen();
      shown = points(lines);
      const panels = [...new Set(shown.map((point) => point.panel))];
      const colors = [...new Set(shown.filter((p) => p.beside !== "_floor" && p.beside !== "_point").map((point) => point.color))];
      const colorOf = (color) => colors.includes(color) ? COLORS[colors.indexOf(color) % COLORS.length] : "currentColor";
      const low = d3.min(shown, (p) => p.y), high = d3.max(shown, (p) => p.y);
      const domain = low === undefined || low === high ? undefined : state.ylog ? [low / 1.1, high * 1.1] : [Math.min(low, low >= 0 && low < high / 4 ? 0 : low), high];
      const xs = state.x === "k" ? "iteration" : data.prices.find(([price]) => price === state.x)[1];
      const ys = data.metrics.find(([metric]) => metric === state.metric)[1];
      const columns = Math.max(1, Math.min(3, panels.length, Math.floor(place.clientWidth / 230)));
      // clientWidth is rounded, and what is wider by a part of a pixel goes to the next row.
      const width = Math.floor((place.clientWidth - 1 - 16 * (columns - 1)) / columns);
      const number = (value) => value === null ? "" : d3.format(".4~g")(value).replace("−", "-");
      const told = (p) => `${[p.name, p.kind].filter(Boolean).join(", ")}\n${xs} ${number(p.x)}: ${number(p.y)}${p.lo === null ? "" : ` [${number(p.lo)}, ${number(p.hi)}]`}`;
      plots.replaceChildren(...panels.map((panel) => {
        const mine = shown.filter((point) => point.panel === panel);
        const series = (...ends) => mine.filter((point) => ends.includes(point.beside));
        const clamp = (value) => domain ? Math.min(Math.max(value, domain[0]), domain[1]) : value;
        const stroke = (point) => colorOf(point.color);
        const figure = Plot.plot({
          width, height: Math.max(220, Math.min(360, width * 0.7)), marginLeft: 56,
          x: { type: state.xlog ? "log" : "linear", label: xs, ticks: width < 420 ? 4 : 7, tickFormat: "~s" },
          y: { type: state.ylog ? "log" : "linear", label: ys, domain, grid: true, ticks: 5, tickFormat: state.ylog ? "~g" : undefined },
          style: { fontSize: "12px", background: "transparent", overflow: "visible" },
          ariaLabel: `${ys} over ${xs}${panel ? `, ${panel}` : ""}: ${colors.join("; ")}`,
          marks: [
            state.bands ? Plot.areaY(series("").filter((p) => p.lo !== null), { x: "x", y1: (p) => clamp(p.lo), y2: (p) => clamp(p.hi), z: "line", fill: stroke, fillOpacity: 0.15 }) : null,
            Plot.lineY(series(""), { x: "x", y: "y", z: "line", stroke, strokeWidth: 1.8 }),
            Plot.lineY(series("_exact"), { x: "x", y: "y", z: "line", stroke, strokeWidth: 1.1, strokeDasharray: "6 3" }),
            Plot.lineY(series("_floor", "_point"), { x: "x", y: "y", z: "line", stroke: "currentColor", strokeWidth: 1, strokeOpacity: 0.8, strokeDasharray: "1 3" }),
            Plot.dot(mine, Plot.pointer({ x: "x", y: "y", fill: stroke, r: 4 })),
            Plot.tip(mine, Plot.pointer({ x: "x", y: "y", title: told, fill: "var(--tip)", stroke: "currentColor" })),
          ],
        });
        figure.setAttribute("role", "img");
        for (const inner of figure.querySelectorAll("[aria-label]")) { // which roles do not allow
          inner.dataset.mark = inner.getAttribute("aria-label");
          inner.removeAttribute("aria-label");
        }
        const box = element("figure", {}, figure);
        if (panel) box.prepend(element("figcaption", { textContent: panel }));
        return box;
      }));
      const keysOf = colors.map((color) => {
        const mark = element("span", { className: "swatch" });
        mark.style.background = colorOf(color);
        return element("li", {}, mark, ` ${color}`);
      });
      for (const [end, text] of data.beside) {
        if (!shown.some((p) => p.beside === end) || (end === "" && !kinds.has("_exact"))) continue;
        keysOf.push(element("li", {}, element("span", { className: `pattern p${end}` }), ` ${text}`));
      }
      legend.replaceChildren(element("ul", {}, ...keysOf));
      const count = new Set(shown.map((point) => point.line)).size;
      said.textContent = count ? `${count} curves in ${panels.length} ${panels.length > 1 ? "panels" : "panel"}.` : "No curve is chosen, or none has a positive value for a log axis.";
    }

    const cell = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    function asCsv() {
      const heads = ["run", ...keys, "agent", "quantity", "line", "iteration", ...(state.x === "k" ? [] : [state.x]), "value", "lo", "hi"];
      const rows = shown.map((p) => [
        p.folder, ...keys.map((key) => p.labels[key] ?? ""), p.labels.agent === null ? "" : nameOf("agent", p.labels.agent),
        state.metric, p.kind, p.k, ...(state.x === "k" ? [] : [p.x]), p.y, p.lo ?? "", p.hi ?? ""]);
      return [heads, ...rows].map((row) => row.map((value) => cell(String(value))).join(",")).join("\n") + "\n";
    }
    function asSvg() {
      const parts = [...plots.querySelectorAll("figure")];
      const columns = Math.min(3, parts.length) || 1;
      const texts = [];
      let width = 0, height = 0;
      parts.forEach((part, index) => {
        const own = part.querySelector("svg[class^=plot]") ?? part.querySelector("svg");
        const [w, h] = [own.width.baseVal.value, own.height.baseVal.value];
        const copy = own.cloneNode(true);
        const [column, row] = [index % columns, Math.floor(index / columns)];
        copy.setAttribute("x", column * (w + 16));
        copy.setAttribute("y", row * (h + 28) + 20);
        const title = part.querySelector("figcaption")?.textContent ?? "";
        const escaped = element("i", { textContent: title }).innerHTML;
        texts.push(`<text x="${column * (w + 16) + 8}" y="${row * (h + 28) + 14}" font-size="13">${escaped}</text>`, new XMLSerializer().serializeToString(copy));
        width = Math.max(width, (column + 1) * (w + 16));
        height = Math.max(height, (row + 1) * (h + 28));
      });
      const names = [...legend.querySelectorAll("li")].map((item, index) => {
        const color = item.querySelector(".swatch")?.style.background ?? "none";
        const escaped = element("i", { textContent: item.textContent.trim() }).innerHTML;
        return `<rect x="8" y="${height + 18 * index + 2}" width="12" height="10" fill="${color}"/><text x="26" y="${height + 18 * index + 11}" font-size="12">${escaped}</text>`;
      });
      return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + 18 * names.length + 8}" color="#222" fill="#222" style="--tip:#fff;background:#fff" font-family="sans-serif">${texts.join("")}${names.join("")}</svg>`;
    }
    function save(name, type, text) {
      const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }

    draw();
    let before = place.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(place.clientWidth - before) > 20) { before = place.clientWidth; draw(); }
    }).observe(place);
  }

  // Data and library are fetched when a reader asks for curves; scripts, since files opened from a
  // disk cannot fetch anything else.
  const loaded = {};
  const script = (source) => loaded[source] ??= new Promise((resolve, reject) => {
    document.head.append(element("script", { src: source, onload: resolve, onerror: reject }));
  });
  window.concordCurves = {};
  for (const details of document.querySelectorAll("details.curves")) {
    details.hidden = false;
    details.addEventListener("toggle", async () => {
      const place = details.querySelector(".explorer");
      if (!details.open || place.dataset.ready) return;
      place.dataset.ready = "loading";
      const root = details.dataset.root;
      try {
        await script(`${root}_static/d3.min.js`);
        await script(`${root}_static/plot.umd.min.js`);
        await script(`${root}${details.dataset.curves}`);
        explorer(place, window.concordCurves[details.dataset.name]);
        place.dataset.ready = "yes";
      } catch (error) {
        place.textContent = "These curves could not be loaded.";
        console.error(error);
      }
    });
  }
  // The table of all claims: filters, where scripts run.
  for (const form of document.querySelectorAll("form.filters")) {
    const rows = [...document.querySelectorAll("table.ledger tbody tr")];
    const filter = () => {
      const { paper, verdict, words } = form.elements;
      for (const row of rows) {
        row.hidden = !((!paper.value || row.dataset.paper === paper.value)
          && (!verdict.value || row.dataset.verdicts.split("|").includes(verdict.value))
          && row.textContent.toLowerCase().includes(words.value.toLowerCase()));
      }
      form.querySelector("[role=status]").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown`;
    };
    form.hidden = false;
    form.addEventListener("input", filter);
    filter();
  }
  // A link into what is folded opens it.
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
