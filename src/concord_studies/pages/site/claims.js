// Shows the rows of the ledger that have all of some words, and the values chosen of its columns.
const table = document.querySelector("table.claims");
const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
const rows = [...table.tBodies[0].rows];
const words = document.getElementById("words");
const count = document.getElementById("count");
const selects = [...document.querySelectorAll("select[data-column]")];
const asked = new URLSearchParams(location.search);

function values(row, column) {
  if (column === "counted as") return [row.querySelector("[data-kind]").dataset.kind];
  const text = row.cells[heads.indexOf(column)].textContent.trim().replace(`${column}: `, "");
  return column === "sampler" || column === "verdict" ? text.split(/, |: | (?=committed$)/) : [text];
}

function show() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const [counts, sentences] = [{}, new Set()];
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const fits = (select) => !select.value || values(row, select.dataset.column).includes(select.value);
    row.hidden = !(selects.every(fits) && wanted.every((word) => text.includes(word)));
    const verdict = values(row, "verdict")[0];
    counts[verdict] = (counts[verdict] ?? 0) + !row.hidden;
    if (!row.hidden) sentences.add(row.querySelector("a[id]").href);
  }
  const all = Object.entries(counts).filter(([, number]) => number);
  const told = all.map(([verdict, number]) => `${number} ${verdict}`).join(", ");
  const number = `${sentences.size} sentence${sentences.size === 1 ? "" : "s"}`;
  count.textContent = told ? `${number}, in all readings: ${told}` : "none";
}

for (const select of selects) {
  const column = select.dataset.column;
  const known = new Set(rows.flatMap((row) => values(row, column)).filter(Boolean));
  select.append(...[...known].sort().map((value) => new Option(value)));
  select.value = known.has(asked.get(column)) ? asked.get(column) : "";
}
words.value = asked.get("words") ?? "";
for (const box of [words, ...selects]) {
  box.addEventListener("input", () => {
    const chosen = [["words", words.value], ...selects.map((s) => [s.dataset.column, s.value])];
    const query = new URLSearchParams(chosen.filter(([, value]) => value));
    history.replaceState(null, "", `?${query}`);
    show();
  });
}
show();
