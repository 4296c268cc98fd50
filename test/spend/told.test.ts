import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sampled, socketsRead } from '../harness/thorough.ts';
import {
  eachOf,
  indexIn,
  modelOf,
  post,
  rowsByModel,
  type Spending,
  startSpending,
  urlOf,
} from './many-calls.ts';
import { COST, RECORDED, type Recorded } from './recorded.ts';

const longest = Math.max(...RECORDED.map(({ stream }) => Buffer.byteLength(stream))) + 2;

/** The provider's answer, in pieces that it takes care to send apart. */
type Wire = { readonly headers: Record<string, string>; readonly pieces: (k: number) => readonly Buffer[] };

let spending: Spending;
let wire: Wire;
/** The wait of the provider between pieces, instead of the gateway reading each. */
let rest: Promise<void> | undefined;

beforeAll(async () => {
  spending = await startSpending(['call'], longest, async (seen, response) => {
    response.socket?.setNoDelay(true);
    response.writeHead(200, wire.headers);
    const pieces = wire.pieces(indexIn(seen.url + seen.body.toString(), 'call'));
    for (const piece of pieces) {
      await new Promise<void>((sent) => response.write(piece, () => sent()));
      if (pieces.length > 1) await (rest ?? socketsRead());
    }
    response.end();
  });
});
afterAll(() => spending.close());

type Calls = {
  readonly body?: Recorded['body'];
  readonly headers?: Record<string, string>;
  readonly numbers?: readonly number[];
};

/** Makes calls of this shape, or one; returns their answers, and what each was charged. */
async function answers(shape: Recorded, { body = shape.body, headers = {}, numbers = [0] }: Calls = {}) {
  const url = await spending.issue(shape);
  const got = new Map<number, Awaited<ReturnType<typeof post>>>();
  await eachOf(numbers, 60, async (k) => {
    const model = modelOf('call', k);
    got.set(k, await post(urlOf(url, shape, model), body(model), headers));
  });
  const rows = await rowsByModel(spending, url, numbers.length);
  return {
    got: [...got.values()],
    costs: numbers.map((k) => rows.get(modelOf('call', k))?.costMicrousd),
  };
}

const withoutAskedFor = ({ stream, askedFor = '' }: Recorded) => stream.replace(askedFor, '');
const plain = (shape: Recorded, text = shape.stream): Wire => ({
  headers: { 'content-type': shape.contentType },
  pieces: () => [Buffer.from(text)],
});
const named = (name: string): Recorded => {
  const found = RECORDED.find((each) => each.name.startsWith(name));
  if (!found) throw new Error(`nothing is recorded of ${name}`);
  return found;
};

describe.each(RECORDED)('$name', (shape) => {
  const bytes = Buffer.from(shape.stream);

  test('is metered wherever its chunks are cut, and every byte passes except what the gateway requested', async () => {
    wire = {
      headers: { 'content-type': shape.contentType },
      pieces: (k) => [bytes.subarray(0, k), bytes.subarray(k)].filter((piece) => piece.length > 0),
    };
    const { got, costs } = await answers(shape, { numbers: sampled(bytes.length) });
    expect(costs.filter((cost) => cost !== COST)).toEqual([]);
    const expected = withoutAskedFor(shape);
    expect(got.filter((each) => each.broken || each.bytes.toString() !== expected)).toEqual([]);
  });

  test('is metered byte by byte', async () => {
    wire = {
      headers: { 'content-type': shape.contentType },
      pieces: () => Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)),
    };
    const { got, costs } = await answers(shape);
    expect(costs).toEqual([COST]);
    expect(got[0]?.bytes.toString()).toBe(withoutAskedFor(shape));
  });
});

const events = RECORDED.filter(({ contentType }) => contentType.startsWith('text/event-stream'));
const respelled: [string, (stream: string) => string][] = [
  ['CRLF', (stream) => stream.replaceAll('\r', '').replaceAll('\n', '\r\n')],
  ['CR', (stream) => stream.replaceAll('\r', '').replaceAll('\n', '\r')],
  ['a byte order mark', (stream) => `\ufeff${stream}`],
  ['comments and ids between', (stream) => `: hello\n\nid: 1\nretry: 5\n${stream}`],
  ['no space after its colons', (stream) => stream.replaceAll('data: ', 'data:')],
];

test.each(respelled)('events with %s are metered and pass unchanged', async (_what, respell) => {
  for (const shape of events) {
    const { askedFor = '' } = shape;
    wire = plain(shape, respell(shape.stream));
    const { got, costs } = await answers(shape);
    expect(costs).toEqual([COST]);
    const text = got[0]?.bytes.toString();
    if (askedFor === '') expect(text).toBe(respell(shape.stream));
    else expect(text).not.toContain('"usage"');
    expect(text?.replaceAll(/[\r\n]/g, '')).toBe(respell(withoutAskedFor(shape)).replaceAll(/[\r\n]/g, ''));
  }
});

test.each([
  ['CRLF', (stream: string) => stream.replaceAll('\n', '\r\n')],
  ['blank lines between', (stream: string) => `\n${stream.replaceAll('\n', '\n\n')}`],
])('JSON lines with %s are metered and pass unchanged', async (_what, respell) => {
  const lines = named('Cohere chat v1');
  wire = plain(lines, respell(lines.stream));
  const { got, costs } = await answers(lines);
  expect(costs).toEqual([COST]);
  expect(got[0]?.bytes.toString()).toBe(respell(lines.stream));
});

test('a chat of Cohere v1 requested as server-sent events is metered', async () => {
  const { stream, ...lines } = named('Cohere chat v1');
  const events = stream.replaceAll('\n', '\n\n').replaceAll('{"is_finished"', 'data: {"is_finished"');
  wire = plain({ ...lines, stream: events, contentType: 'text/event-stream' });
  const { got, costs } = await answers(
    { ...lines, stream: events },
    { headers: { accepts: 'text/event-stream' } },
  );
  expect(costs).toEqual([COST]);
  expect(got[0]?.bytes.toString()).toBe(events);
  expect(spending.seen.at(-1)?.headers.accepts).toBe('text/event-stream');
});

test('a usage event that the holder requested passes; one that it declined does not', async () => {
  const chat = named('OpenAI chat');
  wire = plain(chat);
  const asking = (include_usage: boolean) => (model: string) => ({
    ...chat.body(model),
    stream_options: { include_usage },
  });
  const asked = await answers(chat, { body: asking(true) });
  expect([asked.costs, asked.got[0]?.bytes.toString()]).toEqual([[COST], chat.stream]);
  const declined = await answers(chat, { body: asking(false) });
  expect([declined.costs, declined.got[0]?.bytes.toString()]).toEqual([[COST], withoutAskedFor(chat)]);
  const sent = JSON.parse(spending.seen.at(-1)?.body.toString() ?? '{}');
  expect(sent.stream_options).toEqual({ include_usage: true });
});

const WHOLE = JSON.stringify({
  id: 'c',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hé '.repeat(500) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 },
});
const codings: [string, (bytes: Buffer) => Buffer][] = [
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['br', brotliCompressSync],
  ['deflate', deflateSync],
  // RFC 9110 §8.4.1.2: some send no zlib wrapper around it.
  ['deflate', deflateRawSync],
  ['identity', (bytes) => bytes],
];

test.each(codings)('an answer in %s is metered and passes unchanged', async (coding, encode) => {
  const chat = named('OpenAI chat');
  const bytes = encode(Buffer.from(WHOLE));
  wire = {
    headers: { 'content-type': 'application/json', 'content-encoding': coding },
    pieces: () => [bytes.subarray(0, 100), bytes.subarray(100)],
  };
  const whole = (model: string) => ({ ...chat.body(model), stream: false });
  const { got, costs } = await answers(chat, {
    body: whole,
    headers: { 'accept-encoding': 'gzip, deflate, br, zstd' },
  });
  expect(costs).toEqual([COST]);
  expect(got[0]?.headers['content-encoding']).toBe(coding);
  expect(got[0]?.headers['x-presign-cost']).toBe(String(COST));
  expect(got[0]?.bytes.equals(bytes)).toBe(true);
});

test.each(codings)(
  'a stream in %s that was not requested is metered and passes unchanged',
  async (coding, encode) => {
    const names = ['Anthropic', 'Gemini as server', 'Gemini as one', 'Cohere chat v2', 'Cohere chat v1'];
    for (const shape of names.map(named)) {
      const bytes = encode(Buffer.from(shape.stream));
      wire = {
        headers: { 'content-type': shape.contentType, 'content-encoding': coding },
        pieces: () => [bytes.subarray(0, 50), bytes.subarray(50)],
      };
      const { got, costs } = await answers(shape);
      expect([shape.name, costs]).toEqual([shape.name, [COST]]);
      expect(got[0]?.bytes.equals(bytes)).toBe(true);
    }
  },
);

test('no unreadable coding is requested, and none for a stream', async () => {
  const chat = named('OpenAI chat');
  wire = plain(chat);
  const acceptedBy = async (stream: boolean, accepted: string) => {
    await answers(chat, {
      body: (model) => ({ ...chat.body(model), stream }),
      headers: { 'accept-encoding': accepted },
    });
    return spending.seen.at(-1)?.headers['accept-encoding'];
  };
  expect(await acceptedBy(false, 'zstd, gzip;q=0.5, br')).toBe('gzip;q=0.5, br');
  expect(await acceptedBy(false, 'zstd, *')).toBe('identity');
  expect(await acceptedBy(true, 'gzip, br')).toBe('identity');
});

test('a whole answer with a byte order mark is metered', async () => {
  const chat = named('OpenAI chat');
  wire = { headers: { 'content-type': 'application/json' }, pieces: () => [Buffer.from(`\ufeff${WHOLE}`)] };
  const { got, costs } = await answers(chat, {
    body: (model) => ({ ...chat.body(model), stream: false }),
  });
  expect(costs).toEqual([COST]);
  expect(got[0]?.bytes.toString()).toBe(`\ufeff${WHOLE}`);
});

test('an answer in an unreadable coding is charged its hold', async () => {
  const chat = named('OpenAI chat');
  const headers = { 'content-type': 'application/json', 'content-encoding': 'zstd' };
  wire = { headers, pieces: () => [Buffer.from('??')] };
  const { costs } = await answers(chat, {
    body: (model) => ({ ...chat.body(model), stream: false }),
  });
  expect(costs[0]).toBeGreaterThan(COST);
});

test('a stream under a cost_limit passes chunk by chunk, whatever its form', async () => {
  for (const shape of RECORDED) {
    const url = await spending.issue(shape);
    const bytes = Buffer.from(shape.stream);
    let goOn = () => {};
    const seenByHolder = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    rest = seenByHolder;
    wire = {
      headers: { 'content-type': shape.contentType },
      pieces: () => [bytes.subarray(0, bytes.length - 40), bytes.subarray(bytes.length - 40)],
    };
    const model = modelOf('call', 0);
    const answer = await fetch(urlOf(url, shape, model), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(shape.body(model)),
    });
    const reader = answer.body?.getReader();
    const first = await reader?.read();
    expect([shape.name, first?.value?.length]).toEqual([shape.name, expect.any(Number)]);
    goOn();
    while (!(await reader?.read())?.done);
    rest = undefined;
  }
});
