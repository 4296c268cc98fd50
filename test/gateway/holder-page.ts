const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
};

/** The text that a reader of a page sees. */
export const textIn = (html: string): string =>
  html
    .replace(/<style>[\s\S]*<\/style>/, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => ENTITIES[entity] ?? '');

/** The programs on a page, in its order. */
export const codesIn = (html: string): string[] =>
  [...html.matchAll(/<textarea[^>]*>([\s\S]*?)<\/textarea>/g)].map(([, code = '']) => textIn(code));

/** The names of these programs. */
export const codeNamesIn = (html: string): string[] =>
  [...html.matchAll(/<textarea[^>]* aria-label="([^"]*)"/g)].map(([, name = '']) => textIn(name));
