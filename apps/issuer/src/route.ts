import { type ErrorCode, invalidRequest, RefusedError } from '@presign/schema';
import type { Context, Hono } from 'hono';
import type { z } from 'zod';
import type { ApiKey, IssuerDeps, IssuerEnv, Scope } from './deps.ts';
import { requireScope } from './middleware/authenticate.ts';
import { readRequest } from './read-json.ts';

/** What a route takes and answers, and who may ask: the API's document is made of these. */
export type Shape = {
  readonly method: 'get' | 'post' | 'delete';
  /** As OpenAPI writes it: `/v1/sessions/{id}`. */
  readonly path: string;
  readonly summary: string;
  /** What a caller should know beyond that. Markdown's `code` and empty lines only. */
  readonly description?: string;
  /** Undefined: it needs no API key. */
  readonly scope?: Scope;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** Undefined: 204, without a body. */
  readonly answer?: z.ZodType;
  readonly status?: 200 | 201;
  /** Its handler may answer `text/csv` instead. */
  readonly csv?: true;
  /** Besides those that every route may give. */
  readonly errors?: readonly ErrorCode[];
};

type Read<S> = S extends z.ZodType ? z.output<S> : undefined;

/** A request as its route gets it: read and judged. */
export type Given<S extends Shape> = {
  /** Undefined on a route without a scope. */
  readonly apiKey: S['scope'] extends Scope ? ApiKey : undefined;
  readonly params: Read<S['params']>;
  readonly query: Read<S['query']>;
  readonly body: Read<S['body']>;
  /** The body's bytes, and what they say before it is read. */
  readonly raw: { readonly bytes: Uint8Array; readonly value: unknown };
  readonly c: Context<IssuerEnv>;
};

/** What a route gives back: its answer as its schema has it, or a response of its own. */
type Told<S extends Shape> = Response | (S['answer'] extends z.ZodType ? z.output<S['answer']> : undefined);

export type Route = {
  readonly shape: Shape;
  readonly mount: (app: Hono<IssuerEnv>, deps: IssuerDeps) => void;
};

/** One route: its shape, and what makes its handler. Input is parsed here, once; a handler trusts it. */
export function route<const S extends Shape>(
  shape: S,
  handler: (deps: IssuerDeps) => (given: Given<S>) => Promise<Told<S>>,
): Route {
  return {
    shape,
    mount: (app, deps) => {
      const handle = handler(deps);
      const path = shape.path.replaceAll(/\{(\w+)\}/g, ':$1');
      app.on(shape.method.toUpperCase(), path, async (c) => {
        const told = await handle((await read(c, shape)) as Given<S>);
        if (told instanceof Response) return told;
        return told === undefined ? c.body(null, 204) : c.json(told, shape.status ?? 200);
      });
    },
  };
}

/** Longer than a body takes that is sent at once. */
const HELD_BACK_MS = 250;

async function read(c: Context<IssuerEnv>, shape: Shape): Promise<Given<Shape>> {
  const apiKey = c.get('apiKey');
  if (shape.scope) requireScope(apiKey, shape.scope);
  const params = shape.params?.safeParse(c.req.param());
  // What is no id names nothing.
  if (params?.success === false) throw new RefusedError({ code: 'not_found' });
  const query = shape.query?.safeParse(queryOf(c, shape.query));
  if (query?.success === false) throw new RefusedError(invalidRequest(query.error));
  const began = performance.now();
  const body = shape.body && (await readRequest(c, shape.body));
  // A body may be held back until long after its key was judged: a revoked key must not make another one.
  if (shape.scope && performance.now() - began > HELD_BACK_MS) await c.get('authenticateAgain')();
  return {
    ...{ apiKey: apiKey as never, params: params?.data as never, query: query?.data as never },
    body: body?.request as never,
    raw: { bytes: body?.bytes ?? new Uint8Array(), value: body?.value },
    c,
  };
}

/**
 * The query's parameters.
 * @throws RefusedError when one that is known stands twice: no reading of it is the right one
 */
function queryOf(c: Context, { shape }: z.ZodObject): Record<string, string> {
  const all = Object.entries(c.req.queries());
  const twice = all.find(([name, values]) => Object.hasOwn(shape, name) && values.length > 1)?.[0];
  if (twice === undefined) return Object.fromEntries(all.map(([name, values]) => [name, values[0] ?? '']));
  const message = `${twice}: this parameter stands twice.`;
  throw new RefusedError({ code: 'invalid_request', param: twice, message });
}
