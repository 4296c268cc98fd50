import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Api, Operation } from '../generate/api.ts';
import { createPresign, type IssueOptions } from '../src/index.ts';
import { API_KEY, json, pretendIssuer } from './issuer.ts';

const api = JSON.parse(
  readFileSync(new URL('../../../docs/reference/openapi.json', import.meta.url), 'utf8'),
) as Api;
const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    id: operation.operationId,
    path,
    method,
    operation,
  })),
);

type Untyped = Record<string, (fields: object, options?: IssueOptions) => Promise<unknown>>;

test('the client has exactly the operations of the document', async () => {
  const { presign } = await pretendIssuer([]);
  expect(Object.keys(presign).sort()).toEqual(operations.map(({ id }) => id).sort());
});

test.each(operations)(
  '$id sends each field where the document puts it',
  async ({ id, path, method, operation }) => {
    const { presign, seen } = await pretendIssuer([json(200, { a: 'an answer' })]);
    const names = (place: string) =>
      (operation.parameters ?? []).flatMap((one) => (one.in === place ? one.name : []));
    const [inPath, inQuery, inBody] = [names('path'), names('query'), bodyOf(operation)];
    const fields = Object.fromEntries(
      [...inPath, ...inQuery, ...inBody].map((name) => [name, `${name} ü/?&`]),
    );

    expect(await (presign as unknown as Untyped)[id]?.(fields)).toEqual({ a: 'an answer' });

    const [{ url, body, headers, ...one } = { url: new URL('http://x'), body: '', headers: {} }] = seen;
    const written = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(`${name} ü/?&`));
    expect({ ...one, path: url.pathname }).toEqual({ method: method.toUpperCase(), path: written });
    const only = (wanted: string[]) => Object.fromEntries(wanted.map((name) => [name, fields[name]]));
    expect(Object.fromEntries(url.searchParams)).toEqual(only(inQuery));
    if (operation.requestBody) expect(JSON.parse(body)).toEqual(only(inBody));
    else expect(body).toBe('');
    expect(headers['content-type']).toBe(operation.requestBody ? 'application/json' : undefined);
    expect(headers.authorization).toBe(`Bearer ${API_KEY}`);
    expect('idempotency-key' in headers).toBe(names('header').includes('Idempotency-Key'));
  },
);

test('an undefined field is not sent, and null is sent in a body', async () => {
  const { presign, seen } = await pretendIssuer([json(200, { data: [], next_cursor: null })]);
  await presign.listSessions({ external_user: undefined, limit: 5 });
  await presign.presign({ provider: 'openai', path: '/v1/x', max_uses: undefined, cost_limit: null });
  expect(seen[0]?.url.search).toBe('?limit=5');
  expect(seen[1]?.body).toBe('{"provider":"openai","path":"/v1/x","cost_limit":null}');
});

test('in a query a list is comma-separated, and a date is in ISO 8601', async () => {
  const { presign, seen } = await pretendIssuer([json(200, {})]);
  const from = new Date(Date.UTC(2026, 0, 31, 12));
  await presign.getUsage({ from, to: 1_795_278_581.468, group_by: ['model', 'day'] });
  const asked = { from: '2026-01-31T12:00:00.000Z', to: '1795278581.468', group_by: 'model,day' };
  expect(Object.fromEntries(seen[0]?.url.searchParams ?? [])).toEqual(asked);
});

test('in a query an object becomes one parameter for each key', async () => {
  const { presign, seen } = await pretendIssuer([json(200, {})]);
  await presign.getUsage({ metadata: { team: 'red', 'cost-center': '7' }, group_by: ['metadata.team'] });
  const asked = { 'metadata[team]': 'red', 'metadata[cost-center]': '7', group_by: 'metadata.team' };
  expect(Object.fromEntries(seen[0]?.url.searchParams ?? [])).toEqual(asked);
});

test.each(['', '.', '..', undefined])('the id %j is refused before any request is sent', async (id) => {
  const { presign, seen } = await pretendIssuer([json(200, {})]);
  await expect(presign.revokeSession({ id: id as string })).rejects.toThrow(
    new TypeError('id: expected an id.'),
  );
  expect(seen).toEqual([]);
});

test('an Idempotency-Key that is an invalid header, or would have no effect, is refused before any request is sent', async () => {
  const { presign, seen } = await pretendIssuer([json(200, {})]);
  const { presign: issue, listSessions } = presign as unknown as Record<string, Untyped[string]>;
  for (const idempotencyKey of ['', 'order 7', 'order-7\n', 'ü', 'x'.repeat(256)]) {
    await expect(issue?.({}, { idempotencyKey })).rejects.toThrow('idempotencyKey: expected 1 to 255');
  }
  await expect(listSessions?.({}, { idempotencyKey: 'order-7' })).rejects.toThrow(
    'idempotencyKey: this operation',
  );
  expect(seen).toEqual([]);
});

test('an answer is returned unchanged, whatever the API key is', async () => {
  const answer = { keys: [{ kid: 'a', public_key: 'a-key-of-a-kind' }] };
  const { url } = await pretendIssuer([json(200, answer)]);
  expect(await createPresign({ url, apiKey: 'a' }).publicKeys()).toEqual(answer);
});

test('the issuer may be served below a path', async () => {
  const { url, seen } = await pretendIssuer([json(200, { keys: [] })]);
  for (const base of [`${url}/presign`, `${url}/presign/`]) {
    await createPresign({ url: base, apiKey: API_KEY }).publicKeys();
  }
  expect(seen.map((one) => one.url.pathname)).toEqual(['/presign/v1/keys', '/presign/v1/keys']);
});

test('CSV is returned as text, and 204 as undefined', async () => {
  const { presign, seen } = await pretendIssuer([
    (response) =>
      response.writeHead(200, { 'content-type': 'text/csv; charset=utf-8' }).end('calls\r\n1\r\n'),
    (response) => response.writeHead(204).end(),
  ]);
  expect(await presign.getUsage({ from: '1', format: 'csv' })).toBe('calls\r\n1\r\n');
  expect(seen[0]?.url.search).toBe('?from=1&format=csv');
  expect(await presign.revokeGrant({ id: 'a' })).toBeUndefined();
});

function bodyOf({ requestBody }: Operation): string[] {
  const schema = requestBody?.content['application/json'].schema;
  const name = schema?.$ref?.split('/').at(-1);
  return Object.keys((name === undefined ? schema : api.components.schemas[name])?.properties ?? {});
}
