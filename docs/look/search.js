// Search over all pages, in the browser: every word must occur; titles count more than text.
(() => {
  const root = document.currentScript.dataset.root;
  const field = document.getElementById("find"), found = document.getElementById("found");
  document.querySelector(".search").hidden = false;

  function score(entry, words) {
    const title = entry.t.toLowerCase(), text = entry.s.toLowerCase();
    let sum = 0;
    for (const word of words) {
      if (title === word) sum += 20;
      else if (title.startsWith(word)) sum += 10;
      else if (title.includes(word)) sum += 5;
      else if (text.includes(word)) sum += 1;
      else return 0;
    }
    return sum;
  }

  function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length
      ? window.searchIndex.map((entry) => [score(entry, words), entry]).filter((hit) => hit[0] > 0)
          .sort((a, b) => b[0] - a[0] || a[1].t.length - b[1].t.length).slice(0, 12)
      : [];
    const list = document.createElement("ul");
    for (const [, entry] of hits) {
      const link = Object.assign(document.createElement("a"), { href: root + entry.u, textContent: entry.t });
      const place = Object.assign(document.createElement("small"), { textContent: " " + entry.u });
      const item = document.createElement("li");
      item.append(link, place);
      list.append(item);
    }
    found.replaceChildren(...(words.length ? [hits.length ? list : "Nothing found; try fewer words."] : []));
  }

  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { field.value = ""; show(); }
    if (event.key === "Enter") found.querySelector("a")?.click();
  });
})();
