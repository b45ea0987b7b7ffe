// Tables are sorted by the column whose heading is chosen: first the way that column is read best
// (figures: largest first; words: alphabetically), then the other way round. Rows without a figure
// stay last. Quantities are compared by what they are worth: 2.1 ms is more than 950 us.
(() => {
  const worth = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  const figure = (text) => {
    const found = /^-?[\d.]+(?=\s*([a-zA-Z]*))/.exec(text);
    return found ? Number(found[0]) * (worth[found[1]] ?? 1) : NaN;
  };
  const sort = (table, column, heading) => {
    const figures = !heading.classList.contains('left');
    const before = heading.getAttribute('aria-sort');
    const down = before ? before === 'ascending' : figures;
    for (const other of table.querySelectorAll('th')) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const body = table.tBodies[0];
    const text = (row) => row.cells[column].textContent.trim();
    const empty = (row) => figures && Number.isNaN(figure(text(row)));
    const rows = [...body.rows].sort((a, b) => {
      if (empty(a) || empty(b)) return empty(a) - empty(b);
      const order = figures ? figure(text(a)) - figure(text(b)) : text(a).localeCompare(text(b));
      return down ? -order : order;
    });
    body.append(...rows);
  };
  for (const table of document.querySelectorAll('.table table')) {
    [...table.querySelectorAll('th')].forEach((heading, column) => {
      if (!heading.textContent) return;
      const button = document.createElement('button');
      button.append(...heading.childNodes);
      button.addEventListener('click', () => sort(table, column, heading));
      heading.append(button);
    });
  }
})();
