import { posix } from 'node:path';
import { type Contents, OPENAPI } from './contents.ts';

/** A page that has links. */
type From = { readonly file: string; readonly route: string };

/**
 * The address of what a page links to, relative, so that it holds behind any prefix. Undefined if this site does not have it. `nameOf` says
 * where the form that the reader wants of a page is, below `/docs/`.
 */
export function addressOf(
  link: string,
  from: From,
  { routes }: Pick<Contents, 'routes'>,
  nameOf: (route: string) => string = (route) => route,
): string | undefined {
  if (/^https?:\/\//.test(link) || link.startsWith('#')) return link;
  const [path = '', hash] = link.split('#');
  const file = posix.join(posix.dirname(from.file), path);
  const picture = PICTURE.exec(file)?.[1];
  if (picture !== undefined) return relative(from.route, picture);
  const route = routes.get(file);
  if (route === undefined) return undefined;
  // The page of the API has other anchors.
  const end = hash === undefined || file === OPENAPI ? '' : `#${hash}`;
  return relative(from.route, nameOf(route)) + end;
}

/** Pictures that pages show. */
const PICTURE = /^docs\/(images\/[\w-]+\.png|performance\.svg)$/;

/** The way from one address below `/docs/` to another. */
export function relative(from: string, to: string): string {
  const way = posix.relative(posix.dirname(from), to);
  if (to !== '') return way;
  return way === '' ? './' : `${way}/`;
}

/** Rewrites the links of a page outside of its code. A link without an address becomes its label, and a picture goes. */
export const withLinks = (markdown: string, rewrite: (link: string) => string | undefined): string =>
  markdown.replace(CODE_OR_LINK, (whole, picture: string | undefined, label: string, link: string) => {
    if (picture === undefined) return whole;
    const address = rewrite(link);
    if (address !== undefined) return `${picture}[${label}](${address})`;
    return picture === '!' ? '' : label;
  });

const CODE_OR_LINK =
  /^ *```[\s\S]*?^ *```|`[^`\n]*`|(!?)\[((?:`[^`\n]*`|[^[\]`]|\[[^\]]*\])*)\]\(([^)\s]+)(?: "[^"]*")?\)/gm;
