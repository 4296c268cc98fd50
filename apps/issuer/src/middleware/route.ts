import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import {
  type ErrorCode,
  invalidRequest,
  type Pending,
  REQUEST_LIMITS,
  RefusedError,
  readJson,
  scanJson,
} from '@presign/schema';
import type { Context, Hono } from 'hono';
import type { z } from 'zod';
import { sendRevision } from '../answers/revision.ts';
import type { Actor, ApiKey, IssuerEnv, Scope } from '../identity/caller.ts';
import { requireScope } from '../identity/caller.ts';
import { whileStanding } from '../identity/standing.ts';
import { unlessLeft } from './caller-left.ts';
import { answerOnce, claimOnly, readIdempotencyKey, type Secret } from './idempotency.ts';
import type { RouteDeps } from './route-deps.ts';

/** The request and answer of a route, and the scope it needs. The OpenAPI document is generated from these. */
export type Shape = {
  readonly method: 'get' | 'post' | 'patch' | 'delete';
  /** As OpenAPI writes it: `/v1/sessions/{id}`. */
  readonly path: string;
  readonly summary: string;
  /** Details beyond the summary. Markdown is limited to `code` and empty lines. */
  readonly description?: string;
  /** `any`: every API key may use it. Undefined: the route needs no API key. */
  readonly scope?: Scope | 'any';
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Undefined: 204, without a body. */
  readonly answer?: z.ZodType;
  readonly status?: 200 | 201;
  /** Whether the handler may answer 202, which means that Redis does not have the change yet. */
  readonly pending?: true;
  /** The types of text that the handler may answer with instead. */
  readonly texts?: readonly ('text/csv' | 'application/x-ndjson')[];
  /** Whether the handler reads the `Idempotency-Key` of a POST. Otherwise it is read here. */
  readonly ownKey?: true;
  /** The secret that only this answer shows. It is created here, so that a retry can derive it again. */
  readonly secret?: Secret;
  /**
   * Refuses a key that has the scope of the route but lacks a permission that this body needs. It runs before an earlier answer is
   * repeated.
   */
  readonly judge?: (apiKey: ApiKey, body: unknown) => void;
  /** Operations on the things in the answer, by the field of their `id`. Clients and tests of the document follow them. */
  readonly links?: Readonly<Record<string, readonly string[]>>;
  /** Whether the answer has the revision as its `ETag`. A PATCH then reads `If-Match`. */
  readonly etag?: true;
  /** Error codes beyond those that every route may answer with. */
  readonly errors?: readonly ErrorCode[];
};

type Read<S> = S extends z.ZodType ? z.output<S> : undefined;

/** A parsed and validated request, as the handler gets it. */
export type Given<S extends Shape> = {
  /** Undefined on a route without a scope. */
  readonly apiKey: S['scope'] extends Scope | 'any' ? ApiKey : undefined;
  /** The API key as the actor of a change. */
  readonly by: S['scope'] extends Scope | 'any' ? Actor : undefined;
  readonly params: Read<S['params']>;
  readonly query: Read<S['query']>;
  readonly body: Read<S['body']>;
  /** The bytes of the body, and the JSON value before the schema parsed it. */
  readonly raw: { readonly bytes: Uint8Array; readonly value: unknown };
  /** A new secret, if the shape has one. */
  readonly secret: string;
  readonly c: Context<IssuerEnv>;
};

/** The result of a handler: a value of the answer's schema, or a complete response. */
type Answer<S extends Shape> =
  | Response
  | (S['answer'] extends z.ZodType ? z.output<S['answer']> : undefined)
  | (S['pending'] extends true ? Pending : never);

/** The answer while Redis lacks a change that Postgres has. */
export const PENDING: Pending = { status: 'pending' };

export type Route = {
  readonly shape: Shape;
  readonly mount: (app: Hono<IssuerEnv>, deps: RouteDeps) => void;
};

/** Makes a route from its shape and its handler. Input is parsed here, once; the handler trusts it. */
export function route<const S extends Shape>(
  shape: S,
  handler: (deps: RouteDeps) => (given: Given<S>) => Promise<Answer<S>>,
): Route {
  return {
    shape,
    mount: (app, deps) => {
      const handle = handler(deps);
      const path = shape.path.replaceAll(/\{(\w+)\}/g, ':$1');
      app.on(shape.method.toUpperCase(), path, async (c) => {
        const read = await readRequest(c, shape);
        const given = judged(c, shape, read) as Given<S>;
        const key = isRepeatable(shape) && !shape.ownKey ? readIdempotencyKey(c) : undefined;
        const asked = key && { ...repeatOf(c), key, body: given.raw.bytes };
        // A change must be committed before Redis gets it.
        if (asked && shape.pending) await claimOnly(deps, asked);
        const answer = await whileStanding(c, () => {
          const again = judged(c, shape, read) as Given<S>;
          return asked && !shape.pending
            ? answerOnce(deps, asked, shape.secret, (own, secret) => handler(own)({ ...again, secret }))
            : handle(again);
        });
        if (answer instanceof Response) return answer;
        if (answer === PENDING) return c.json(PENDING, 202);
        if (shape.etag && shape.status === 201) sendRevision(c, answer as { readonly revision: number });
        return answer === undefined ? c.body(null, 204) : c.json(answer, shape.status ?? 200);
      });
    },
  };
}

/** Whether a route reads an `Idempotency-Key`. */
export const isRepeatable = ({ method, scope }: Shape): boolean => method === 'post' && scope !== undefined;

/** The account and the address of a request. The same key at another address counts as a different key. */
const repeatOf = (c: Context<IssuerEnv>) => ({
  accountId: c.get('apiKey').accountId,
  route: `${c.req.method} ${c.req.path}`,
});

/** Longer than the arrival of a body that is sent without a pause. */
const HELD_BACK_MS = 250;
/** As many as `answerOnce` derives. */
const SECRET_BYTES = 32;

/**
 * A request with the present state of its API key.
 * @throws RefusedError `forbidden` for a key that may not make it
 */
function judged(c: Context<IssuerEnv>, shape: Shape, read: Unjudged): Given<Shape> {
  const apiKey = c.get('apiKey');
  if (shape.scope) requireScope(apiKey, shape.scope);
  if (apiKey) shape.judge?.(apiKey, read.body);
  const by = apiKey && {
    accountId: apiKey.accountId,
    id: apiKey.id,
    revision: apiKey.revision,
    requestId: c.get('requestId'),
    remoteAddress: c.env.incoming.socket.remoteAddress ?? null,
  };
  return { ...read, apiKey: apiKey as never, by: by as never };
}

type Unjudged = Omit<Given<Shape>, 'apiKey' | 'by'>;

async function readRequest(c: Context<IssuerEnv>, shape: Shape): Promise<Unjudged> {
  if (shape.scope) requireScope(c.get('apiKey'), shape.scope);
  const params = shape.params?.safeParse(c.req.param());
  // A malformed id cannot name anything, so it is answered like an unknown one.
  if (params?.success === false) throw new RefusedError({ code: 'not_found' });
  const query = shape.query?.safeParse(queryOf(c, shape.query));
  if (query?.success === false) throw new RefusedError(invalidRequest(query.error));
  const began = performance.now();
  const body = shape.body && (await readBody(c, shape.body));
  // A caller may delay the body after its API key was checked. A key that was revoked or lost the scope in the meantime must not create
  // another key.
  if (shape.scope && performance.now() - began > HELD_BACK_MS) await c.get('authenticateAgain')();
  return {
    params: params?.data as never,
    query: query?.data as never,
    body: body?.request as never,
    raw: { bytes: body?.bytes ?? new Uint8Array(), value: body?.value },
    secret: shape.secret?.write(randomBytes(SECRET_BYTES)) ?? '',
    c,
  };
}

/** Parameters with several values. Some clients send one parameter for each value, and others separate the values by commas. */
const LISTS: ReadonlySet<string> = new Set(['group_by']);

/** One value of a parameter that has keys: `metadata.team=red`, or `metadata[team]=red` as OpenAPI writes an object (`deepObject`). */
const KEYED = /^metadata(?:\.(?!__proto__$)([^.[\]]{1,64})|\[(?!__proto__\])([^[\]]{1,64})\])$/;

/**
 * The query's parameters.
 * @throws RefusedError when a known parameter appears twice, because either value could be the intended one
 */
function queryOf(c: Context, { shape }: z.ZodObject): Record<string, string | Record<string, string>> {
  const keyed = new Map<string, string>();
  const all = Object.entries(c.req.queries()).filter(([name, values]) => {
    const [, dotted, bracketed] = (Object.hasOwn(shape, 'metadata') && KEYED.exec(name)) || [];
    const key = dotted ?? bracketed;
    if (key === undefined) return true;
    if (values.length > 1 || keyed.has(key)) throw twiceOf(name);
    keyed.set(key, values[0] ?? '');
    return false;
  });
  const isTwice = ([name, values]: (typeof all)[number]) =>
    Object.hasOwn(shape, name) && !LISTS.has(name) && values.length > 1;
  const twice = all.find(isTwice)?.[0];
  if (twice !== undefined) throw twiceOf(twice);
  const read = Object.fromEntries(
    all.map(([name, values]) => [name, LISTS.has(name) ? values.join(',') : (values[0] ?? '')]),
  );
  return keyed.size > 0 ? { ...read, metadata: Object.fromEntries(keyed) } : read;
}

const twiceOf = (param: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: this parameter appears twice.` });

/**
 * Reads a JSON body and validates it.
 * @throws RefusedError as `readJsonBody`, and `invalid_request` that names the first wrong field
 */
async function readBody<S extends z.ZodType>(
  c: Context<IssuerEnv>,
  schema: S,
): Promise<{ bytes: Uint8Array; value: unknown; request: z.output<S> }> {
  const { bytes, value } = await readJsonBody(c);
  const read = schema.safeParse(value);
  if (!read.success) throw new RefusedError(invalidRequest(read.error));
  return { bytes, value, request: read.data };
}

/**
 * Reads a JSON body: its exact bytes and its value.
 * @throws RefusedError for another content type, a compressed, empty or too complex body, bad UTF-8, bad JSON, and a key
 *   that appears twice in one object, because parsers differ on which of the two they take (RFC 8259 §4)
 */
async function readJsonBody(c: Context<IssuerEnv>): Promise<{ bytes: Uint8Array; value: unknown }> {
  checkHeaders(c);
  const bytes = new Uint8Array(await unlessLeft(c, c.req.arrayBuffer()));
  if (bytes.length === 0) throw invalidJson('The body is empty: expected a JSON object.');
  const scan = scanJson(bytes, MODEST);
  if ('excess' in scan) throw tooComplex(scan.excess.member);
  const read = readJson(bytes, 'ignore');
  if (!read) throw isUtf8(bytes) ? new RefusedError({ code: 'invalid_json' }) : invalidJson(NOT_UTF8);
  const twice = scan.ambiguous;
  if (twice === undefined) return { bytes, value: read.value };
  const param = twice.slice(0, 128);
  const message = `${param}: this key appears twice in one object.`;
  throw new RefusedError({ code: 'invalid_request', param, message });
}

const MODEST = { depth: REQUEST_LIMITS.body_depth, parts: REQUEST_LIMITS.body_values };

function tooComplex(member: string | undefined): RefusedError {
  const bounds = `a body may nest ${MODEST.depth} levels deep and have ${MODEST.parts} values and names.`;
  if (member === undefined) return invalidJson(bounds.replace('a', 'A'));
  const param = member.slice(0, 128);
  return new RefusedError({ code: 'invalid_request', param, message: `${param}: ${bounds}` });
}

/** @throws RefusedError `unsupported_media_type` */
function checkHeaders(c: Context): void {
  const refuse = (param: string, problem: string) =>
    new RefusedError({ code: 'unsupported_media_type', param, message: `${param}: ${problem}.` });
  if (!/^application\/json\s*(;|$)/i.test(c.req.header('content-type') ?? ''))
    throw refuse('Content-Type', 'expected application/json');
  if (!/^(identity)?$/i.test(c.req.header('content-encoding') ?? ''))
    throw refuse('Content-Encoding', 'send the body uncompressed');
}

const NOT_UTF8 = 'The body is not valid UTF-8.';

const invalidJson = (message: string) => new RefusedError({ code: 'invalid_json', message });
