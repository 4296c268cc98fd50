// The callers of sockets.ts, in a process of their own. Takes an order from its parent, and sends a report when it is done.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';

export type Order = {
  /**
   * - `idle`: sockets without a turn.
   * - `appends`: sound of 20 ms in each event of the holder. `audio`: the same, and as much comes back.
   * - `responses`, `realtime`, `posts`: turns, or streamed POST requests, one after another on each connection.
   */
  readonly kind: 'idle' | 'appends' | 'audio' | 'responses' | 'realtime' | 'posts';
  readonly port: number;
  readonly paths: readonly string[];
  readonly connections: number;
  readonly seconds: number;
};
export type Report = {
  readonly done: number;
  readonly failed: number;
  /** How long sound took there and back, in ms. */
  readonly p50?: number;
  readonly p99?: number;
};

/** Sockets that are opened at once. */
const AT_ONCE = 50;
const BODY = { model: 'gpt-4o-mini', input: 'x'.repeat(880), max_output_tokens: 500 };
const POST = JSON.stringify({ ...BODY, stream: true });
const LAST = '"response.completed"';
const TURNS = {
  responses: { create: JSON.stringify({ type: 'response.create', ...BODY }), last: LAST },
  realtime: {
    create: JSON.stringify({
      type: 'response.create',
      response: { output_modalities: ['text'], max_output_tokens: 100 },
    }),
    last: '"response.done"',
  },
};
/** PCM of 24 kHz, 16 bits and 20 ms, as Base64. */
const FRAME_BYTES = 24_000 * 2 * 0.02;
const FRAME_MS = 20;

process.once('message', async (order: Order) => {
  const { kind } = order;
  const report =
    kind === 'idle'
      ? await idle(order)
      : kind === 'posts'
        ? await posts(order)
        : kind === 'appends' || kind === 'audio'
          ? await speak(order, kind === 'audio')
          : await turns(order, TURNS[kind]);
  process.send?.(report);
});

async function open({ port, paths }: Order, i: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${paths[i % paths.length]}`, {
    perMessageDeflate: false,
  });
  await once(socket, 'open');
  socket.on('error', () => {});
  return socket;
}

/** Opens all connections of an order. */
async function openAll(order: Order): Promise<{ sockets: WebSocket[]; failed: number }> {
  const sockets: WebSocket[] = [];
  let [next, failed] = [0, 0];
  const lane = async () => {
    while (next < order.connections)
      await open(order, next++).then(
        (socket) => sockets.push(socket),
        () => failed++,
      );
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return { sockets, failed };
}

async function idle(order: Order): Promise<Report> {
  const { sockets, failed } = await openAll(order);
  return { done: sockets.length, failed };
}

/** Speaks on all sockets in turn, 50 times a second on each. */
async function speak(order: Order, hasEcho: boolean): Promise<Report> {
  const { sockets, failed } = await openAll(order);
  const sound = Buffer.alloc(FRAME_BYTES, hasEcho ? 'speech' : '\0').toString('base64');
  const event = JSON.stringify({ type: 'input_audio_buffer.append', audio: sound });
  const sentAt: number[][] = sockets.map(() => []);
  const took: number[] = [];
  sockets.forEach((socket, i) => {
    const times = sentAt[i] ?? [];
    socket.on('message', (data: Buffer) => {
      if (data.includes('output_audio.delta')) took.push(performance.now() - (times.shift() ?? 0));
    });
  });
  // Sessions are set first.
  await sleep(1_000);
  const beganAt = performance.now();
  let sent = 0;
  for (let now = beganAt; now < beganAt + 1_000 * order.seconds; now = performance.now()) {
    const due = Math.floor(((now - beganAt) / FRAME_MS) * sockets.length);
    for (; sent < due; sent++) {
      const i = sent % sockets.length;
      if (hasEcho) sentAt[i]?.push(performance.now());
      sockets[i]?.send(event);
    }
    await sleep(1);
  }
  // Echoes that are under way arrive before it ends.
  for (let tries = 0; hasEcho && took.length < sent && tries < 50; tries++) await sleep(100);
  took.sort((one, other) => one - other);
  const at = (share: number) => took[Math.floor(took.length * share)] ?? 0;
  return { done: sent, failed: failed + (hasEcho ? sent - took.length : 0), p50: at(0.5), p99: at(0.99) };
}

/** Runs `call` one after another on each connection until the time is over. */
async function closedLoop(
  { connections, seconds }: Order,
  connect: (lane: number) => Promise<() => Promise<boolean>>,
) {
  const calls = await Promise.all(Array.from({ length: connections }, (_, lane) => connect(lane)));
  const until = performance.now() + 1_000 * seconds;
  let [done, failed] = [0, 0];
  await Promise.all(
    calls.map(async (call) => {
      while (performance.now() < until) {
        if (await call()) done++;
        else failed++;
      }
    }),
  );
  return { done, failed };
}

const turns = (order: Order, { create, last }: (typeof TURNS)['realtime']): Promise<Report> =>
  closedLoop(order, async (lane) => {
    const socket = await open(order, lane);
    return () =>
      new Promise((resolve) => {
        const hear = (data: Buffer) => {
          const isError = data.includes('"type":"error"');
          if (!isError && !data.includes(last)) return;
          socket.off('message', hear);
          resolve(!isError);
        };
        socket.on('message', hear);
        socket.send(create);
      });
  });

const posts = (order: Order): Promise<Report> => {
  const dispatcher = new Agent({ connections: order.connections, pipelining: 1 });
  const headers = { 'content-type': 'application/json' };
  return closedLoop(order, async (lane) => {
    const address = `http://127.0.0.1:${order.port}${order.paths[lane % order.paths.length]}`;
    return async () => {
      const answer = await request(address, { method: 'POST', headers, body: POST, dispatcher });
      return (await answer.body.text()).includes(LAST);
    };
  });
};
