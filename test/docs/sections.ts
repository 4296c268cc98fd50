/** One `##` section of a page, and what its code fences hold, by language. */
export type Section = { readonly title: string; readonly fences: ReadonlyMap<string, string> };

/** The sections of a Markdown page that have code fences. */
export function sectionsOf(markdown: string): readonly Section[] {
  return markdown
    .split(/^## /m)
    .slice(1)
    .map((text) => ({ title: text.split('\n', 1)[0] ?? '', fences: fencesOf(text) }))
    .filter(({ fences }) => fences.size > 0);
}

function fencesOf(text: string): ReadonlyMap<string, string> {
  const fences = text.matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return new Map(Array.from(fences, ([, language = '', code = '']) => [language, code]));
}
