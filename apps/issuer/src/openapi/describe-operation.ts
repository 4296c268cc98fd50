import { idempotencyKey, pendingAnswer } from '@presign/schema';
import type { ZodType } from 'zod';
import { isRepeatable, type Shape } from '../middleware/route.ts';
import { describeRefusals, headersOf, type Response, refusalsOf } from './describe-refusals.ts';
import { EXAMPLES } from './examples.ts';
import { type JsonSchema, toJsonSchema } from './json-schema.ts';

export type Parameter = {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  /** For a list: one value with commas between its entries. */
  readonly style?: 'form' | 'deepObject';
  readonly explode?: boolean;
  readonly schema: JsonSchema;
};

/** The parts of an OpenAPI Operation Object that this API uses. */
export type Operation = {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: true;
    readonly content: {
      readonly 'application/json': { readonly schema: JsonSchema; readonly example?: unknown };
    };
  };
  /** Refusals are components, because many operations share them. */
  readonly responses: Readonly<Record<string, Response | { readonly $ref: string }>>;
};

/** Describes one route. */
export function describeOperation(operationId: string, shape: Shape): Operation {
  const { summary, scope, body } = shape;
  const parameters = [
    ...parametersOf('path', shape.params),
    ...parametersOf('query', shape.query),
    ...(isRepeatable(shape) ? [IDEMPOTENCY_KEY] : []),
    ...(shape.etag && shape.method === 'patch' ? [IF_MATCH] : []),
  ];
  const content = body && {
    'application/json': { schema: toJsonSchema(body, 'input'), ...exampleOf(body) },
  };
  return {
    operationId,
    tags: [tagOf(shape.path)],
    summary,
    description: descriptionOf(shape),
    security: scope === undefined ? [] : [{ apiKey: scope === 'any' ? [] : [scope] }],
    ...(parameters.length > 0 && { parameters }),
    ...(content && { requestBody: { required: true, content } }),
    responses: {
      [successOf(shape)]: describeSuccess(operationId, shape),
      ...(shape.pending && { 202: describePending() }),
      ...refs(shape),
    },
  };
}

const refs = (shape: Shape) =>
  Object.fromEntries(
    describeRefusals(refusalsOf(shape)).map(({ status, name }) => [
      status,
      { $ref: `#/components/responses/${name}` },
    ]),
  );

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes it safe to repeat a request: for 24 hours, the same key and body return the same answer. The same key with another body is refused.',
  schema: toJsonSchema(idempotencyKey, 'input'),
};

const IF_MATCH: Parameter = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of an earlier answer: another change since then makes this one fail.',
  schema: { type: 'string', examples: ['"3"'] },
};

function parametersOf(place: 'path' | 'query', schema: Shape['params']): Parameter[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [], $defs } = toJsonSchema(schema, 'input');
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = property as JsonSchema;
    const shown = { name, in: place, required: required.includes(name) };
    const inOne =
      rest.type === 'array'
        ? ({ style: 'form', explode: false } as const)
        : rest.type === 'object' && ({ style: 'deepObject', explode: true } as const);
    return {
      ...shown,
      ...(description !== undefined && { description }),
      ...inOne,
      schema: { ...rest, ...($defs && { $defs }) },
    };
  });
}

function descriptionOf({ description, scope }: Shape): string {
  const access = accessOf(scope);
  return description === undefined ? access : `${description}\n\n${access}`;
}

function accessOf(scope: Shape['scope']): string {
  if (scope === undefined) return 'Needs no API key.';
  if (scope === 'any') return 'Needs an API key, with any scope.';
  // `admin` includes the others within an account, and not `operator`.
  const orAdmin = scope === 'admin' || scope === 'operator' ? '' : ' (or `admin`)';
  return `Needs an API key with the scope \`${scope}\`${orAdmin}.`;
}

const successOf = ({ answer, status = 200 }: Shape): number => (answer ? status : 204);

const ETAG = { etag: { $ref: '#/components/headers/etag' } };

function describeSuccess(operationId: string, { answer, texts = [], scope, etag, links }: Shape): Response {
  const headers = {
    ...headersOf(200, scope !== undefined),
    ...(etag && ETAG),
  };
  if (!answer) return { description: 'Done. The answer has no body.', headers };
  const schema = toJsonSchema(answer, 'output');
  const others = texts.map((type) => [type, { schema: { type: 'string' } as const }]);
  const example = EXAMPLES[operationId];
  const shown = example ? { example } : exampleOf(answer);
  const content = { 'application/json': { schema, ...shown }, ...Object.fromEntries(others) };
  const description = schema.description ?? 'The answer.';
  return { description, headers, content, ...(links && { links: describeLinks(links) }) };
}

/** The first example of a schema, as a request or an answer has it. */
function exampleOf(schema: ZodType): { readonly example?: unknown } {
  const [example] = (schema.meta()?.examples ?? []) as unknown[];
  return example === undefined ? {} : { example };
}

/** An OpenAPI Link Object for each operation. */
const describeLinks = (links: NonNullable<Shape['links']>) =>
  Object.fromEntries(
    Object.entries(links).flatMap(([field, operations]) =>
      operations.map((operationId) => [
        operationId,
        { operationId, parameters: { id: `$response.body#/${field}` } },
      ]),
    ),
  );

const STORED =
  'The change is stored and cannot be lost. Gateways may follow the old state until Redis answers again; repeat the request to learn when they have stopped.';

function describePending(): Response {
  const content = {
    'application/json': { schema: toJsonSchema(pendingAnswer, 'output'), ...exampleOf(pendingAnswer) },
  };
  return { description: STORED, headers: headersOf(202, true), content };
}

/** The tags of the API, in the order of the document. */
export const TAGS = {
  Issuing: 'Signed URLs for LLM providers and MCP servers.',
  Sessions: 'Groups of issued URLs.',
  Grants: 'Issued URLs, one by one.',
  Usage: 'Sums of what was called and spent.',
  Refusals: 'How many calls did not pass.',
  Calls: 'Calls that passed, one by one.',
  Search: 'Users and sessions by a part of their names.',
  Audit: 'Changes: by whom, when, before and after.',
  Models: 'Models that have a price.',
  Limits: 'Limits of API keys and of requests.',
  Budgets: 'Limits that URLs share.',
  'Virtual keys': 'Stored keys of providers, under ids of their own.',
  'API keys': 'Keys of this API.',
  Accounts: 'Owners of keys, URLs and usage.',
  Webhooks: 'Endpoints that receive events.',
  Alerts: 'Conditions that are announced once they hold.',
  Keys: 'Public keys that verify tokens.',
  Events: 'Requests that the issuer sends to webhooks.',
} as const;

/** `/v1/virtual-keys/{id}/rotate` → `Virtual keys`. The two routes that issue share one tag. */
function tagOf(path: string): string {
  const [, , subject = ''] = path.split('/');
  if (subject.endsWith('presign')) return 'Issuing';
  const words = subject.replaceAll('-', ' ').replace(/\bapi\b/, 'API');
  const name = words.charAt(0).toUpperCase() + words.slice(1);
  if (!Object.hasOwn(TAGS, name)) throw new Error(`TAGS lacks ${name}`);
  return name;
}
