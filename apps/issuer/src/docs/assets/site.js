// The script of the pages at /docs: search, tabs, and what scrolls. Pages work without it. It writes text only, never HTML, and asks for
// search.json alone.

const DOCS = new URL(document.body.dataset.docs ?? './', location.href);

/** An element with its attributes and what is in it. */
function make(name, attributes = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

/** Tabs of programs in several languages, by the pattern of the WAI-ARIA Authoring Practices. The choice holds for all pages. */
function makeTabs(group, place) {
  const figures = [...group.children];
  const list = make('div', { role: 'tablist', 'aria-label': 'Language' });
  const tabs = figures.map((figure, i) => {
    const caption = figure.querySelector('figcaption');
    const id = `tab-${place}-${i}`;
    const tab = make(
      'button',
      { type: 'button', role: 'tab', id, 'aria-controls': `${id}-panel` },
      caption.textContent,
    );
    caption.remove();
    figure.replaceWith(
      make('div', { role: 'tabpanel', id: `${id}-panel`, 'aria-labelledby': id }, ...figure.children),
    );
    tab.addEventListener('click', () => choose(tab.textContent));
    list.append(tab);
    return tab;
  });
  list.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    choose(next.textContent);
    next.focus();
  });
  group.prepend(list);
}

const CHOSEN = 'presign-docs-language';

/** A browser may refuse it. A choice then lasts as long as its page. */
const storage = (() => {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
})();

/** Shows a language in each group that has it, and the first one in the others. */
function choose(language) {
  if (language) storage?.setItem(CHOSEN, language);
  for (const list of document.querySelectorAll('[role=tablist]')) {
    const tabs = [...list.children];
    const shown =
      tabs.find((tab) => tab.textContent === language) ?? tabs.find((tab) => tab.ariaSelected === 'true');
    for (const tab of tabs) {
      const isShown = tab === (shown ?? tabs[0]);
      tab.setAttribute('aria-selected', String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      document.getElementById(tab.getAttribute('aria-controls')).hidden = !isShown;
    }
  }
  markScrollers();
}

/** A box that scrolls can be reached and scrolled by the keyboard. */
function markScrollers() {
  for (const box of document.querySelectorAll('article pre, article .wide')) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute('tabindex');
  }
}

const MOST_RESULTS = 20;
const MOST_OF_A_PAGE = 3;

/** The words of a text as they are compared. */
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

/** How often words of a text begin with the term. */
const countIn = (text, term) => wordsOf(text).filter((word) => word.startsWith(term)).length;

/** The sections that have every term, best first: in the name of the page, then in the heading, then in the text. */
function find({ pages, sections }, query) {
  const terms = wordsOf(query);
  if (terms.length === 0) return [];
  const found = [];
  for (const [page, id, heading, text] of sections) {
    const lower = text.toLowerCase();
    // A match in the name of a page leads to its beginning.
    const scores = terms.map(
      (term) =>
        countIn(pages[page][1], term) * (id === '' ? 20 : 2) +
        countIn(heading, term) * 8 +
        Math.log2(1 + (lower.includes(term) ? countIn(text, term) : 0)),
    );
    const score = scores.reduce((sum, each) => sum + each, 0);
    if (scores.every((each) => each > 0)) found.push({ page, id, heading, text, score });
  }
  found.sort((a, b) => b.score - a.score);
  const ofPage = new Map();
  return found
    .filter(({ page }) => {
      ofPage.set(page, (ofPage.get(page) ?? 0) + 1);
      return ofPage.get(page) <= MOST_OF_A_PAGE;
    })
    .slice(0, MOST_RESULTS)
    .map(({ page, ...rest }) => ({ route: pages[page][0], name: pages[page][1], ...rest }));
}

/** The text around the first match, with its matches marked. */
function excerptOf(text, query) {
  const terms = wordsOf(query);
  const lower = text.toLowerCase();
  const first = Math.min(...terms.map((term) => lower.indexOf(term)).filter((at) => at >= 0));
  const start = Number.isFinite(first) ? Math.max(0, text.lastIndexOf(' ', Math.max(0, first - 50)) + 1) : 0;
  const shown =
    (start > 0 ? '… ' : '') + text.slice(start, start + 170) + (text.length > start + 170 ? ' …' : '');
  const pattern = new RegExp(`(${terms.join('|')})`, 'giu');
  return shown.split(pattern).map((piece, i) => (i % 2 ? make('mark', {}, piece) : piece));
}

/** The dialog of the search. Its index is loaded when it opens first. */
function makeSearch() {
  const input = make('input', {
    type: 'search',
    'aria-label': 'Search the documentation',
    autocomplete: 'off',
  });
  const status = make('p', { role: 'status' });
  const results = make('ol');
  const dialog = make('dialog', { 'aria-label': 'Search' }, input, status, results);
  document.body.append(dialog);
  let index;
  const load = async () => {
    const answer = await fetch(new URL('search.json', DOCS));
    if (!answer.ok) throw new Error(`search.json: ${answer.status}`);
    return answer.json();
  };
  const show = async () => {
    const query = input.value;
    try {
      index ??= load();
      await index;
    } catch {
      index = undefined;
      status.textContent = 'The search did not load. Type again to repeat it.';
      return;
    }
    const all = find(await index, query);
    if (query !== input.value) return;
    const count = `${all.length} ${all.length === 1 ? 'result' : 'results'}`;
    status.textContent = wordsOf(query).length > 0 ? count : '';
    results.replaceChildren(...all.map((each) => resultOf(each, query)));
  };
  const open = () => {
    dialog.showModal();
    input.select();
    show();
  };
  input.addEventListener('input', show);
  dialog.addEventListener('keydown', (event) => moveBy(event, input, results));
  // A link to the page that is open loads no other page.
  results.addEventListener('click', () => dialog.close());
  const button = document.getElementById('search');
  button.hidden = false;
  button.addEventListener('click', open);
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    event.preventDefault();
    open();
  });
}

function resultOf({ route, id, name, heading, text }, query) {
  const address = new URL(route, DOCS);
  if (id) address.hash = id;
  const title = id ? `${name} › ${heading}` : name;
  return make(
    'li',
    {},
    make('a', { href: address.href }, make('strong', {}, title), make('span', {}, ...excerptOf(text, query))),
  );
}

/** Arrows move through the results, and Enter in the field follows the first. */
function moveBy(event, input, results) {
  const links = [...results.querySelectorAll('a')];
  const at = links.indexOf(document.activeElement);
  if (event.key === 'Enter' && at < 0) links[0]?.click();
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  (links[at + step] ?? (step < 0 ? input : links.at(-1)))?.focus();
}

/** Wide screens show the lists that are folded on small ones. The style does so without this, except in older browsers. */
function unfold({ matches }) {
  for (const fold of document.querySelectorAll('.fold')) fold.open = matches;
}

const wide = matchMedia('(min-width: 56rem)');
wide.addEventListener('change', unfold);
unfold(wide);
for (const [place, group] of document.querySelectorAll('.tabs').entries()) makeTabs(group, place);
choose(storage?.getItem(CHOSEN));
addEventListener('resize', markScrollers);
makeSearch();
