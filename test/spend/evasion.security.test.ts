import { request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { ledger } from '@presign/schema/ledger-tables';
import { gt } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { deferred, eventually } from '../harness/eventually.ts';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { socketsRead } from '../harness/thorough.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { statusOf } from './many-calls.ts';

const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
const WHOLE = JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage });
/** At $0.15 and $0.60 per million tokens. */
const COST = 21;
const LIMIT = 100_000;

const OK: Answer = (_seen, response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(WHOLE);
let answer: Answer;
let upstream: Upstream;
let stack: Stack;
/** A gateway that soon gives up a provider, for those that never end. */
let impatient: string;
beforeAll(async () => {
  upstream = await startUpstream((...all) => answer(...all));
  const pricing = { priced: { input: 150_000, output: 600_000 } };
  const entry = { base_url: upstream.url, pricing };
  stack = await startStack({
    providers: { openai: entry, google: { base_url: upstream.url } },
  });
  impatient = await stack.addGateway({ upstreamTimeoutMs: 1_000 });
});
beforeEach(() => {
  answer = OK;
  upstream.seen.length = 0;
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const issue = async (more: object = {}) =>
  (
    await stack.issue({
      provider: 'openai',
      path: '/v1/chat/completions',
      client_api_key: 'sk',
      cost_limit: LIMIT,
      ...more,
    })
  ).url;
const BODY = { model: 'priced', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 100 };
const send = (
  url: string,
  body: string | Buffer = JSON.stringify(BODY),
  headers: Record<string, string> = {},
) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: new Uint8Array(Buffer.from(body)),
  });
/** The amount that a URL has spent once nothing is held any more. */
const settled = (url: string) =>
  eventually(async () => {
    const { spent, held } = await statusOf(url);
    return held === 0 ? spent : undefined;
  });

test('a small body that nests deeply is planned by a worker, and sent as its config says', async () => {
  const url = await issue({ cost_limit: undefined, config: { temperature: 0.5 } });
  const metadata = JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`) as unknown;
  const answered = await send(url, JSON.stringify({ ...BODY, metadata }));
  expect([answered.status, await answered.text()]).toEqual([200, WHOLE]);
  const sent = JSON.parse(upstream.seen[0]?.body.toString() ?? '') as object;
  expect(sent).toEqual({ ...BODY, metadata, temperature: 0.5 });
});

describe('a body that is ambiguous, or expensive to parse, is refused and never sent', () => {
  const text = JSON.stringify(BODY);
  test.each<[string, string | Buffer, number, Record<string, string>?]>([
    ['the model twice', text.replace('{', '{"model":"dear",'), 400],
    ['the model twice, once escaped', text.replace('{', '{"mod\\u0065l":"dear",'), 400],
    ['a bound twice, deep inside', text.replace('"role"', '"role":"user","role"'), 400],
    ['a field in another case', text.replace('{', '{"Max_Tokens":1,'), 422],
    ['a byte order mark', `\ufeff${text}`, 400],
    ['UTF-16', Buffer.from(text, 'utf16le'), 400],
    ['compressed twice', gzipSync(gzipSync(text)), 415, { 'content-encoding': 'gzip, gzip' }],
    ['compressed, it is said', text, 400, { 'content-encoding': 'gzip' }],
    [
      'the model twice, compressed',
      gzipSync(text.replace('{', '{"model":"dear",')),
      400,
      { 'content-encoding': 'gzip' },
    ],
    ['a multipart form', text, 415, { 'content-type': 'multipart/form-data; boundary=x' }],
    ['a list', `[${text}]`, 415],
    ['two texts', text + text, 400],
    ['nothing', '', 422],
    ['deeper than any call', `{"messages":${'['.repeat(600)}${']'.repeat(600)}}`, 400],
    ['a quarter of a million levels', `${'{"a":'.repeat(250_000)}1${'}'.repeat(250_000)}`, 400],
    ['16 MiB of empty objects', `{"messages":[${'{},'.repeat(5_500_000)}{}]}`, 400],
    ['500,000 fields', `{${Array.from({ length: 500_000 }, (_, i) => `"${i}":1`)}}`, 400],
    [
      '10,001 fields in a message',
      `{"messages":[{${Array.from({ length: 10_001 }, (_, i) => `"${i}":1`)}}]}`,
      400,
    ],
    ['a bound beyond numbers', text.replace('100', '1e400'), 422],
    ['choices as text', text.replace('{', '{"n":"100",'), 422],
    ['a type with a method of its own', text.replace('{', '{"tools":[{"type":{"toString":1}}],'), 422],
  ])('%s', async (_what, body, status, headers) => {
    const url = await issue();
    expect((await send(url, body, headers)).status).toBe(status);
    expect(upstream.seen).toHaveLength(0);
    expect(await statusOf(url)).toMatchObject({ used: 0, spent: 0, held: 0 });
  });
});

describe('an input that could make the provider read a different call is not sent', () => {
  test.each(['text/plain', 'application/json; charset=utf-7', 'application/x-www-form-urlencoded'])(
    'as %s the body is sent as the JSON it is',
    async (contentType) => {
      expect((await send(await issue(), undefined, { 'content-type': contentType })).status).toBe(200);
      expect(upstream.seen[0]?.headers['content-type']).toBe('application/json');
      expect(JSON.parse(String(upstream.seen[0]?.body))).toMatchObject({
        model: 'priced',
        max_completion_tokens: 100,
      });
    },
  );

  test('range requests, which could omit the usage', async () => {
    const url = `${await issue()}?fields=choices&%24fields=usage&Fields=usage&x=1`;
    const headers = { 'x-goog-fieldmask': 'choices' };
    expect((await send(url, undefined, headers)).status).toBe(200);
    expect(upstream.seen[0]?.url).toBe('/v1/chat/completions?x=1');
    for (const name of Object.keys(headers)) expect(upstream.seen[0]?.headers[name]).toBeUndefined();
  });

  test('a model named in an unknown spelling has no price', async () => {
    const url = await issue();
    for (const model of ['Priced', ' priced', 'models/priced', 'priced\u0000', 'p'.repeat(10_000_000)])
      expect((await send(url, JSON.stringify({ ...BODY, model }))).status).toBe(422);
    expect(upstream.seen).toHaveLength(0);
  });
});

/** Answers on the bare socket: what no server of HTTP would send. */
const bare =
  (...parts: readonly (string | Buffer)[]): Answer =>
  (_seen, response) => {
    for (const part of parts) response.socket?.write(part);
    response.socket?.end();
  };
const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const sized = (text: string, head = HEAD) =>
  `${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
const withUsage = (more: object) => sized(JSON.stringify({ choices: [], usage: { ...usage, ...more } }));

describe('for any answer of a provider, the gateway survives, and an unknown cost is the hold', () => {
  let hold = 0;
  beforeAll(async () => {
    answer = OK;
    const url = await issue();
    answer = (_seen, response) => void response.writeHead(200).end('{}');
    await (await send(url)).arrayBuffer();
    hold = await settled(url);
    expect(hold).toBeGreaterThan(COST);
  });

  test.each<[string, Answer, number | 'hold', 'endless'?]>([
    ['an error as a success', bare(sized('{"error":{"message":"no"}}')), 'hold'],
    ['usage of null', bare(withUsage({ prompt_tokens: null })), 'hold'],
    ['usage below zero', bare(withUsage({ completion_tokens: -30 })), 'hold'],
    ['usage as text', bare(withUsage({ prompt_tokens: '20' })), 'hold'],
    ['usage in fractions', bare(withUsage({ prompt_tokens: 0.5 })), 'hold'],
    [
      'a 502 of an intermediary',
      bare('HTTP/1.1 502 Bad\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>'),
      'hold',
    ],
    [
      'a 500 of its own',
      bare(sized('{"error":{"message":"no"}}', 'HTTP/1.1 500 No\r\nContent-Type: application/json\r\n')),
      0,
    ],
    ['a redirect', bare('HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n'), 'hold'],
    ['plain bytes that are called gzip', bare(sized(WHOLE, `${HEAD}Content-Encoding: gzip\r\n`)), 'hold'],
    ['gzip in gzip', bare(sized(WHOLE, `${HEAD}Content-Encoding: gzip, gzip\r\n`)), 'hold'],
    ['a body shorter than its length', bare(`${HEAD}Content-Length: 9999\r\n\r\n${WHOLE}`), 'hold'],
    ['no HTTP', bare('SSH-2.0-OpenSSH\r\n'), 'hold'],
    ['nothing', bare(), 'hold'],
    [
      'a thousand informational answers',
      bare('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'.repeat(1_000), sized(WHOLE)),
      COST,
    ],
    ['a control character in a header', bare(sized(WHOLE, `${HEAD}X-Odd: a\x01b\r\n`)), 'hold'],
    ['a header beyond ASCII', bare(sized(WHOLE, `${HEAD}X-Odd: \u00e9\r\n`)), COST],
    [
      'a switch of protocols',
      bare('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
      'hold',
    ],
    [
      'trailers',
      bare(
        `${HEAD}Transfer-Encoding: chunked\r\n\r\n${WHOLE.length.toString(16)}\r\n${WHOLE}\r\n0\r\nX-T: 1\r\n\r\n`,
      ),
      COST,
    ],
    ['nested without end', bare(sized('['.repeat(300_000) + ']'.repeat(300_000))), 'hold'],
    [
      'more than is read',
      (_seen, response) => void response.writeHead(200).end(Buffer.alloc(66 * 1024 * 1024, ' ')),
      'hold',
    ],
    ['no end', (_seen, response) => void response.writeHead(200).write('{'), 'hold', 'endless'],
    ['no beginning', () => {}, 'hold', 'endless'],
  ])('%s', async (_what, how, cost, ends) => {
    answer = how;
    const url = await issue();
    await send(ends === 'endless' ? url.replace(stack.gatewayUrls[0] ?? '', impatient) : url)
      .then(
        (got) => got.arrayBuffer(),
        () => {},
      )
      .catch(() => {});
    expect(await settled(url)).toBe(cost === 'hold' ? hold : cost);
    answer = OK;
    expect((await send(url)).headers.get('x-presign-cost')).toBe(String(COST));
  });

  test('usage beyond exact numbers is charged the hold, and does not block the ledger', async () => {
    const huge = Number.MAX_SAFE_INTEGER;
    answer = bare(withUsage({ prompt_tokens: huge, completion_tokens: huge, total_tokens: null }));
    const url = await issue();
    await (await send(url)).arrayBuffer();
    const row = await eventually(async () => {
      await stack.issuer.ledger.drainAll();
      const rows = stack.db.select().from(ledger).where(gt(ledger.overrunMicrousd, 0));
      return (await rows)[0];
    });
    expect(row.costMicrousd).toBe(hold);
    // More than its worst case: the grant has ended, and its URL says so.
    expect((await send(url)).status).toBe(403);
  });
});

describe('a holder who disconnects', () => {
  const open = async (url: string, bytes: string) => {
    const { origin, pathname } = new URL(url);
    const socket = await openSocket(origin);
    socket.on('error', () => {});
    socket.write(`POST ${pathname} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${bytes}`);
    return socket;
  };
  const text = JSON.stringify(BODY);
  const framed = `Content-Length: ${text.length}\r\n\r\n${text}`;

  test('within the body has made no call', async () => {
    const url = await issue();
    const socket = await open(url, framed.slice(0, -1));
    // A later request has been answered, so this one's body is being read.
    await statusOf(url);
    socket.destroy();
    expect((await send(url)).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
    expect(await statusOf(url)).toMatchObject({ used: 1, held: 0 });
  });

  test('after the body, or within the answer, pays for each call made', async () => {
    const url = await issue();
    (await open(url, framed)).destroy();
    const cut = await open(url, framed);
    await eventually(async () => upstream.seen.length > 0 || undefined);
    cut.destroy();
    const begun = deferred();
    const left = deferred();
    answer = async (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write(WHOLE.slice(0, 10));
      begun.resolve();
      await left.promise;
      response.end(WHOLE.slice(10));
    };
    const late = await open(url, framed);
    await begun.promise;
    late.destroy();
    await socketsRead();
    left.resolve();
    await eventually(async () => (await statusOf(url)).used === upstream.seen.length || undefined);
    expect(await settled(url)).toBe(upstream.seen.length * COST);
    expect(upstream.seen.length).toBeGreaterThanOrEqual(2);
  });

  test('after sending two calls in one write is charged for both', async () => {
    const url = await issue();
    const { pathname } = new URL(url);
    const socket = await open(url, `${framed}POST ${pathname} HTTP/1.1\r\nHost: x\r\n${framed}`);
    await eventually(async () => (await statusOf(url)).used === 2 || undefined);
    expect(await settled(url)).toBe(2 * COST);
    socket.destroy();
  });
});

test('many simultaneous calls never spend more than the limit, whatever their answers say', async () => {
  const limit = 1_000;
  const url = await issue({ cost_limit: limit });
  let turn = 0;
  answer = (seen, response, incoming) =>
    [OK, bare(sized('{}')), bare(withUsage({ completion_tokens: 100 })), bare('x')][turn++ % 4]?.(
      seen,
      response,
      incoming,
    );
  const one = () =>
    new Promise<void>((resolve) => {
      const sent = request(
        url,
        { method: 'POST', headers: { 'content-type': 'application/json' } },
        (got) => {
          got.resume().once('close', resolve);
        },
      );
      sent.once('error', () => resolve());
      sent.end(JSON.stringify(BODY));
    });
  for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 60 }, one));
  expect(await settled(url)).toBeLessThanOrEqual(limit);
  expect(await settled(url)).toBeGreaterThan(limit / 2);
});
