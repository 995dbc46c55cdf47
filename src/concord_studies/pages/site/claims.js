// Shows the sentences of the page of claims that have all of some words, and a verdict.
const words = document.getElementById("words");
const verdict = document.getElementById("verdict");

function show() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const paper of document.querySelectorAll("article section section")) {
    let left = 0;
    for (const item of paper.querySelectorAll("li")) {
      const text = (paper.querySelector("h2").textContent + item.textContent).toLowerCase();
      const stated = item.querySelector("strong")?.textContent ?? "";
      const fits = stated.startsWith(verdict.value) || stated.includes(`; ${verdict.value}`);
      item.hidden = !(fits && wanted.every((word) => text.includes(word)));
      left += !item.hidden;
    }
    paper.hidden = !left;
    for (const folded of paper.querySelectorAll("details")) folded.open = wanted.length || verdict.value;
    count += left;
  }
  document.getElementById("count").textContent = `${count} sentences`;
}

words.addEventListener("input", show);
verdict.addEventListener("input", show);
