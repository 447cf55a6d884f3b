"""tablescript: the style and the script of a table in a notebook, as they stand beside each."""

from __future__ import annotations

from mirblab.prose import MATH_FONTS

STYLE = (
    """
.mirblab-table { margin: 0 0 1em; max-width: 100%; }
.mirblab-table > figcaption { text-align: left; padding: 0.3em 0.5em; font-weight: 600; overflow-wrap: anywhere; }
.mirblab-table .mirblab-box { overflow: auto; max-width: 100%; width: fit-content; isolation: isolate; }
.mirblab-table .mirblab-box[tabindex] { max-height: 34em; border-bottom: 1px solid var(--jp-border-color1, GrayText); }
.mirblab-table table.dataframe { table-layout: auto; border-collapse: separate; border-spacing: 0; margin: 0;
  border: none; font-size: inherit; }
.mirblab-table table.dataframe thead { position: sticky; top: 0; z-index: 1; }
.mirblab-table table.dataframe thead :is(th, td) { background: var(--jp-layout-color0, Canvas);
  color: var(--jp-content-font-color1, CanvasText); vertical-align: bottom; }
.mirblab-table table.dataframe thead tr:last-child :is(th, td) {
  border-bottom: 1px solid var(--jp-border-color1, GrayText); }
.mirblab-table table.dataframe thead th[scope=colgroup] { text-align: center; }
.mirblab-table table.dataframe :is(th, td) { padding: 0.35em 0.6em; text-align: left; white-space: normal;
  max-width: none; line-height: 1.4; }
.mirblab-table table.dataframe tbody :is(th, td) { vertical-align: top; }
.mirblab-table table.dataframe .mirblab-number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.mirblab-table .mirblab-cell { max-width: 38em; overflow-x: auto; overflow-wrap: break-word; padding: 0.1em 0; }
.mirblab-table .mirblab-long { max-width: none; }
.mirblab-table .mirblab-box:has(.mirblab-long) { width: auto; max-width: 90em; }
.mirblab-table table.dataframe:has(.mirblab-long) { width: 100%; }
.mirblab-table table.dataframe tbody td:has(.mirblab-long) { max-width: 0; min-width: 14em; width: 80%; }
.mirblab-table .mirblab-long-2 table.dataframe tbody td:has(.mirblab-long) { width: 40%; }
.mirblab-table .mirblab-long-3 table.dataframe tbody td:has(.mirblab-long) { width: 27%; }
.mirblab-table .mirblab-long-4 table.dataframe tbody td:has(.mirblab-long) { width: 20%; }
.mirblab-table thead button { all: unset; cursor: pointer; font: inherit; color: inherit; white-space: normal; }
.mirblab-table thead button::after { content: "\\2195"; opacity: 0.45; padding-left: 0.3em; }
.mirblab-table thead [aria-sort=ascending] button::after { content: "\\2191"; opacity: 1; }
.mirblab-table thead [aria-sort=descending] button::after { content: "\\2193"; opacity: 1; }
.mirblab-table :is(button, .mirblab-box):focus-visible { outline: 2px solid var(--jp-brand-color1, Highlight);
  outline-offset: -1px; }
.mirblab-table .mirblab-tools { display: flex; flex-wrap: wrap; gap: 0.3em 1em; align-items: center;
  padding: 0.3em 0.5em; }
.mirblab-table .mirblab-tools input { font: inherit; min-width: 14em; padding: 0.2em 0.4em; margin-left: 0.5em;
  color: var(--jp-content-font-color1, FieldText); background: var(--jp-layout-color1, Field);
  border: 1px solid var(--jp-border-color0, GrayText); border-radius: 2px; }
.mirblab-table > p { margin: 0.3em 0.5em; font-size: 0.9em; max-width: 60em; }
@media print { .mirblab-table .mirblab-box { max-height: none; overflow: visible; } }
"""
    + f".mirblab-table {MATH_FONTS}"
)

SCRIPT = """
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
  return text === '' || text === '\\u2013' ? null : text;
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
const plain = text => text.normalize('NFD').replace(/\\p{M}/gu, '').toLowerCase();
const texts = [];
function textOf(place) {  // of a row and of the sources of its formulas, made when first asked for
  const formulas = [...rows[place].querySelectorAll('math')].map(formula => formula.getAttribute('alttext') || '');
  return texts[place] ??= plain([...rows[place].cells].map(cell => cell.textContent).concat(formulas).join(' '));
}
const tools = document.createElement('div'), label = document.createElement('label');
const field = document.createElement('input'), told = document.createElement('output');
tools.className = 'mirblab-tools';
field.type = 'search';
field.autocomplete = 'off';
label.append('Filter', field);
told.textContent = `${rows.length} rows`;
tools.append(label, told);
root.insertBefore(tools, root.querySelector('.mirblab-box'));
field.addEventListener('input', () => {
  const words = plain(field.value).split(/\\s+/).filter(Boolean);
  let shown = 0;
  rows.forEach((row, place) => {
    row.hidden = !words.every(word => textOf(place).includes(word));
    shown += !row.hidden;
  });
  told.textContent = words.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
});
})();
"""
