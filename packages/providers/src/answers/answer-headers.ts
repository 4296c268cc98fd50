import * as FACTS from '../facts/answer-headers.ts';
import type { Provider } from '../provider.ts';
import { actedOnBy } from './acted-on.ts';

/** Whether a header of an upstream's answer (its name in lower case) reaches the holder. */
export type AnswerHeaders = (name: string) => boolean;

/** Names of `facts/answer-headers.ts`. */
const OF_ALL = Object.values(FACTS).flatMap(({ names }) => names);

/** The headers that pass from every upstream. */
export const ANSWER_HEADERS_OF_ALL: AnswerHeaders = compile(OF_ALL);

const compiled = new WeakMap<Provider, AnswerHeaders>();

/** The headers that pass from a provider: those of every upstream, and its own. */
export function answerHeadersOf(provider: Provider): AnswerHeaders {
  const known = compiled.get(provider);
  if (known) return known;
  const { answerHeaders = [] } = provider;
  const own = answerHeaders.length === 0 ? ANSWER_HEADERS_OF_ALL : compile([...OF_ALL, ...answerHeaders]);
  compiled.set(provider, own);
  return own;
}

function compile(entries: readonly string[]): AnswerHeaders {
  const names = new Set(entries.filter((entry) => !entry.endsWith('*')));
  const starts = entries.filter((entry) => entry.endsWith('*')).map((entry) => entry.slice(0, -1));
  const begins = new RegExp(`^(?:${starts.join('|')})`);
  return (name) => names.has(name) || begins.test(name);
}

/** A name of RFC 9110 §5.6.2 in letters, digits, `-` and `_`; at the end `*`, after at least two letters and a `-`. */
const ENTRY = /^(?:[a-z0-9][a-z0-9_-]{0,63}|[a-z0-9]{2,32}-(?:[a-z0-9-]{0,31}-)?\*|x-[a-z0-9-]{1,60}-\*)$/;

/** Why an entry cannot be on an allow-list. Undefined: it can. */
export function answerHeaderProblem(entry: string): string | undefined {
  if (!ENTRY.test(entry))
    return 'expected the name of a header in lower case, or the beginning of names up to a hyphen and *, as in "acme-*"';
  const never = actedOnBy(entry);
  if (never === undefined) return undefined;
  return `"${entry}" would let "${never}" pass, on which browsers or proxies act`;
}
