// Changes to Sphinx's search: "D-ADMMS" looks for no letter d, and a paper comes before a reference.
splitQuery = (query) => {
  const words = query.split(/[^\p{Letter}\p{Number}_]+/gu).filter((word) => word);
  const long = words.filter((word) => word.length > 1);
  return long.length ? long : words;
};
// A page is found once. By its name it is found at its top, from where it has a summary.
addEventListener("DOMContentLoaded", () => {
  const search = Search._performSearch;
  Search._performSearch = (...words) => {
    const seen = new Set();
    const found = search(...words).reverse().filter(([page, title]) => {
      const place = `${page} ${title}`;
      return !seen.has(place) && seen.add(place);
    });
    for (const one of found) {
      if (one[2].startsWith("#index-") && !one[0].startsWith("reference/")) one[2] = "";
    }
    return found.reverse();
  };
});
Scorer.score = ([page, , , , score]) => (page.startsWith("reference/") ? score - 1 : score);
