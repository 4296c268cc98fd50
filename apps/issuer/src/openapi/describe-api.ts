import { webhookEvent } from '@presign/schema';
import type { Route } from '../middleware/route.ts';
import { describeOperation, type Operation, TAGS } from './describe-operation.ts';
import { describeRefusals, HEADERS, type Response, refusalsOf } from './describe-refusals.ts';
import { type JsonSchema, toJsonSchema } from './json-schema.ts';

/** The parts of an OpenAPI document that this API uses. */
export type OpenApi = {
  readonly openapi: '3.1.1';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
    readonly contact: { readonly name: string; readonly url: string };
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, Event>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly headers: typeof HEADERS;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
};

/** Generates the OpenAPI document from the shapes of the routes, which also parse requests. */
export function describeApi(routes: Readonly<Record<string, Route>>, issuerUrl: string): OpenApi {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const [name, { shape }] of Object.entries(routes)) {
    paths[shape.path] = { ...paths[shape.path], [shape.method]: describeOperation(name, shape) };
  }
  const refusals = Object.values(routes).flatMap(({ shape }) => describeRefusals(refusalsOf(shape)));
  const responses = Object.fromEntries(refusals.map(({ name, response }) => [name, response]));
  const schemas: Record<string, JsonSchema> = {};
  const hoisted = hoist({ paths, responses, webhooks: describeEvents() }, schemas) as Hoisted;
  return {
    openapi: '3.1.1',
    info: {
      title: 'Presign',
      version: '0.1.0',
      description: DESCRIPTION,
      contact: { name: 'The operator of this issuer', url: `${issuerUrl}/docs` },
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: issuerUrl, description: 'This issuer.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
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

const DESCRIPTION = `Issues signed URLs through which others can call LLM providers and MCP servers, without your keys and within limits of time, uses and money.

Times are in Unix seconds. Money is in microdollars: 1 dollar = 1000000. In a request, \`null\` means the same as leaving the field out, and an unknown field is refused. In an answer, \`null\` means that there is no value.

Lists are newest first. To get the next page, send \`next_cursor\` of the answer as \`cursor\`. On the last page it is \`null\`.`;

const API_KEY = {
  type: 'http',
  scheme: 'bearer',
  description: 'An API key of your account: `Authorization: Bearer presign_sk_…`. The role names are scopes.',
};

/** Moves every `$defs` into `schemas`, and points references there. */
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

/** An OpenAPI Path Item Object of `webhooks`: the request that an event makes, and the expected answer. */
type Event = {
  readonly post: {
    readonly operationId: string;
    readonly tags: readonly ['Events'];
    readonly summary: string;
    readonly description: string;
    readonly security: readonly [];
    readonly parameters: typeof EVENT_HEADERS;
    readonly requestBody: {
      readonly required: true;
      readonly content: { readonly 'application/json': { readonly schema: JsonSchema } };
    };
    readonly responses: Readonly<Record<'2XX' | '4XX', { readonly description: string }>>;
  };
};

/** Every event by its type. */
const describeEvents = (): Record<string, Event> =>
  Object.fromEntries(webhookEvent.options.map((event) => [event.shape.type.value, describeEvent(event)]));

function describeEvent(event: (typeof webhookEvent.options)[number]): Event {
  const { description = '', ...schema } = toJsonSchema(event, 'output');
  return {
    post: {
      operationId: `on${event.shape.type.value.replaceAll(/(?:^|[._])(\w)/g, (_, first: string) => first.toUpperCase())}`,
      tags: ['Events'],
      summary: description,
      description: 'The issuer sends this request to your webhooks.',
      security: [],
      parameters: EVENT_HEADERS,
      requestBody: {
        required: true,
        content: { 'application/json': { schema } },
      },
      responses: {
        '2XX': { description: 'The event has arrived, and is not sent again.' },
        '4XX': {
          description: 'The event is sent again, at growing intervals. After 410 the endpoint is disabled.',
        },
      },
    },
  };
}

/** The headers that Standard Webhooks defines. */
const EVENT_HEADERS = [
  eventHeader('webhook-id', 'The same at every attempt, so that you can skip an event that you have seen.'),
  eventHeader('webhook-timestamp', 'Unix time of this attempt in seconds.'),
  eventHeader(
    'webhook-signature',
    'Signatures of `id.timestamp.body`, separated by spaces. Each is `v1,` and base64.',
  ),
] as const;

function eventHeader(name: string, description: string) {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } } as const;
}
