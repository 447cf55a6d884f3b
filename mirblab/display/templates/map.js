'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const box = document.getElementById('map'), told = document.getElementById('told');
const listed = document.getElementById('listed'), tools = document.getElementById('tools');
const WIDE = 10000, HIGH = 7200, FEW = 3000, ROWS = 100, n = data.ids.length;
const hidden = {group: new Set(), kind: new Set()};
const shown = new Uint8Array(n).fill(1), seen = new Uint32Array(n);  // whether its boxes are on; those in view
let seed = 0, chosen = -1, isKept = false, found = null, drawnAround = null, isLasso = false, lasso = null;

function add(parent, name, text = '') {
  const element = document.createElement(name);
  element.textContent = text;
  return parent.appendChild(element);
}
function button(parent, text, act) {
  const made = add(parent, 'button', text);
  made.type = 'button';
  made.addEventListener('click', act);
  return made;
}

// A statement is a list of prose and, at odd places, the numbers of its formulas.
const KINDS = [[/\p{L}/u, 'mi'], [/\p{N}/u, 'mn'], [/./su, 'mo']];
function formula(place) {  // each sign that has no element of its own gets one
  const holder = document.createElement('template'), texts = [];
  holder.innerHTML = data.formulas[place];  // written by the library, whatever the statement says
  const walker = document.createTreeWalker(holder.content, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const row = text.parentElement;
    if (/^(m[ion]|mtext|code|div)$/.test(row.localName)) continue;
    text.replaceWith(...[...text.data].map(sign => {
      const token = document.createElementNS(row.namespaceURI, KINDS.find(([pattern]) => pattern.test(sign))[1]);
      token.textContent = sign;
      return token;
    }));
  }
  return holder.content;
}
function statement(place) {
  const element = document.createElement('p');
  element.append(...data.texts[place].map((part, at) => at % 2 ? formula(part) : part));
  return element;
}
function source(place) { return data.texts[place].map((part, at) => at % 2 ? `$${data.sources[part]}$` : part).join(''); }

// The map: `view` has the point of the drawing at the canvas's corner, and pixels for a unit of the drawing.
const canvas = box.appendChild(document.createElement('canvas')), pen = canvas.getContext('2d');
const view = {x: 0, y: 0, scale: 1}, paper = {};
let xs, ys, whole = 1, pending = false;
function place() {
  const at = data.at[seed];
  xs = Float32Array.from({length: n}, (_, point) => at[2 * point]);
  ys = Float32Array.from({length: n}, (_, point) => at[2 * point + 1]);
}
function fit() {
  const {clientWidth: wide, clientHeight: high} = canvas, ratio = window.devicePixelRatio || 1;
  const isNew = view.scale === whole;
  Object.assign(paper, {wide, high, ratio});
  canvas.width = Math.max(1, Math.round(wide * ratio));
  canvas.height = Math.max(1, Math.round(high * ratio));
  paper.image = pen.createImageData(canvas.width, canvas.height);
  whole = Math.min(wide / WIDE, high / HIGH);
  if (isNew) all();
  soon();
}
function all() {
  Object.assign(view, {scale: whole, x: (WIDE - paper.wide / whole) / 2, y: (HIGH - paper.high / whole) / 2});
  soon();
}
function zoom(factor, x = paper.wide / 2, y = paper.high / 2) {  // about a point of the canvas, which stays
  const scale = Math.min(Math.max(view.scale * factor, whole / 2), whole * 400);
  view.x += x / view.scale - x / scale;
  view.y += y / view.scale - y / scale;
  view.scale = scale;
  soon();
}
function onCanvas(point) { return [(xs[point] - view.x) * view.scale, (ys[point] - view.y) * view.scale]; }
function radius() { return Math.min(11, Math.max(1.1, data.size / 2 * whole * 10) * (view.scale / whole) ** 0.45); }
function isStrong(point) { return (!found || found[point] === 1) && (!drawnAround || drawnAround[point] === 1); }
function soon() { if (!pending) { pending = true; requestAnimationFrame(draw); } }

function draw() {
  pending = false;
  const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue('--ink').trim();
  const ground = style.getPropertyValue('--ground').trim(), rule = style.getPropertyValue('--line').trim();
  const colours = data.groups.map(({colour}) => colour === '#000000' ? ink : colour), r = radius();
  const margin = r + 2;
  let total = 0;
  for (let point = 0; point < n; point++) {
    if (!shown[point]) continue;
    const x = (xs[point] - view.x) * view.scale, y = (ys[point] - view.y) * view.scale;
    if (x > -margin && y > -margin && x < paper.wide + margin && y < paper.high + margin) seen[total++] = point;
  }
  const points = seen.subarray(0, total);
  const isFull = points.length > FEW, isDimmed = found !== null || drawnAround !== null;
  if (isFull) dotPixels(points, colours, rgb(ground), rgb(rule), r * paper.ratio, isDimmed);
  pen.setTransform(paper.ratio, 0, 0, paper.ratio, 0, 0);
  if (!isFull) {
    pen.fillStyle = ground;
    pen.fillRect(0, 0, paper.wide, paper.high);
  }
  drawLinks(rule, ink);
  if (!isFull) for (const strong of isDimmed ? [false, true] : [true]) drawDots(points, colours, ground, ink, rule, r, strong);
  for (const point of chosen < 0 ? [] : [...partners(chosen), chosen]) ring(point, ink, r, point === chosen ? 3 : 2);
  names(colours, ground);
  if (lasso) { path(lasso.map(([x, y]) => [x, y])); pen.closePath(); stroke(ink, 1.5); }
}
function rgb(colour) {  // a pixel of ImageData, whose bytes are red, green, blue, opaque
  const digits = colour.length === 4 ? [...colour.slice(1)].map(one => one + one).join('') : colour.slice(1);
  const [red, green, blue] = [0, 2, 4].map(at => parseInt(digits.slice(at, at + 2), 16));
  return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}
function dotPixels(points, colours, ground, dim, r, isDimmed) {  // many dots: discs written as pixels
  const {width, height} = canvas, pixels = new Uint32Array(paper.image.data.buffer);
  const inks = colours.map(rgb), size = Math.max(1, Math.round(r)), scale = view.scale * paper.ratio;
  const halves = Array.from({length: 2 * size + 1}, (_, row) => Math.floor(Math.sqrt(r * r + 0.5 - (row - size) ** 2) || 0));
  pixels.fill(ground);
  for (const strong of isDimmed ? [false, true] : [true]) for (const point of points) {
    if (isDimmed && isStrong(point) !== strong) continue;
    const colour = strong ? inks[data.group[point]] : dim;
    const x = Math.round((xs[point] - view.x) * scale), y = Math.round((ys[point] - view.y) * scale);
    for (let row = Math.max(0, y - size), last = Math.min(height - 1, y + size); row <= last; row++) {
      const half = halves[row - y + size], end = row * width + Math.min(width - 1, x + half);
      for (let at = row * width + Math.max(0, x - half); at <= end; at++) pixels[at] = colour;
    }
  }
  pen.putImageData(paper.image, 0, 0);
}
function drawDots(points, colours, ground, ink, rule, r, strong) {
  const groups = data.groups.map(() => new Path2D());
  for (const point of points) {
    if (isStrong(point) !== strong) continue;
    const [x, y] = onCanvas(point), dots = groups[data.group[point]];
    if (data.kind[point]) {
      dots.moveTo(x, y - r); dots.lineTo(x + 0.85 * r, y + 0.5 * r); dots.lineTo(x - 0.85 * r, y + 0.5 * r); dots.closePath();
    } else {
      dots.moveTo(x + r, y); dots.arc(x, y, r, 0, 7);
    }
  }
  groups.forEach((dots, group) => {
    const isHollow = data.groups[group].hollow, colour = strong ? colours[group] : rule;
    pen.globalAlpha = strong ? 1 : 0.35;
    pen.fillStyle = isHollow ? ground : colour;
    pen.fill(dots);
    pen.strokeStyle = isHollow ? colour : strong ? ink : rule;
    pen.lineWidth = isHollow ? Math.min(2, r / 3) : Math.min(1, r / 6);
    pen.stroke(dots);
  });
  pen.globalAlpha = 1;
}
function path(corners) {
  pen.beginPath();
  corners.forEach(([x, y], place) => place ? pen.lineTo(x, y) : pen.moveTo(x, y));
}
function stroke(colour, width) { pen.strokeStyle = colour; pen.lineWidth = width; pen.stroke(); }
function isInView(point) {
  const x = (xs[point] - view.x) * view.scale, y = (ys[point] - view.y) * view.scale;
  return x > 0 && y > 0 && x < paper.wide && y < paper.high;
}
function drawLinks(rule, ink) {  // those in view, unless there are too many to see
  const lines = new Path2D();
  let drawn = 0;
  for (const [a, b] of data.links) {
    if (drawn > FEW) break;
    if (!shown[a] || !shown[b] || !isStrong(a) || !isStrong(b) || !(isInView(a) || isInView(b))) continue;
    lines.moveTo(...onCanvas(a));
    lines.lineTo(...onCanvas(b));
    drawn++;
  }
  pen.strokeStyle = rule;
  pen.lineWidth = 0.8;
  if (drawn <= FEW) pen.stroke(lines);
  for (const other of chosen < 0 ? [] : partners(chosen)) if (shown[other]) { path([onCanvas(chosen), onCanvas(other)]); stroke(ink, 2); }
}
function ring(point, ink, r, width) {
  if (!shown[point]) return;
  pen.beginPath();
  pen.arc(...onCanvas(point), r + 3, 0, 7);
  stroke(ink, width);
}
function names(colours, ground) {  // of regions, each where none stands yet
  const taken = [];
  pen.font = '600 14px sans-serif';
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.lineJoin = 'round';
  data.groups.forEach(({name, at}, group) => {
    if (!at || !name || hidden.group.has(group)) return;
    const x = (at[seed][0] - view.x) * view.scale, half = pen.measureText(name).width / 2 + 4;
    const first = (at[seed][1] - view.y) * view.scale;
    const y = [0, -18, 18, -36, 36].map(step => first + step).find(
      spot => !taken.some(other => Math.abs(other.y - spot) < 18 && Math.abs(other.x - x) < half + other.half));
    if (y === undefined) return;
    taken.push({x, y, half});
    pen.strokeStyle = ground;
    pen.lineWidth = 5;
    pen.strokeText(name, x, y);
    pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--ink');
    pen.fillText(name, x, y);
  });
}

// The chosen statement and its partner.
const partnersOf = new Map();
for (const [a, b] of data.links) for (const [one, other] of [[a, b], [b, a]])
  partnersOf.set(one, [...partnersOf.get(one) || [], other]);
function partners(point) { return partnersOf.get(point) || []; }
function said(point) {
  const [kept, k, full, here] = data.numbers[seed].slice(4 * point, 4 * point + 4);
  const rank = `; its partner is neighbour ${full} in the full space, ${here} here`;
  return `This map keeps ${kept} of its ${k} nearest${full ? rank : ''}.`;
}
function idOf(point) {  // the statement's id, as a link where the collection has addresses
  const id = document.createElement(data.address ? 'a' : 'code');
  id.textContent = data.ids[point];
  if (!data.address) return id;
  id.href = data.address.replace('{}', encodeURIComponent(data.ids[point].replace(/^(query|document):/, '')));
  id.target = '_blank';
  id.rel = 'noopener noreferrer';
  return id;
}
function choose(point) {
  chosen = point;
  told.replaceChildren();
  soon();
  if (point < 0) { canvas.setAttribute('aria-label', 'Map of statements'); return; }
  canvas.setAttribute('aria-label', `${data.fields[data.field[point]]}: ${source(point)}`);
  for (const [place, one] of [point, ...partners(point)].entries()) {
    const field = data.fields[data.field[one]], kind = data.kinds[data.kind[one]];
    add(told, 'h2', place ? `${kind}: ${field}` : `${field}, ${kind}`);
    told.append(statement(one));
    const about = add(told, 'p');
    about.className = 'quiet';
    about.append(idOf(one), !place && data.numbers.length ? ` ${said(one)}` : '');
  }
}
function nearest(x, y, most) {
  let best = -1, least = most * most;
  for (let point = 0; point < n; point++) {
    if (!shown[point]) continue;
    const dx = (xs[point] - view.x) * view.scale - x, dy = (ys[point] - view.y) * view.scale - y;
    if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = point; }
  }
  return best;
}
function towards(from, dx, dy) {  // the nearest shown point within 45 degrees of a direction
  let best = from, least = Infinity;
  for (let point = 0; point < n; point++) {
    const x = xs[point] - xs[from], y = ys[point] - ys[from];
    const along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (point !== from && shown[point] && along > 0 && aside <= along && along + aside < least)
      [best, least] = [point, along + aside];
  }
  return best;
}
function keep(point) {  // chosen until another one is, and in view
  isKept = point >= 0;
  choose(point);
  if (point < 0 || isInView(point)) return;
  view.x = xs[point] - paper.wide / view.scale / 2;
  view.y = ys[point] - paper.high / view.scale / 2;
}

// Search, drawing around statements, and the list of those.
const plain = text => (/^[\0-\x7f]*$/.test(text) ? text : text.normalize('NFD').replace(/\p{M}/gu, '')).toLowerCase();
let searched = null;  // the texts as they are searched, made at the first search
const label = add(tools, 'label', 'Search'), field = label.appendChild(document.createElement('input'));
field.type = 'search';
field.autocomplete = 'off';
const count = add(tools, 'output', `${n.toLocaleString('en')} statements`);
const around = button(tools, 'Draw around', () => {
  isLasso = !isLasso;
  around.setAttribute('aria-pressed', isLasso);
  canvas.classList.toggle('lasso', isLasso);
});
around.setAttribute('aria-pressed', false);
button(tools, '+', () => zoom(1.6)).setAttribute('aria-label', 'Larger');
button(tools, '\u2212', () => zoom(1 / 1.6)).setAttribute('aria-label', 'Smaller');
button(tools, 'Whole map', all);
field.addEventListener('input', () => {
  const words = plain(field.value).split(/\s+/).filter(Boolean);
  if (words.length) searched ??= Array.from({length: n}, (_, point) => plain(`${data.ids[point]} ${source(point)}`));
  found = words.length ? Uint8Array.from(searched, text => words.every(word => text.includes(word))) : null;
  drawnAround = null;
  list();
});
function isWithin(x, y, corners) {
  let inside = false;
  for (let a = 0, b = corners.length - 1; a < corners.length; b = a++) {
    const [ax, ay] = corners[a], [bx, by] = corners[b];
    if ((ay > y) !== (by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}
function cells(point) {
  const start = data.region ? [data.groups[data.group[point]].name] : [];
  return [data.ids[point], data.fields[data.field[point]], ...start, data.kinds[data.kind[point]],
    data.classes[data.class[point]], source(point)];
}
const HEADS = ['id', 'field', ...data.region ? ['region'] : [], 'kind', 'class_id', 'statement'];
function separated(places, mark) {
  const quoted = text => /["\t\r\n,]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  return [HEADS, ...places.map(cells)].map(row => row.map(quoted).join(mark)).join('\r\n') + '\r\n';
}
function copy(text, done) {
  const byHand = () => {  // where a browser does not let a page write to the clipboard
    const area = add(listed, 'textarea', text);
    area.select();
    document.execCommand('copy');
    area.remove();
  };
  (navigator.clipboard ? navigator.clipboard.writeText(text).catch(byHand) : Promise.resolve(byHand())).then(done);
}
function list() {
  listed.replaceChildren();
  soon();
  const total = n.toLocaleString('en');
  if (!found && !drawnAround) { count.textContent = `${total} statements`; return; }
  const places = [];
  for (let point = 0; point < n; point++) if (shown[point] && isStrong(point)) places.push(point);
  count.textContent = `${places.length.toLocaleString('en')} of ${total} statements`;
  const row = add(listed, 'div'), table = add(listed, 'table');
  row.className = 'mirblab-tools';
  const copied = button(row, 'Copy the table', () =>
    copy(separated(places, '\t'), () => { copied.textContent = 'Copied'; }));
  button(row, 'Download as CSV', () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([separated(places, ',')], {type: 'text/csv'}));
    link.download = 'statements.csv';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  button(row, 'Show all again', () => { field.value = ''; found = drawnAround = null; list(); });
  if (places.length > ROWS) add(table, 'caption', `The first ${ROWS} are listed; copies and CSV have all ${count.textContent}.`);
  const heads = add(add(table, 'thead'), 'tr'), body = add(table, 'tbody');
  for (const head of HEADS) add(heads, 'th', head);
  for (const point of places.slice(0, ROWS)) {
    const line = add(body, 'tr'), texts = cells(point);
    add(line, 'td').append(idOf(point));
    for (const text of texts.slice(1, -1)) add(line, 'td', text);
    add(line, 'td').append(statement(point));
    line.addEventListener('click', () => keep(point));
  }
}

// Mouse, finger, keys and boxes.
let pressed = null;
function spot(event) {
  const {left, top} = canvas.getBoundingClientRect();
  return [event.clientX - left - canvas.clientLeft, event.clientY - top - canvas.clientTop];
}
canvas.addEventListener('pointerdown', event => {
  if (event.button) return;
  const [x, y] = spot(event);
  pressed = {x, y, isMoved: false};
  if (event.shiftKey || isLasso) lasso = [[x, y]];
  if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener('pointermove', event => {
  const [x, y] = spot(event);
  if (!pressed) {
    const point = nearest(x, y, Math.max(9, radius() + 2));
    canvas.classList.toggle('on', point >= 0);
    if (point >= 0 && point !== chosen && !isKept) choose(point);
    return;
  }
  pressed.isMoved ||= Math.hypot(x - pressed.x, y - pressed.y) > 3;
  if (!pressed.isMoved) return;
  if (lasso) lasso.push([x, y]);
  else { view.x -= (x - pressed.x) / view.scale; view.y -= (y - pressed.y) / view.scale; pressed.x = x; pressed.y = y; }
  soon();
});
canvas.addEventListener('pointerup', event => {
  const corners = lasso, isClick = pressed && !pressed.isMoved;
  pressed = lasso = null;
  if (isClick) keep(nearest(...spot(event), Math.max(9, radius() + 2)));
  else if (corners) {
    drawnAround = Uint8Array.from({length: n}, (_, point) => shown[point] && isWithin(...onCanvas(point), corners));
    list();
  }
});
canvas.addEventListener('pointercancel', () => { pressed = lasso = null; soon(); });
canvas.addEventListener('wheel', event => {  // a page is scrolled over a map that has no focus
  if (!event.deltaY || !(event.ctrlKey || document.activeElement === canvas)) return;
  event.preventDefault();
  zoom(Math.exp(-Math.sign(event.deltaY) * Math.min(0.5, Math.abs(event.deltaY) / 300)), ...spot(event));
}, {passive: false});
const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
canvas.addEventListener('keydown', event => {
  if (event.key in ARROWS) keep(chosen < 0 ? shown.indexOf(1) : towards(chosen, ...ARROWS[event.key]));
  else if (event.key === 'Enter') { if (partners(chosen).length) keep(partners(chosen)[0]); }
  else if (event.key === 'Escape') keep(-1);
  else if (event.key === '+' || event.key === '=') zoom(1.6);
  else if (event.key === '-') zoom(1 / 1.6);
  else return;
  event.preventDefault();
});
for (const check of document.querySelectorAll('fieldset input')) check.addEventListener('change', () => {
  if (check.name === 'seed') { seed = Number(check.value); place(); }
  else hidden[check.name][check.checked ? 'delete' : 'add'](Number(check.value));
  for (let point = 0; point < n; point++)
    shown[point] = !hidden.group.has(data.group[point]) && !hidden.kind.has(data.kind[point]);
  choose(chosen >= 0 && shown[chosen] ? chosen : -1);
  list();
});
canvas.tabIndex = 0;
canvas.setAttribute('role', 'application');
canvas.setAttribute('aria-label', 'Map of statements');
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', soon);
place();
new ResizeObserver(fit).observe(canvas);
fit();
