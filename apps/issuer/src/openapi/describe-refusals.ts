import { ERRORS, type ErrorCode, errorEnvelope } from '@presign/schema';
import { isRepeatable, type Shape } from '../middleware/route.ts';
import { type JsonSchema, toJsonSchema } from './json-schema.ts';

/** Every code that a route may return: its own codes, and those of all routes of its kind. */
export function refusalsOf(shape: Shape): ErrorCode[] {
  const { scope, method, params, body, errors = [] } = shape;
  const codes: ErrorCode[] = ['internal_error', ...errors];
  // Any request may have two Host headers, or another version of HTTP.
  codes.push('invalid_request');
  if (body) codes.push('invalid_json', 'unsupported_media_type');
  if (isRepeatable(shape)) codes.push('idempotency_conflict');
  if (params) codes.push('not_found');
  if (scope) codes.push('unauthenticated', 'account_suspended', 'rate_limited', 'database_unavailable');
  if (scope && scope !== 'any') codes.push('forbidden');
  if (scope && method !== 'get') codes.push('body_too_large');
  const inTable = Object.keys(ERRORS) as ErrorCode[];
  return inTable.filter((code) => codes.includes(code));
}

/** An OpenAPI Response Object. */
export type Response = {
  readonly description: string;
  readonly headers: Readonly<Record<string, Ref>>;
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;
  readonly links?: Readonly<Record<string, object>>;
  /** The codes of a refusal. It uses the common schema of refusals, because a narrower one would be another type in a generated client. */
  readonly 'x-codes'?: readonly ErrorCode[];
};
type Ref = { readonly $ref: string };

/** The refusals of these codes, one for each status, each named after its codes. */
export function describeRefusals(codes: readonly ErrorCode[]) {
  const statuses = [...new Set(codes.map((code) => ERRORS[code][0]))];
  return statuses.map((status) => {
    const some = codes.filter((code) => ERRORS[code][0] === status);
    // Every 403 refusal includes this code, so names omit it.
    const named = some.length > 1 ? some.filter((code) => code !== 'account_suspended') : some;
    return { status, name: named.join('-'), response: describeRefusal(status, some) };
  });
}

function describeRefusal(status: number, codes: ErrorCode[]): Response {
  const description = codes.map((code) => `\`${code}\`: ${ERRORS[code][2]}`).join('\n\n');
  return {
    description,
    headers: headersOf(status),
    content: { 'application/json': { schema: toJsonSchema(errorEnvelope, 'output') } },
    'x-codes': codes,
  };
}

/** Headers of answers. All answers have `x-request-id`. */
export const HEADERS = {
  'x-request-id': {
    description: 'Id of the request in the log.',
    schema: { type: 'string', format: 'uuid' },
  },
  'retry-after': {
    description: 'Seconds to wait before the same request may succeed.',
    schema: { type: 'integer', minimum: 0 },
  },
  ratelimit: {
    description:
      'Requests that this API key has left (`r`), and seconds until the full limit is available again (`t`).',
    schema: { type: 'string', examples: ['"presign";r=59999;t=1'] },
  },
  'ratelimit-policy': {
    description: 'Limit of this API key: requests (`q`) in a window of seconds (`w`).',
    schema: { type: 'string', examples: ['"presign";q=60000;w=60'] },
  },
  etag: {
    description: 'The revision of the answer, for `If-Match`.',
    schema: { type: 'string', examples: ['"3"'] },
  },
  'www-authenticate': { description: 'The expected authentication scheme.', schema: { type: 'string' } },
} as const;

type HeaderName = keyof typeof HEADERS;
const RATE_LIMIT: readonly HeaderName[] = ['ratelimit', 'ratelimit-policy'];

const MORE: Readonly<Record<number, readonly HeaderName[]>> = {
  401: ['www-authenticate'],
  409: ['retry-after'],
  429: ['retry-after', ...RATE_LIMIT],
  503: ['retry-after'],
};

/** The headers that an answer of a status may have. `counted`: the requests of an API key are limited. */
export function headersOf(status: number, counted = false): Record<string, Ref> {
  const names = ['x-request-id', ...(MORE[status] ?? []), ...(counted ? RATE_LIMIT : [])];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
