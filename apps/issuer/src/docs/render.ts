import type { Marked, RendererObject, Token, Tokens } from 'marked';
import { isTabs, languageOf, renderTabs } from './tabs.ts';

export type Heading = { readonly id: string; readonly depth: number; readonly text: string };

/** The parts of a page that were read from its Markdown. */
export type Rendered = {
  readonly title: string;
  readonly html: string;
  /** The headings below the title. */
  readonly headings: readonly Heading[];
  readonly description: string;
};

/** The text between two headings. */
export type Section = { readonly heading: Heading; readonly text: string };

type Links = {
  readonly address: (link: string) => string | undefined;
  /** The size of a picture in pixels, by its address. Its place is kept while it loads. */
  readonly size: (address: string) => { readonly width: number; readonly height: number } | undefined;
};

/** Loaded with the first page: a process that shows no page does not have it. */
let library: Promise<typeof import('marked')> | undefined;
const load = () => {
  library ??= import('marked');
  return library;
};

/** Renders a page. HTML in it is shown as text, and its comments are left out. */
export async function renderPage(markdown: string, links: Links): Promise<Rendered> {
  const { Marked } = await load();
  const headings: Heading[] = [];
  const marked = new Marked({ renderer: rendererOf(headingIds(), headings, links) });
  const tokens = marked.lexer(markdown);
  const first = tokens.find(({ type }) => type === 'paragraph');
  const html = piecesOf(tokens).map((piece) => renderPiece(marked, piece));
  return {
    title: headings[0]?.text ?? '',
    html: html.join(''),
    headings: headings.slice(1),
    description: first ? plainText(first).replace(/\s+/g, ' ').slice(0, 200) : '',
  };
}

/** The sections of a page as plain text, for the search. Code is at the end, so that an excerpt shows sentences where it can. */
export async function sectionsOf(markdown: string): Promise<Section[]> {
  const { Marked } = await load();
  const idOf = headingIds();
  const sections: { heading: Heading; prose: string; code: string }[] = [];
  for (const token of new Marked().lexer(markdown)) {
    if (token.type === 'heading') {
      const text = plainText(token);
      sections.push({
        heading: { id: idOf(text), depth: (token as Tokens.Heading).depth, text },
        prose: '',
        code: '',
      });
    } else {
      const last = sections.at(-1);
      if (last) last[token.type === 'code' ? 'code' : 'prose'] += `${plainText(token)}\n`;
    }
  }
  return sections.map(({ heading, prose, code }) => ({
    heading,
    text: `${prose}${code}`.replace(/\s+/g, ' ').trim(),
  }));
}

const renderPiece = (marked: Marked, piece: readonly Token[]): string =>
  isTabs(piece)
    ? renderTabs(piece.map((each) => ({ ...languageOf(each), html: marked.parser([each]) })))
    : marked.parser([...piece]);

/** Programs of one request that follow each other make one piece, and every other token is its own. */
function piecesOf(tokens: readonly Token[]): Token[][] {
  const pieces: Token[][] = [];
  for (const token of tokens.filter(({ type }) => type !== 'space')) {
    const last = pieces.at(-1);
    if (last && isTabs([...last, token])) last.push(token);
    else pieces.push([token]);
  }
  return pieces;
}

const rendererOf = (idOf: (text: string) => string, headings: Heading[], links: Links): RendererObject => ({
  heading({ tokens, depth }) {
    const text = tokens.map(plainText).join('');
    const id = idOf(text);
    headings.push({ id, depth, text });
    const inner = this.parser.parseInline(tokens);
    const isLink = depth > 1 && !tokens.some(({ type }) => type === 'link');
    return `<h${depth} id="${id}">${isLink ? `<a href="#${id}">${inner}</a>` : inner}</h${depth}>\n`;
  },
  html: ({ text }) => (/^\s*<!--[\s\S]*?-->\s*$/.test(text) ? '' : escapeHtml(text)),
  link({ href, tokens }) {
    const inner = this.parser.parseInline(tokens);
    const address = links.address(href);
    return address === undefined ? inner : `<a href="${escapeHtml(address)}">${inner}</a>`;
  },
  image({ href, text }) {
    const address = links.address(href);
    if (address === undefined) return escapeHtml(text);
    const size = links.size(address);
    const place = size ? ` width="${size.width}" height="${size.height}"` : '';
    return `<img src="${escapeHtml(address)}" alt="${escapeHtml(text)}"${place} loading="lazy">`;
  },
  code: ({ text }) => `<pre><code>${escapeHtml(text)}\n</code></pre>\n`,
  table(token) {
    const row = (cells: readonly Tokens.TableCell[], tag: string) =>
      `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
    const head = row(token.header, 'th');
    return `<div class="wide"><table><thead>${head}</thead><tbody>${token.rows.map((cells) => row(cells, 'td')).join('\n')}</tbody></table></div>\n`;
  },
});

/** The ids of the headings of one page, as GitHub makes them. */
function headingIds(): (text: string) => string {
  const seen = new Map<string, number>();
  return (text) => {
    const id = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    const times = seen.get(id) ?? 0;
    seen.set(id, times + 1);
    return times === 0 ? id : `${id}-${times}`;
  };
}

/** The text of a token as a reader sees it. */
function plainText(token: Token): string {
  if (token.type === 'html') return '';
  if (token.type === 'br') return ' ';
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table;
    return [header, ...rows].map((cells) => cells.map((cell) => plainCell(cell)).join(' ')).join('\n');
  }
  if (token.type === 'list') return (token as Tokens.List).items.map(plainText).join('\n');
  const { tokens, text = '' } = token as { tokens?: Token[]; text?: string };
  return tokens ? tokens.map(plainText).join(token.type === 'list_item' ? '\n' : '') : text;
}

const plainCell = ({ tokens }: Tokens.TableCell): string => tokens.map(plainText).join('');

export const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, (each) => ESCAPED[each] ?? each);

const ESCAPED: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
