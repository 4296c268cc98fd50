import { type Contents, readPage } from './contents.ts';
import { sectionsOf } from './render.ts';

/** All sections and their pages, for the script that searches them. */
export type SearchIndex = {
  readonly pages: readonly (readonly [route: string, name: string])[];
  readonly sections: readonly (readonly [page: number, id: string, heading: string, text: string])[];
};

/** Pages are read one after the other, so that other requests run between them. */
export async function makeSearchIndex({ pages }: Contents): Promise<SearchIndex> {
  // The contents only name the other pages.
  const searched = pages.slice(1);
  const sections: SearchIndex['sections'][number][] = [];
  for (const [i, page] of searched.entries()) {
    for (const { heading, text } of await sectionsOf(await readPage(page)))
      sections.push([i, heading.depth === 1 ? '' : heading.id, heading.text, text]);
  }
  return { pages: searched.map(({ route, name }) => [route, name]), sections };
}
