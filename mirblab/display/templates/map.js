'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const map = document.getElementById('map'), told = document.getElementById('told');
const sources = document.getElementById('texts').children, formulas = document.getElementById('formulas').children;
const hidden = {field: new Set(), kind: new Set()};
let seed = 0, chosen = -1;

function made(name, attributes, parent) {
  const element = document.createElementNS(map.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}
function completed() {  // each sign of a formula that has no element of its own gets one
  const kinds = [[/\p{L}/u, 'mi'], [/\p{N}/u, 'mn'], [/./su, 'mo']], texts = [];
  const walker = document.createTreeWalker(document.getElementById('formulas'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const row = text.parentElement;
    if (/^(m[ion]|mtext|code|div)$/.test(row.localName)) continue;
    text.replaceWith(...[...text.data].map(sign => {
      const token = document.createElementNS(row.namespaceURI, kinds.find(([pattern]) => pattern.test(sign))[1]);
      token.textContent = sign;
      return token;
    }));
  }
}
function shape(point) {  // a dot, or a triangle for a distractor
  return point.kind ? 'M0-8.1 7 4.1H-7Z' : 'M-8.5 0a8.5 8.5 0 1 0 17 0a8.5 8.5 0 1 0-17 0';
}
function statement(place) {
  const text = sources[place].cloneNode(true);
  for (const mark of text.querySelectorAll('i')) mark.replaceWith(formulas[Number(mark.textContent)].cloneNode(true));
  return text;
}
function words(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return told.appendChild(element);
}
function said([kept, k, full, here]) {
  const rank = `; its partner is neighbour ${full} in the full space, ${here} here`;
  return `This map keeps ${kept} of its ${k} nearest${full ? rank : ''}.`;
}
function shown(point) { return !hidden.field.has(point.field) && !hidden.kind.has(point.kind); }

completed();
const scale = data.size / 17;
const links = data.links.map(([a, b]) => ({a, b, element: made('line', {class: 'link'}, map)}));
const dots = data.points.map((point, place) => {
  const hollow = point.field % 14 > 6, colour = data.colours[point.field % 7];
  const dot = made('path', {class: 'point', d: shape(point), tabindex: -1, role: 'button',
    fill: hollow ? 'var(--ground)' : colour}, map);
  if (hollow) dot.style.stroke = colour;
  dot.addEventListener('mouseenter', () => choose(place));
  dot.addEventListener('focus', () => choose(place));
  dot.addEventListener('click', () => dot.focus());
  return dot;
});
function draw() {
  data.points.forEach((point, place) => {
    const [x, y] = point.at[seed], size = scale * (point.kind ? 0.75 : 1);
    dots[place].setAttribute('transform', `translate(${x} ${y}) scale(${size.toFixed(3)})`);
    dots[place].classList.toggle('away', !shown(point));
  });
  for (const link of links) {
    const [a, b] = [data.points[link.a], data.points[link.b]];
    const [x1, y1] = a.at[seed], [x2, y2] = b.at[seed];
    for (const [key, value] of Object.entries({x1, y1, x2, y2})) link.element.setAttribute(key, value);
    link.element.classList.toggle('away', !shown(a) || !shown(b));
  }
  const first = data.points.findIndex(shown);
  dots.forEach((dot, place) => { dot.tabIndex = place === (chosen < 0 ? first : chosen) ? 0 : -1; });
}
function partners(place) { return links.flatMap(({a, b}) => a === place ? [b] : b === place ? [a] : []); }
function choose(place) {
  chosen = place;
  const others = partners(place), point = data.points[place];
  dots.forEach((dot, other) => {
    dot.classList.toggle('chosen', other === place);
    dot.classList.toggle('partner', others.includes(other));
    dot.tabIndex = other === place ? 0 : -1;
  });
  for (const link of links) link.element.classList.toggle('chosen', link.a === place || link.b === place);
  dots[place].setAttribute('aria-label', `${data.fields[point.field]}: ${statement(place).textContent}`);
  told.replaceChildren();
  words('h2', `${data.fields[point.field]}, ${data.kinds[point.kind]}`);
  told.append(statement(place));
  if (point.numbers) words('p', said(point.numbers[seed])).className = 'quiet';
  for (const other of others) {
    words('h2', `${data.kinds[data.points[other].kind]}: ${data.fields[data.points[other].field]}`);
    told.append(statement(other));
  }
}
function towards(place, dx, dy) {  // the nearest shown point within 45 degrees of a direction
  const [x, y] = data.points[place].at[seed];
  let best = place, least = Infinity;
  data.points.forEach((point, other) => {
    const along = (point.at[seed][0] - x) * dx + (point.at[seed][1] - y) * dy;
    const aside = Math.abs((point.at[seed][0] - x) * dy) + Math.abs((point.at[seed][1] - y) * dx);
    if (other !== place && shown(point) && along > 0 && aside <= along && along + aside < least)
      [best, least] = [other, along + aside];
  });
  return best;
}
const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
map.addEventListener('keydown', event => {
  if (chosen < 0) return;
  if (event.key in arrows) dots[towards(chosen, ...arrows[event.key])].focus();
  else if (event.key === 'Enter') { const [other] = partners(chosen); if (other !== undefined) dots[other].focus(); }
  else return;
  event.preventDefault();
});
for (const box of document.querySelectorAll('input')) box.addEventListener('change', () => {
  if (box.name === 'seed') seed = Number(box.value);
  else hidden[box.name][box.checked ? 'delete' : 'add'](Number(box.value));
  if (chosen >= 0 && !shown(data.points[chosen])) { chosen = -1; told.replaceChildren(); }
  draw();
  if (chosen >= 0) choose(chosen);
});
draw();
