import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { CREATE, codeOf, openSocket, RefusedHandshake, statusOf } from './holder.ts';
import { closeCode, frame, PING, rawSocket, TEXT } from './raw.ts';
import { type RealtimeProvider, startRealtimeProvider } from './realtime-provider.ts';
import { eventsOf, type Json } from './responses-provider.ts';

const MB = 1024 * 1024;

let provider: RealtimeProvider;
let serve: RealtimeProvider['serve'];
let welcome: RealtimeProvider['welcome'];
let stack: Stack;
/** A gateway whose clock stands still, so that a read quota which is spent stays spent. */
let still: string;
beforeAll(async () => {
  provider = await startRealtimeProvider();
  ({ serve, welcome } = provider);
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
  const now = Date.now();
  still = await stack.addGateway({ now: () => now, socketBounds: { beatMs: 3_600_000 } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
beforeEach(() => {
  Object.assign(provider, { serve, welcome });
  provider.sockets.length = 0;
  provider.sessions.length = 0;
});

const ASK = { provider: 'openai', client_api_key: 'sk-real', sockets: true };
const urlOf = async (path: string, more: object = {}) => (await stack.issue({ ...ASK, path, ...more })).url;
const atStill = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', still);
const realtime = async () => `${atStill(await urlOf('/v1/realtime'))}?model=gpt-realtime`;
/** The API that answers turns of Responses. */
const asResponses = (answer: (event: Json) => Json[]) => {
  provider.welcome = undefined;
  provider.serve = (event, { socket }) => {
    for (const each of answer(event)) socket.send(JSON.stringify(each));
  };
};
const isSpent = (url: string): Promise<boolean> =>
  openSocket(url).then(
    ({ socket }) => {
      socket.close();
      return false;
    },
    (error) => error instanceof RefusedHandshake && error.code === 'rate_limited',
  );

/** In how many seconds a URL whose quota is spent may be opened. */
const retryAfter = (url: string): Promise<unknown> =>
  openSocket(url).then(
    () => undefined,
    (error) => error instanceof RefusedHandshake && error.headers['retry-after'],
  );
const READ_OF_PINGS = Buffer.concat(Array.from({ length: 10_000 }, () => frame(PING, '')));

/** Sends something on a socket, and on, until the socket closes or a test is over. */
function flood(send: (done: () => void) => void, isOver: () => boolean): void {
  const more = () => {
    if (!isOver()) send(() => setTimeout(more, 1));
  };
  more();
}

describe('the read quota of a URL is used up', () => {
  test.each([
    ['pings', 'holder'],
    ['pongs', 'holder'],
    ['pings', 'provider'],
    ['pongs', 'provider'],
  ])('by a flood of %s of the %s, and other URLs are served', async (what, side) => {
    const url = await realtime();
    const holder = await openSocket(url);
    await holder.next('session.updated');
    const upstream = provider.sockets[0]?.socket;
    const sender = side === 'holder' ? holder.socket : upstream;
    let isOver = false;
    flood(
      (done) => {
        for (let i = 0; i < 500; i++)
          if (what === 'pings') sender?.ping(undefined, undefined, () => {});
          else sender?.pong(undefined, undefined, () => {});
        done();
      },
      () => isOver || sender?.readyState !== 1,
    );
    await eventually(() => isSpent(url));
    isOver = true;
    const other = await openSocket(await realtime());
    await other.next('session.updated');
    for (const { socket } of [holder, other]) socket.terminate();
  });

  test('by free events with long answers', async () => {
    const url = await realtime();
    const holder = await openSocket(url);
    await holder.next('session.updated');
    const audio = 'A'.repeat(4 * MB);
    let asked = 0;
    const own = provider.serve;
    provider.serve = (event, of) => {
      if (event.type !== 'conversation.item.retrieve') return own(event, of);
      asked++;
      of.socket.send(JSON.stringify({ type: 'conversation.item.retrieved', item: { content: [{ audio }] } }));
    };
    // Each answer is awaited, so that the events themselves spend next to nothing.
    const ask = () => holder.send({ type: 'conversation.item.retrieve', item_id: 'item_1' });
    holder.socket.on('message', ask);
    ask();
    await eventually(() => isSpent(url));
    // 64 MB at once, and one answer that was under way.
    expect(asked).toBeLessThanOrEqual(18);
    holder.socket.terminate();
  });

  test('by reads of pings on all of its sockets, which add no debt', async () => {
    asResponses(eventsOf);
    const url = atStill(await urlOf('/v1/responses'));
    const raws = await Promise.all(Array.from({ length: 20 }, () => rawSocket(url)));
    for (const { socket } of raws) socket.write(READ_OF_PINGS);
    // The first ping of a read is answered.
    await eventually(async () => raws.every(({ got }) => got().length > 0));
    expect(await retryAfter(url)).toBe('1');
    for (const { socket } of raws) socket.destroy();
  });

  test('by a holder that keeps sending after its socket has ended, which adds no debt', async () => {
    asResponses(eventsOf);
    const url = atStill(await urlOf('/v1/responses', { max_uses: 1 }));
    const { socket, got, ended } = await rawSocket(url);
    const create = (lane: string) => frame(TEXT, JSON.stringify({ ...CREATE, stream_id: lane }));
    socket.write(Buffer.concat([create('a'), create('b')]));
    await eventually(async () => closeCode(got()) === 4402);
    flood(
      (done) => socket.write(READ_OF_PINGS, () => done()),
      () => socket.destroyed,
    );
    await ended;
    expect(await retryAfter(url)).toBe('1');
  });

  test('not by the answer of a turn, which is paid', async () => {
    const delta = { type: 'response.output_text.delta', item_id: 'm', delta: 'x'.repeat(4 * MB) };
    asResponses((event) => {
      const [created, , last] = eventsOf(event);
      return [created, ...Array.from({ length: 20 }, () => delta), last].filter((each) => each !== undefined);
    });
    const url = atStill(await urlOf('/v1/responses'));
    const holder = await openSocket(url);
    expect(codeOf(await holder.turn())).toBe('response.completed');
    expect(holder.events).toHaveLength(21);
    expect(await isSpent(url)).toBe(false);
    holder.socket.close();
  });
});

describe('messages that an upstream does not read', () => {
  const TURN = (i: number) => ({ ...CREATE, stream_id: `s${i}`, input: 'x'.repeat(900_000) });

  test('fill only the memory for bodies: another long turn is refused, a short one passes, and all memory is freed', async () => {
    const settings = { maxHeldBodyBytes: 3 * MB, maxBodyBytes: MB, socketBounds: { beatMs: 3_600_000 } };
    const small = await stack.addGateway(settings);
    const open = async () => {
      const url = (await urlOf('/v1/responses')).replace(stack.gatewayUrls[0] ?? '', small);
      return openSocket(url);
    };
    asResponses(eventsOf);
    const stuck = [await open(), await open()];
    const upstreams = provider.sockets.map(({ socket }) => socket);
    for (const upstream of upstreams) upstream.pause();
    for (const { send } of stuck) for (let i = 0; i < 30; i++) send(TURN(i));
    // A long message finds no memory before it is whole, which ends its socket.
    const codeOfTurn = async (event: Json) => {
      const other = await open();
      const code = codeOf(await other.turn(event));
      other.socket.terminate();
      return code;
    };
    await eventually(async () => (await codeOfTurn(TURN(0))) === 'overloaded', 60_000);
    // It stays so.
    for (let i = 0; i < 3; i++) expect(await codeOfTurn(TURN(0))).toBe('overloaded');
    expect(await codeOfTurn(CREATE)).toBe('response.completed');
    for (const upstream of upstreams) upstream.resume();
    for (const { next } of stuck)
      for (let i = 0; i < 30; i++) await next(({ type }) => type === 'response.completed', 60_000);
    expect(await codeOfTurn(TURN(0))).toBe('response.completed');
    for (const { socket } of stuck) socket.close();
  });
});

describe('a short message when no memory is left', () => {
  const MEMORY = { maxHeldBodyBytes: 4 * 1024, maxBodyBytes: 4 * 1024 };
  const LONGER = { ...CREATE, input: 'x'.repeat(6_000) };
  const open = async (more: object = {}, path = '/v1/responses') => {
    const gateway = await stack.addGateway({ ...MEMORY, ...more });
    return openSocket((await urlOf(path)).replace(stack.gatewayUrls[0] ?? '', gateway));
  };

  test('is refused with its stream_id, and the next one passes', async () => {
    asResponses(eventsOf);
    const holder = await open();
    holder.send({ ...LONGER, stream_id: 'a' });
    expect(await holder.next('error')).toMatchObject({ error: { code: 'overloaded' }, stream_id: 'a' });
    expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
    holder.socket.close();
  });

  test('ends the socket if its refusal cannot be reported', async () => {
    asResponses(eventsOf);
    const write = (line: string) => {
      if (line.includes('overloaded')) throw new Error('no space is left for logs');
    };
    const holder = await open({ log: pino({ level: 'debug' }, { write }) });
    holder.send(LONGER);
    expect((await holder.closed).code).toBe(1011);
  });
});

describe('a turn that another model answers', () => {
  test('costs the price of that model, as for a POST', async () => {
    const asked = { ...CREATE, model: 'gpt-4.1-mini', input: 'word '.repeat(1_000) };
    const spentWith = async (model: string, cost_limit: number) => {
      asResponses((event) => eventsOf({ ...event, model }, { input: 1_000, output: 10 }));
      const url = await urlOf('/v1/responses', { cost_limit });
      const holder = await openSocket(url);
      expect(codeOf(await holder.turn(asked))).toBe('response.completed');
      holder.socket.close();
      return (await statusOf(url)).spent;
    };
    // gpt-4.1-mini: $0.40 and $1.60; gpt-4.1: $2 and $8.
    expect(await spentWith('gpt-4.1-mini', 1_000_000)).toBe(416);
    expect(await spentWith('gpt-4.1', 1_000_000)).toBe(2_080);
  });
});

test('several sockets of one URL share its uses', async () => {
  asResponses(eventsOf);
  const url = await urlOf('/v1/responses', { max_uses: 7, cost_limit: 1_000_000 });
  const holders = await Promise.all(Array.from({ length: 5 }, () => openSocket(url)));
  for (const { send } of holders) for (let i = 0; i < 3; i++) send({ ...CREATE, stream_id: `s${i}` });
  const ended = () =>
    holders.flatMap(({ events }) => events.filter(({ type }) => type === 'response.completed'));
  await eventually(async () => {
    const { used, held } = await statusOf(url);
    return used === 7 && held === 0 && ended().length === 7;
  });
  expect(provider.frames()).toHaveLength(7);
  for (const { socket } of holders) socket.terminate();
});

test('endless fragments of a provider close the socket, and its turn costs its hold', async () => {
  provider.welcome = undefined;
  provider.serve = (event, { socket }) => {
    socket.send(JSON.stringify(eventsOf(event)[0]));
    for (let i = 0; i < 300; i++) socket.send('x', { fin: false });
  };
  const url = await urlOf('/v1/responses', { cost_limit: 1_000_000 });
  const holder = await openSocket(url);
  holder.send(CREATE);
  expect(codeOf(await holder.next('error'))).toBe('upstream_unreachable');
  expect((await holder.closed).code).toBe(1011);
  const { spent, held } = await statusOf(url);
  expect(held).toBe(0);
  expect(spent).toBeGreaterThan(20);
});
