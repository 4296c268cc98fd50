import type { Token, Tokens } from 'marked';

/** The languages of programs that do the same. Their order is that of the tabs. */
const TABS: Readonly<Record<string, string>> = {
  bash: 'curl',
  python: 'Python',
  ts: 'TypeScript',
};

export type Tab = { readonly language: string; readonly html: string };

const nameIn = (token: Token): string | undefined =>
  token.type === 'code' ? TABS[(token as Tokens.Code).lang ?? ''] : undefined;

/** Whether these are programs in different languages, which follow each other without a word between them. */
export function isTabs(tokens: readonly Token[]): boolean {
  const names = tokens.map(nameIn);
  return names.length > 1 && !names.includes(undefined) && new Set(names).size === names.length;
}

export const languageOf = (token: Token) => ({ language: nameIn(token) ?? '' });

/** Without JavaScript all are shown, one below the other. The script of the page makes tabs of them. */
export const renderTabs = (tabs: readonly Tab[]): string =>
  `<div class="tabs">${tabs
    .map(({ language, html }) => `<figure><figcaption>${language}</figcaption>${html}</figure>`)
    .join('')}</div>\n`;
