/** A code fence of a Markdown page. */
export type Fence = { readonly language: string; readonly code: string };

/** The code fences of a page, in order. */
export const fencesIn = (markdown: string): readonly Fence[] =>
  Array.from(markdown.matchAll(/^```(\w*)\n(.*?)^```$/gms), ([, language = '', code = '']) => ({
    language,
    code,
  }));

/** The fences of one language, by their code. */
export const codeIn = (markdown: string, language: string): readonly string[] =>
  fencesIn(markdown)
    .filter((fence) => fence.language === language)
    .map(({ code }) => code);

/** One `##` section of a page, and its code fences by language. */
export type Section = { readonly title: string; readonly fences: ReadonlyMap<string, string> };

/** The sections of a page that have code fences. */
export function sectionsOf(markdown: string): readonly Section[] {
  return markdown
    .split(/^## /m)
    .slice(1)
    .map((text) => ({
      title: text.split('\n', 1)[0] ?? '',
      fences: new Map(fencesIn(text).map(({ language, code }) => [language, code])),
    }))
    .filter(({ fences }) => fences.size > 0);
}
