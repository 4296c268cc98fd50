import { expect, test } from 'vitest';
import { addressOf, relative, withLinks } from '../src/docs/links.ts';
import { renderPage, sectionsOf } from '../src/docs/render.ts';

const from = { file: 'docs/guides/a.md', route: 'guides/a' };
const routes = new Map([
  ['docs/README.md', ''],
  ['docs/guides/a.md', 'guides/a'],
  ['docs/reference/b.md', 'reference/b'],
  ['README.md', 'quickstart'],
  ['docs/reference/openapi.json', 'api'],
]);
const address = (link: string) => addressOf(link, from, { routes });
const render = (markdown: string) => renderPage(markdown, { address, size: () => undefined });

test.each([
  ['../reference/b.md', '../reference/b'],
  ['../reference/b.md#part', '../reference/b#part'],
  ['a.md#x', 'a#x'],
  ['#x', '#x'],
  ['../README.md', '../'],
  ['../../README.md#try-it', '../quickstart#try-it'],
  ['../reference/openapi.json', '../api'],
  ['../images/c.png', '../images/c.png'],
  ['https://example.com/a.md', 'https://example.com/a.md'],
  ['../../test/none.test.ts', undefined],
  ['none.md', undefined],
  ['javascript:alert(1)', undefined],
  ['//example.com', undefined],
  ['data:text/html,x', undefined],
])('a link to %s leads to %s', (link, expected) => {
  expect(address(link)).toBe(expected);
});

test('the relative path between two pages is right from the contents, from a folder and from a subfolder', () => {
  expect(relative('', 'guides/a')).toBe('guides/a');
  expect(relative('', '')).toBe('./');
  expect(relative('quickstart', '')).toBe('./');
  expect(relative('guides/clients/x', '')).toBe('../../');
  expect(relative('guides/clients/x', 'guides/a')).toBe('../a');
});

test('HTML in a page is shown as text, a comment is omitted, and a javascript: link has no address', async () => {
  const { html } = await render(
    '# T\n\n<!-- made -->\n\n<script>alert(1)</script>\n\na <img src=x onerror=alert(1)> <b>b</b>\n\n[c](javascript:alert(1)) ![d](x:y) `<i>`\n\n```html\n<u>\n```\n\n| <s> |\n| --- |\n| <script> |\n',
  );
  expect(html).not.toMatch(/<(script|img|b|i|u|s)\b|javascript:|made/);
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  expect(html).toContain('<p>c d <code>&lt;i&gt;</code></p>');
});

test('text of a page cannot end an attribute', async () => {
  const { html } = await render('# T\n\n[a](https://example.com/"x) ![a"b](../images/c.png)\n');
  expect(html).toContain('href="https://example.com/&quot;x"');
  expect(html).toContain('alt="a&quot;b"');
});

test("headings have GitHub's anchors, and link to themselves", async () => {
  const { html, headings, title } = await render('# A `b`\n\n## C: d, e\n\n### C: d, e\n\n## [F](a.md)\n');
  expect(title).toBe('A b');
  expect(headings).toEqual([
    { id: 'c-d-e', depth: 2, text: 'C: d, e' },
    { id: 'c-d-e-1', depth: 3, text: 'C: d, e' },
    { id: 'f', depth: 2, text: 'F' },
  ]);
  expect(html).toContain('<h2 id="c-d-e"><a href="#c-d-e">C: d, e</a></h2>');
  expect(html).toContain('<h2 id="f"><a href="a">F</a></h2>');
});

const fence = (language: string, code: string) => `\`\`\`${language}\n${code}\n\`\`\`\n`;

test('consecutive code blocks in different languages become tabs, and others do not', async () => {
  const three =
    fence('bash', 'curl x') + fence('python', 'print(1)') + fence('ts', 'run()') + fence('json', '{}');
  const { html } = await render(`# T\n\n${three}`);
  expect(Array.from(html.matchAll(/<figcaption>(\w+)/g), ([, name]) => name)).toEqual([
    'curl',
    'Python',
    'TypeScript',
  ]);
  expect(html).toMatch(/<div class="tabs">.*<\/div>\n<pre><code>\{\}/s);
  for (const other of [
    fence('bash', 'a') + fence('bash', 'b'),
    `${fence('bash', 'a')}\nb\n\n${fence('ts', 'c')}`,
    fence('json', '{}') + fence('ts', 'c'),
  ])
    expect((await render(`# T\n\n${other}`)).html).not.toContain('tabs');
});

test('a wide table scrolls in its own box', async () => {
  const { html } = await render('# T\n\n| a | b |\n| - | - |\n| `c` | [d](a.md) |\n');
  expect(html).toContain('<div class="wide"><table><thead><tr><th>a</th><th>b</th></tr></thead>');
  expect(html).toContain('<tr><td><code>c</code></td><td><a href="a">d</a></td></tr>');
});

test('the text of a section is plain, with its code at the end', async () => {
  const page = `# T\n\nSee [a *b*](a.md).\n\n${fence('sh', 'ls -l')}\n- c\n- \`d\`\n\n## U & V\n\n| e | f |\n| - | - |\n| g | h |\n`;
  expect(await sectionsOf(page)).toEqual([
    { heading: { id: 't', depth: 1, text: 'T' }, text: 'See a b. c d ls -l' },
    { heading: { id: 'u--v', depth: 2, text: 'U & V' }, text: 'e f g h' },
  ]);
});

test('links in Markdown are rewritten, except in code', () => {
  const page =
    'A [`b`](../reference/b.md) and [c\nd](none.md), `[e](a.md)`, ![f](none.png).\n\n```\n[g](a.md)\n```\n';
  expect(withLinks(page, address)).toBe(
    'A [`b`](../reference/b) and c\nd, `[e](a.md)`, .\n\n```\n[g](a.md)\n```\n',
  );
});
