import { ROUTES } from '../routes.ts';
import { describeEvents, type Event } from './describe-events.ts';
import { describeOperation, type Operation } from './describe-operation.ts';
import { describeRefusals, HEADERS, type Response, refusalsOf } from './describe-refusals.ts';
import type { JsonSchema } from './json-schema.ts';

/** An OpenAPI document, as far as it is used here. */
export type OpenApi = {
  readonly openapi: '3.1.1';
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, Event>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly headers: typeof HEADERS;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
};

/** The API's document, made of the shapes that the routes read and answer by. */
export function describeApi(issuerUrl: string): OpenApi {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const [name, { shape }] of Object.entries(ROUTES)) {
    paths[shape.path] = { ...paths[shape.path], [shape.method]: describeOperation(name, shape) };
  }
  const refusals = Object.values(ROUTES).flatMap(({ shape }) => describeRefusals(refusalsOf(shape)));
  const responses = Object.fromEntries(refusals.map(({ name, response }) => [name, response]));
  const schemas: Record<string, JsonSchema> = {};
  const hoisted = hoist({ paths, responses, webhooks: describeEvents() }, schemas) as Hoisted;
  return {
    openapi: '3.1.1',
    info: { title: 'Presign', version: '0.1.0', description: DESCRIPTION },
    servers: [{ url: issuerUrl }],
    paths: hoisted.paths,
    webhooks: hoisted.webhooks,
    components: {
      schemas,
      responses: hoisted.responses,
      headers: HEADERS,
      securitySchemes: { apiKey: API_KEY },
    },
  };
}

type Hoisted = Pick<OpenApi, 'paths' | 'webhooks'> & Pick<OpenApi['components'], 'responses'>;

const DESCRIPTION = `Issues signed URLs through which others may call LLM providers and MCP servers, without your keys and within limits of time, uses and money.

Times are in Unix seconds. Money is in microdollars: 1 dollar = 1000000. In requests \`null\` means the same as leaving a field out, and a field that is not known is refused; in answers \`null\` means there is none.

Lists are newest first. \`next_cursor\` of an answer, sent as \`cursor\`, gives the entries after it; it is \`null\` at the end.`;

const API_KEY = {
  type: 'http',
  scheme: 'bearer',
  description:
    'An API key of your account, as `Authorization: Bearer presign_sk_…`. The role names are scopes.',
};

/** Takes every `$defs` out into `schemas`, and has what refers to it refer there. */
function hoist(value: unknown, schemas: Record<string, JsonSchema>): unknown {
  if (Array.isArray(value)) return value.map((each) => hoist(each, schemas));
  if (typeof value !== 'object' || value === null) return value;
  const { $defs = {}, ...rest } = value as Record<string, unknown>;
  for (const [id, schema] of Object.entries($defs as object)) {
    const named = hoist(schema, schemas) as JsonSchema;
    const same = JSON.stringify(schemas[id] ?? named) === JSON.stringify(named);
    if (!same) throw new Error(`two schemas are named ${id}`);
    schemas[id] = named;
  }
  return Object.fromEntries(
    Object.entries(rest).map(([key, each]) => [key, key === '$ref' ? refOf(each) : hoist(each, schemas)]),
  );
}

const refOf = (ref: unknown) => String(ref).replace('#/$defs/', '#/components/schemas/');
