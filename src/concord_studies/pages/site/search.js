// Changes to Sphinx's search: "D-ADMMS" looks for no letter d, and a paper comes before a reference.
splitQuery = (query) => {
  const words = query.split(/[^\p{Letter}\p{Number}_]+/gu).filter((word) => word);
  const long = words.filter((word) => word.length > 1);
  return long.length ? long : words;
};
Scorer.score = ([page, , , , score]) => (page.startsWith("reference/") ? score - 1 : score);
