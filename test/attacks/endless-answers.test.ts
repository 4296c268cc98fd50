import { request, type ServerResponse } from 'node:http';
import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { grantIdOf } from '../chaos/sample.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

const MIB = 1024 * 1024;

type Endless = { readonly type: string; readonly start: string; readonly piece: Buffer };

const JSON_TYPE = 'application/json';
const ENDLESS: Readonly<Record<string, Endless>> = {
  'a JSON text of very many parts': {
    type: JSON_TYPE,
    start: '{"data":[',
    piece: Buffer.from('{},'.repeat(MIB / 4)),
  },
  'an event of more than 4 MiB': {
    type: 'text/event-stream',
    start: 'data: ',
    piece: Buffer.alloc(MIB / 2, 'x'),
  },
  'an answer of an endpoint that is not metered': {
    type: 'text/plain',
    start: 'x',
    piece: Buffer.alloc(MIB, 'x'),
  },
};
const ENDLESS_BUT_READABLE: Readonly<Record<string, Endless>> = {
  'a JSON text of one string': { type: JSON_TYPE, start: '{"data":"', piece: Buffer.alloc(MIB, 'x') },
  'a stream of short events': {
    type: 'text/event-stream',
    start: '',
    piece: Buffer.from('data: {}\n\n'.repeat(MIB / 10)),
  },
};

let upstream: Upstream;
let stack: Stack;
let answer: Endless;
/** How many bytes of the answer the gateway had taken when it closed the connection. */
let taken: number | undefined;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => sendWithoutEnd(response));
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await upstream.close();
  await stack.close();
});

function sendWithoutEnd(response: ServerResponse): void {
  const { type, start, piece } = answer;
  let sent = 0;
  response.once('close', () => {
    taken = sent;
  });
  response.writeHead(200, { 'content-type': type }).write(start);
  const more = () => {
    while (!response.destroyed) {
      sent += piece.length;
      if (!response.write(piece)) return response.once('drain', more);
    }
    return undefined;
  };
  more();
}

/** Calls, and leaves with the first bytes of the answer. */
const leave = (url: string, body: object) =>
  new Promise<void>((resolve) => {
    const asked = request(
      url,
      { method: 'POST', headers: { 'content-type': JSON_TYPE }, agent: false },
      (came) =>
        came.once('data', () => {
          asked.destroy();
          resolve();
        }),
    );
    asked.on('error', () => {}).end(JSON.stringify(body));
  });

async function chargedFor(url: string) {
  return eventually(async () => {
    await stack.issuer.ledger.drainAll();
    const [row] = await stack.db
      .select()
      .from(ledger)
      .where(eq(ledger.grantId, grantIdOf(url)));
    return row;
  });
}

const OPENAI = { provider: 'openai', client_api_key: 'sk' };
const EMBEDDINGS = {
  ask: { ...OPENAI, path: '/v1/embeddings', cost_limit: 1_000_000 },
  body: { model: 'text-embedding-3-small', input: 'x' },
};
const CHAT = {
  ask: { ...OPENAI, path: '/v1/chat/completions', cost_limit: 1_000_000 },
  body: { model: 'gpt-4o-mini', messages: [], max_tokens: 9, stream: true },
};
const UNKNOWN = { ask: { ...OPENAI, path: '/v1/unknown' }, body: {} };
const CALLS: Readonly<Record<string, typeof EMBEDDINGS | typeof CHAT | typeof UNKNOWN>> = {
  'application/json': EMBEDDINGS,
  'text/event-stream': CHAT,
  'text/plain': UNKNOWN,
};

const all = { ...ENDLESS, ...(thorough ? ENDLESS_BUT_READABLE : {}) };
test.each(Object.keys(all))('an endless %s is read no further after its client has left', async (kind) => {
  answer = all[kind] as Endless;
  taken = undefined;
  const { ask, body } = CALLS[answer.type] ?? UNKNOWN;
  const { url } = await stack.issue(ask);
  await leave(url, body);
  const bytes = await eventually(async () => taken);
  // The rest is in the buffers of sockets.
  expect(bytes).toBeLessThan((kind in ENDLESS ? 16 : 80) * MIB);
  const charged = await chargedFor(url);
  expect(charged).toMatchObject({ uses: 1, status: 200 });
  // Nothing of its usage is known.
  if ('cost_limit' in ask) expect(charged.costMicrousd).toBeGreaterThan(0);
  else expect(charged.costMicrousd).toBeNull();
});
