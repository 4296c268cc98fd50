import { apiKeys } from '@presign/schema/tables';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { faultOf } from '../harness/documented.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addApiKey, ownAccount } from './accounts.ts';
import { type Sent, send } from './ask.ts';
import { bodyOf, operations, pathOf } from './document.ts';
import { type RandomRequest, randomRequest } from './random-requests.ts';

const REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 500);
/** The same seed makes the same requests again; their ids are those in this run's answers. */
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);

let stack: Stack;
let powerless: string;
/** The keys that all requests are made with: none may revoke them. */
const untouchable = new Set<string>();
/** The ids that answers contained, newest first, by the subject in whose path an id belongs. */
const ids = new Map<string, string[]>();
/** How often each operation answered with each status. */
const seen = new Map<string, number>();

beforeAll(async () => {
  stack = await startStack({ providers: {} });
  powerless = await addApiKey(stack, await ownAccount(stack), { scopes: [] });
  const own = await stack.db.select({ id: apiKeys.id }).from(apiKeys);
  for (const { id } of own) untouchable.add(id);
});
afterAll(() => stack.close());

test(`no request causes a failure or an undocumented answer, out of ${REQUESTS} by seed ${SEED}`, async () => {
  const check = fc.asyncProperty(randomRequest(), async (request) => {
    const sent = await ask(request);
    expect(sent.status, whyFailed(sent)).toBeLessThan(500);
    if (forbidden(request)) expect(sent.status, sent.text).toBeGreaterThanOrEqual(400);
    note(request, sent);
  });
  await fc.assert(check, { numRuns: REQUESTS, seed: SEED });
  process.stdout.write(`${summary()}\n`);
  // Else it would have been turned away at the door, and shown nothing.
  expect(operationsThat((status) => status < '300')).toBeGreaterThan(operations.length / 3);
  expect(operationsThat((status) => status === '401' || status === '403')).toBeGreaterThan(
    operations.length / 3,
  );
}, 3_600_000);

function ask({ place, method, ids: wanted, query, body, headers, key }: RandomRequest): Promise<Sent> {
  const parameters = Array.from(
    place.path.matchAll(/([\w-]+)\/\{(\w+)\}/g),
    ([, subject = '', name = '']) => {
      const id = wanted[name === 'id' ? 0 : 1] ?? 0;
      const known = ids.get(subject) ?? [];
      return [name, typeof id === 'string' ? id : (known[id % known.length] ?? 'none')] as const;
    },
  );
  const path = pathOf(place, Object.fromEntries(parameters));
  const search = new URLSearchParams(query.map(([name, value]): [string, string] => [name, value]));
  const bodiless = body === undefined || method === 'GET' || method === 'HEAD';
  const sent = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  return send(stack, {
    method,
    path: query.length > 0 ? `${path}?${search}` : path,
    apiKey: { own: stack.apiKey, powerless, none: undefined }[key],
    headers: Object.fromEntries(sent) as Record<string, string>,
    ...(bodiless ? {} : { body }),
  });
}

/** The answer to a request, and the lines of the log about it. */
const whyFailed = ({ text, headers }: Sent) =>
  [text, ...stack.logs.filter((line) => line.includes(headers.get('x-request-id') ?? '-'))].join('\n');

/** Whether the document does not allow the body. */
function forbidden({ place, method, body }: RandomRequest): boolean {
  const schema = bodyOf(place.operation);
  if (schema === undefined || method !== place.method) return false;
  try {
    return faultOf(schema, JSON.parse(String(body))) !== undefined;
  } catch {
    return true;
  }
}

/** Later requests may read, change and end anything that an answer names. */
function note({ place, method }: RandomRequest, { status, headers, text }: Sent): void {
  if (method !== place.method) return;
  const name = `${place.operation.operationId} ${status}`;
  seen.set(name, (seen.get(name) ?? 0) + 1);
  if (status >= 300 || headers.get('content-type') !== 'application/json') return;
  learn(JSON.parse(text), place.path.split('/')[2] ?? '');
}

function learn(told: unknown, subject: string): void {
  if (typeof told !== 'object' || told === null) return;
  for (const [name, value] of Object.entries(told)) {
    if (typeof value === 'object') learn(value, name === 'grants' ? name : subject);
    if (typeof value !== 'string' || untouchable.has(value)) continue;
    const about = { id: 'event_id' in told ? 'deliveries' : subject, session_id: 'sessions' }[name];
    if (about !== undefined) ids.set(about, [value, ...(ids.get(about) ?? [])]);
  }
}

const operationsThat = (wanted: (status: string) => boolean): number =>
  new Set([...seen.keys()].filter((key) => wanted(key.split(' ')[1] ?? '')).map((key) => key.split(' ')[0]))
    .size;

const summary = () =>
  [...seen]
    .sort()
    .map(([what, times]) => `${what}: ${times}`)
    .join('\n');
