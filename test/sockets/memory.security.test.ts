import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { CREATE, codeOf, openSocket, statusOf } from './holder.ts';
import { CONTINUATION, closeCode, frame, rawSocket, TEXT } from './raw.ts';
import { eventsOf, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

const MB = 1024 * 1024;
/** The memory of all bodies here. */
const MEMORY = 16 * MB;

let provider: ResponsesProvider;
let serve: ResponsesProvider['serve'];
let stack: Stack;
beforeAll(async () => {
  provider = await startResponsesProvider();
  serve = provider.serve;
  stack = await startStack({
    providers: { openai: { base_url: provider.url } },
    gateway: { maxHeldBodyBytes: MEMORY, maxBodyBytes: MB },
  });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
beforeEach(() => {
  provider.serve = serve;
  provider.sockets.length = 0;
});

const urlOf = async () =>
  (await stack.issue({ provider: 'openai', path: '/v1/responses', client_api_key: 'sk', sockets: true })).url;

/** A turn of almost a megabyte, in frames. */
const TURN = JSON.stringify({ ...CREATE, input: 'x'.repeat(MB - 20_000) });
const PART = 50_000;
const FRAMES = Array.from({ length: Math.ceil(TURN.length / PART) }, (_, i) => {
  const fin = (i + 1) * PART >= TURN.length;
  return frame(i === 0 ? TEXT : CONTINUATION, TURN.slice(i * PART, (i + 1) * PART), { fin });
});
const BYTES = Buffer.concat(FRAMES);

type Raw = Awaited<ReturnType<typeof rawSocket>>;
const codeAt = ({ got }: Raw) => closeCode(got());

describe('sockets that each send all except the last byte of a long message', () => {
  test('fill only the memory for bodies: others get 1013, and small turns of other URLs pass', async () => {
    const raws: Raw[] = [];
    for (let i = 0; i < 4; i++) {
      const url = await urlOf();
      for (let k = 0; k < 10; k++) raws.push(await rawSocket(url));
    }
    for (const { socket } of raws) socket.write(BYTES.subarray(0, -1));
    const refused = () => raws.filter((raw) => codeAt(raw) === 1013);
    await eventually(async () => refused().length >= raws.length - MEMORY / MB);
    for (const { got } of refused()) expect(got().toString('latin1')).toContain('"code":"overloaded"');
    const holder = await openSocket(await urlOf());
    expect(codeOf(await holder.turn())).toBe('response.completed');
    holder.socket.close();

    // Those that were not refused have their memory, and their turn passes with its last byte.
    const kept = raws.filter((raw) => codeAt(raw) === undefined);
    expect(kept.length).toBeGreaterThan(0);
    for (const { socket } of raws) if (!socket.destroyed) socket.write(BYTES.subarray(-1));
    await eventually(async () => kept.every(({ got }) => got().includes('response.completed')));
    expect(provider.frames()).toHaveLength(kept.length + 1);
    for (const { socket } of raws) socket.destroy();
  });

  test('free it when they disconnect', async () => {
    const url = await urlOf();
    const raws = await Promise.all(Array.from({ length: 20 }, () => rawSocket(url)));
    for (const { socket } of raws) socket.write(BYTES.subarray(0, -1));
    await eventually(async () => raws.some((raw) => codeAt(raw) === 1013));
    for (const { socket } of raws) socket.destroy();
    const holder = await eventually(() => openSocket(url).catch(() => undefined));
    await eventually(async () => {
      holder.send(TURN);
      const event = await holder.next(({ type }) => type === 'error' || type === 'response.completed');
      return codeOf(event) === 'response.completed';
    });
    holder.socket.close();
  });
});

test("a running turn ends first if no memory is left for its socket's next message", async () => {
  let end = () => {};
  provider.serve = (event, { socket }) => {
    const [created, ...rest] = eventsOf(event);
    socket.send(JSON.stringify(created));
    end = () => {
      for (const each of rest) socket.send(JSON.stringify(each));
    };
  };
  const url = await urlOf();
  const raw = await rawSocket(url);
  raw.socket.write(frame(TEXT, JSON.stringify(CREATE)));
  await eventually(async () => raw.got().includes('response.created'));
  const others = await Promise.all(Array.from({ length: 15 }, () => rawSocket(url)));
  for (const { socket } of others) socket.write(BYTES.subarray(0, -1));
  await eventually(async () => others.some((each) => codeAt(each) === 1013));
  raw.socket.write(BYTES.subarray(0, -1));
  await eventually(async () => raw.got().includes('overloaded'));
  expect(codeAt(raw)).toBeUndefined();
  end();
  await eventually(async () => codeAt(raw) === 1013);
  expect(raw.got().toString('latin1')).toContain('response.completed');
  expect(await statusOf(url)).toMatchObject({ used: 1 });
  for (const { socket } of [raw, ...others]) socket.destroy();
  const closes = () => stack.logs.filter((line) => line.includes('"close_code":1013'));
  await eventually(async () => closes().length > 0);
  for (const line of closes()) expect(JSON.parse(line)).toMatchObject({ close_cause: 'no_memory' });
});

test('complete messages, in any chunks, take no memory from others', async () => {
  const url = await urlOf();
  const raws = await Promise.all(Array.from({ length: 20 }, () => rawSocket(url)));
  const small = frame(TEXT, JSON.stringify({ ...CREATE, input: 'x'.repeat(60_000) }));
  // Each leaves the beginning of a next message in the last piece, and ends it later.
  for (let i = 0; i < 3; i++)
    for (const { socket } of raws) {
      socket.write(Buffer.concat([small, small.subarray(0, 2)]));
      await eventually(async () => socket.writableLength === 0);
      socket.write(small.subarray(2));
    }
  await eventually(async () =>
    raws.every(
      ({ got }) =>
        (
          got()
            .toString('latin1')
            .match(/response\.completed|concurrency_limited/g) ?? []
        ).length >= 6,
    ),
  );
  for (const raw of raws) expect(codeAt(raw)).toBeUndefined();
  for (const { socket } of raws) socket.destroy();
});
