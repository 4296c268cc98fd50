import { z } from 'zod';
import type { Refusal } from '../errors.ts';

/**
 * Turns the issues of Zod into one refusal, which names a field as the caller wrote it. It names the first unknown field
 * before others: a mistyped name is also the reason why another field is missing.
 */
export function invalidRequest(error: z.ZodError): Refusal {
  const issue = error.issues.find(({ code }) => code === 'unrecognized_keys') ?? error.issues[0];
  if (issue === undefined) return { code: 'invalid_request' };
  if (issue.code === 'unrecognized_keys') {
    // Without this bound, a name as long as a body would make the answer as long.
    const param = fieldName([...issue.path, (issue.keys[0] || '""').slice(0, FIELD_NAME_MAX)]);
    // Zod's own message quotes the whole name.
    const problem = issue.message.startsWith(NOT_KNOWN) ? issue.message : NOT_KNOWN;
    return { code: 'invalid_request', param, message: `${param}: ${problem}.` };
  }
  const param = fieldName(issue.path);
  const missing =
    issue.code === 'invalid_type' && issue.input === undefined && issue.message.includes('undefined');
  const message = missing ? 'this field is required.' : `${issue.message}.`;
  return param === ''
    ? { code: 'invalid_request', message: `The body: ${message}` }
    : { code: 'invalid_request', param, message: `${param}: ${message}` };
}

const FIELD_NAME_MAX = 128;

/** `['servers', 0, 'auth_config']` → `servers[0].auth_config`. */
function fieldName(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (name, step) =>
      typeof step === 'number' ? `${name}[${step}]` : name === '' ? String(step) : `${name}.${String(step)}`,
    '',
  );
}

/** The error option of a field. One sentence covers a wrong type and a wrong value, so that one correction is enough. */
export const expected = (what: string) => ({
  error: ({ input, code, keys, inst }: Found) => {
    if (code === 'unrecognized_keys') return unknownField(keys ?? [], inst);
    return input === undefined ? 'this field is required' : `expected ${what}`;
  },
});

/** The parts of a Zod issue that matter here. `inst` is the schema. */
type Found = {
  readonly input?: unknown;
  readonly code?: string;
  readonly keys?: readonly string[];
  readonly inst?: unknown;
};

/** The error option of a query. */
export const QUERY = expected('a query');

const NOT_KNOWN = 'this field is not known';

/** The message for an unknown field, with the known name that is nearest to it. */
function unknownField(keys: readonly string[], object: unknown): string {
  const names = object instanceof z.ZodObject ? Object.keys(object.shape) : [];
  const meant = names.find((name) => isNear(name, keys[0] ?? ''));
  return meant === undefined ? NOT_KNOWN : `${NOT_KNOWN} (did you mean ${meant}?)`;
}

/** Whether two names differ in one place by at most two characters: `max_use`, `maxUses`, `tokn`, `scpoes`. */
function isNear(a: string, b: string): boolean {
  const [most, least] = [Math.max(a.length, b.length), Math.min(a.length, b.length)];
  let before = 0;
  while (before < least && a[before] === b[before]) before++;
  let behind = 0;
  while (behind < least - before && a.at(-1 - behind) === b.at(-1 - behind)) behind++;
  return before + behind >= 2 && most - before - behind <= 2;
}

/** A request as Node has read it. */
type NodeRequest = { readonly httpVersion: string; readonly rawHeaders: readonly string[] };

/**
 * Says why a proxy in front of a service may have read the request line or the Host of a request differently.
 * @returns undefined when all readers agree
 */
export function ambiguousRequest({ httpVersion, rawHeaders }: NodeRequest): string | undefined {
  // Node reads any version, and the services speak only these (RFC 9110 §15.6.6).
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return 'HTTP: only HTTP/1.1 and HTTP/1.0 are supported.';
  // RFC 9112 §3.2: a request with more than one Host is refused, because a proxy may have read the other one.
  const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.length === 4 && /^host$/i.test(name));
  return hosts.length > 1 ? 'Host: the request has more than one Host header. Send one.' : undefined;
}
