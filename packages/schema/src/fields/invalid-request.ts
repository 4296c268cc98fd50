import * as z from 'zod';
import type { FieldProblem, Refusal } from '../errors.ts';

/**
 * Turns the issues of Zod into one refusal, which names a field as the caller wrote it. It names an unknown field
 * before others: a mistyped name is also the reason why another field is missing. Further problems are listed.
 */
export function invalidRequest(error: z.ZodError): Refusal {
  const isUnknown = ({ code }: z.core.$ZodIssue) => code === 'unrecognized_keys';
  const inOrder = [...error.issues.filter(isUnknown), ...error.issues.filter((issue) => !isUnknown(issue))];
  const problems = inOrder.slice(0, PROBLEMS_MAX).flatMap(problemsOf).slice(0, PROBLEMS_MAX);
  const [first] = problems;
  if (first === undefined) return { code: 'invalid_request' };
  const { param, message } = first;
  const details = problems.length > 1 && { details: { problems } };
  return { code: 'invalid_request', ...(param !== null && { param }), message, ...details };
}

/** A body of 50,000 wrong fields gets a short answer. */
const PROBLEMS_MAX = 20;

function problemsOf(issue: z.core.$ZodIssue): FieldProblem[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.slice(0, PROBLEMS_MAX).map((key, i) => {
      // Without this bound, a name as long as a body would make the answer as long.
      const param = fieldName([...issue.path, (key || '""').slice(0, FIELD_NAME_MAX)]);
      // Zod's own message quotes the whole name. That of a schema is about the first.
      const problem = i === 0 && issue.message.startsWith(NOT_KNOWN) ? issue.message : NOT_KNOWN;
      return { param, message: `${param}: ${problem}.` };
    });
  }
  const param = fieldName(issue.path).slice(0, FIELD_PATH_MAX);
  const missing =
    issue.code === 'invalid_type' && issue.input === undefined && issue.message.includes('undefined');
  const message = missing ? 'this field is required.' : `${issue.message}.`;
  return [
    param === ''
      ? { param: null, message: `The body: ${message}` }
      : { param, message: `${param}: ${message}` },
  ];
}

/** Names that lead to a number in `metadata` may be long. */
const FIELD_PATH_MAX = 1_024;
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
  const shape = object instanceof z.ZodObject ? (object.shape as Shape) : {};
  const given = keys[0] ?? '';
  const hint =
    meantBy(given, Object.keys(shape)) ||
    meant(
      Object.keys(shape).find((name) => fieldsIn(shape[name]).includes(given)),
      given,
    );
  return NOT_KNOWN + hint;
}

type Shape = Readonly<Record<string, z.ZodType>>;

/** The fields of an object in a field, which may be optional. */
function fieldsIn(schema: unknown): readonly string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return fieldsIn(schema.unwrap());
  return schema instanceof z.ZodPipe ? fieldsIn(schema.in) : [];
}

const meant = (outer: string | undefined, inner: string): string =>
  outer === undefined ? '' : ` (did you mean ${outer}.${inner}?)`;

/** The end of a message about a name that is not known: the known one that is nearest to it, or nothing. */
export function meantBy(given: string, known: readonly string[]): string {
  const found =
    known.find((name) => isNear(name, given)) ?? known.find((name) => name.split('_').includes(given));
  return found === undefined ? '' : ` (did you mean ${found}?)`;
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
