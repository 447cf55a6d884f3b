(() => {
'use strict';
const root = document.currentScript && document.currentScript.closest('.mirblab-table');
const table = root && root.querySelector('table');
if (!table || root.querySelector('button')) return;
const body = table.tBodies[0], rows = [...body.rows], heads = [...[...table.tHead.rows].pop().cells];
root.dataset.lmSuppressShortcuts = 'true';  // keys pressed in the table are no commands of the notebook

const collator = new Intl.Collator('en', {numeric: true, sensitivity: 'base'});
let sorted = -1, direction = 0;
function key(row, column) {  // a number, a text, or null where there is none
  const cell = row.cells[column], text = cell.textContent.trim();
  if ('value' in cell.dataset) return Number(cell.dataset.value);
  return text === '' || text === '\u2013' ? null : text;
}
function compared(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a !== typeof b) return (typeof a === 'number' ? -1 : 1) * direction;
  return direction * (typeof a === 'number' ? (a > b) - (a < b) : collator.compare(a, b));
}
function sort(column) {
  direction = column !== sorted ? 1 : direction === 1 ? -1 : 0;
  sorted = direction ? column : -1;
  const keyed = rows.map(row => [direction ? key(row, column) : null, row]);
  body.append(...keyed.sort((a, b) => compared(a[0], b[0])).map(pair => pair[1]));
  for (const head of heads) head.removeAttribute('aria-sort');
  if (direction) heads[column].setAttribute('aria-sort', direction > 0 ? 'ascending' : 'descending');
}
heads.forEach((head, column) => {
  const button = document.createElement('button');
  button.type = 'button';
  if (!head.textContent.trim()) button.setAttribute('aria-label', 'name of the row');
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener('click', () => sort(column));
});

if (rows.length <= 10) return;
const plain = text => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
const texts = [];
function textOf(place) {  // of a row and of the sources of its formulas, made when first asked for
  const formulas = [...rows[place].querySelectorAll('math')].map(formula => formula.getAttribute('alttext') || '');
  return texts[place] ??= plain([...rows[place].cells].map(cell => cell.textContent).concat(formulas).join(' '));
}
const tools = document.createElement('div'), label = document.createElement('label');
const field = document.createElement('input'), count = document.createElement('output');
tools.className = 'mirblab-tools';
field.type = 'search';
field.autocomplete = 'off';
label.append('Filter', field);
count.textContent = `${rows.length} rows`;
tools.append(label, count);
root.insertBefore(tools, root.querySelector('.mirblab-box'));
field.addEventListener('input', () => {
  const words = plain(field.value).split(/\s+/).filter(Boolean);
  let shown = 0;
  rows.forEach((row, place) => {
    row.hidden = !words.every(word => textOf(place).includes(word));
    shown += !row.hidden;
  });
  count.textContent = words.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
});
})();
