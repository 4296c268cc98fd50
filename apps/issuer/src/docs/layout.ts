import { type Contents, markdownOf, type Page } from './contents.ts';
import { relative } from './links.ts';
import { escapeHtml, type Heading, type Rendered } from './render.ts';

/** The addresses of the style and the script, from `/docs/`. They have a hash of their content. */
export type AssetNames = { readonly style: string; readonly script: string; readonly icon: string };

/** A page as HTML that needs no JavaScript. The script adds the search and the tabs. */
export function layOut(page: Page, rendered: Rendered, contents: Contents, assets: AssetNames): string {
  const at = (route: string) => escapeHtml(relative(page.route, route));
  const { title, html, headings, description } = rendered;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Presign</title>
<meta name="description" content="${escapeHtml(description)}">
<link rel="stylesheet" href="${at(assets.style)}">
<link rel="icon" href="${at(assets.icon)}" type="image/svg+xml">
<link rel="alternate" type="text/markdown" href="${at(markdownOf(page.route))}">
<script src="${at(assets.script)}" defer></script>
</head>
<body data-docs="${at('')}">
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="home" href="${at('')}">Presign</a>
<a href="${at('api')}">API</a>
<a href="${at(markdownOf(page.route))}">Markdown</a>
<button type="button" id="search" hidden>Search <kbd>/</kbd></button>
</header>
<div class="columns">
${navigation(page, contents, at)}
<main id="content">
<article>
${html}</article>
${neighbors(page, contents, at)}
</main>
${onThisPage(headings)}
</div>
</body>
</html>
`;
}

type At = (route: string) => string;

function navigation(page: Page, { groups }: Contents, at: At): string {
  const entry = (each: Page) => {
    const current = each.route === page.route ? ' aria-current="page"' : '';
    return `<li><a href="${at(each.route)}"${current}>${escapeHtml(each.name)}</a></li>`;
  };
  const shown = groups.map(({ name, lists }) => {
    const isOpen = lists.some(({ pages }) => pages.some(({ route }) => route === page.route));
    const inside = lists.map(
      ({ kind, pages }, i) =>
        `${i > 0 ? `<p>${escapeHtml(kind)}</p>` : ''}<ul>${pages.map(entry).join('')}</ul>`,
    );
    return `<details${isOpen ? ' open' : ''}><summary>${escapeHtml(name)}</summary>${inside.join('')}</details>`;
  });
  return `<nav class="pages" aria-label="Documentation">
<details class="fold"><summary>All pages</summary>
${shown.join('\n')}
</details>
</nav>`;
}

/** The pages before and after this one, in the order of the contents. */
function neighbors(page: Page, { pages }: Contents, at: At): string {
  const place = pages.findIndex(({ route }) => route === page.route);
  const link = (other: Page | undefined, rel: string, word: string) =>
    other ? `<a rel="${rel}" href="${at(other.route)}">${word}: ${escapeHtml(other.name)}</a>` : '';
  return `<nav class="neighbors" aria-label="Previous and next page">
${link(pages[place - 1], 'prev', 'Previous')}
${link(pages[place + 1], 'next', 'Next')}
</nav>`;
}

function onThisPage(headings: readonly Heading[]): string {
  const shown = headings.filter(({ depth }) => depth < 4);
  if (shown.length < 2) return '';
  const entries = shown.map(
    ({ id, depth, text }) => `<li class="level-${depth}"><a href="#${id}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="here" aria-label="On this page">
<details class="fold"><summary>On this page</summary>
<ul>${entries.join('')}</ul>
</details>
</nav>`;
}
