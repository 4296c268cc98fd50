import type { Authorization } from './auth/authorize.ts';

/** Shorter ones are found everywhere by chance, and keep nothing secret. */
const LEAST_CHARS = 6;

/** A credential as a server may quote it: as it was sent, and decoded. */
export function secretsIn({ header, query }: Authorization): readonly string[] {
  const inQuery = query?.slice(query.indexOf('=') + 1);
  const forms = [
    ...(header ? [header[1].replace(/^Bearer /, '')] : []),
    ...(inQuery === undefined ? [] : [inQuery, decodeURIComponent(inQuery)]),
  ];
  return forms.filter((each) => each.length >= LEAST_CHARS);
}

export const hideSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, each) => rest.replaceAll(each, '***'), text);
