import { type Contents, markdownOf, type Page, readPage } from './contents.ts';
import { addressOf, withLinks } from './links.ts';

/** The Markdown of a page, whose links lead to the Markdown of the others. */
export const markdownPage = async (page: Page, contents: Contents): Promise<string> =>
  withLinks(await readPage(page), (link) => addressOf(link, page, contents, textOf));

/** `llms.txt` (https://llmstxt.org): the contents as a list of links. */
export function listPages({ groups }: Contents, docsUrl: string): string {
  const sections = groups.map(({ name, lists }) => {
    const lines = lists
      .flatMap(({ pages }) => pages)
      .map((page) => `- [${page.name}](${new URL(textOf(page.route), docsUrl)}): ${page.about}\n`);
    return `## ${name}\n\n${lines.join('')}`;
  });
  return `# Presign\n\n> ${SUMMARY}\n\n${sections.join('\n')}`;
}

const SUMMARY =
  'Presign issues signed, expiring, capped URLs for LLM APIs and MCP servers. A backend keeps the provider key and hands out a URL.';

/** `llms-full.txt`: all pages, one after the other, each below its address. */
export async function joinPages(contents: Contents, docsUrl: string): Promise<string> {
  const texts: string[] = [];
  for (const page of contents.pages.slice(1)) {
    const own = new URL(textOf(page.route), docsUrl);
    const text = withLinks(await readPage(page), (link) => {
      const address = addressOf(link, page, contents, textOf);
      return address === undefined ? undefined : new URL(address, own).href;
    });
    texts.push(`<!-- ${own} -->\n\n${text.trim()}\n`);
  }
  return texts.join('\n');
}

/** Where a page is as text, from `/docs/`. That of the API is the OpenAPI document. */
const textOf = (route: string): string => (route === 'api' ? '../openapi.json' : markdownOf(route));
