// The callers of sockets.ts, in a process of their own. Takes an order from its parent, and sends a report when it is done.
import { once } from 'node:events';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';

export type Order = {
  /** Sockets without a turn; turns or streamed POST requests, one after another on each connection. */
  readonly kind: 'idle' | 'turns' | 'posts';
  readonly port: number;
  readonly paths: readonly string[];
  readonly connections: number;
  readonly seconds: number;
};
export type Report = { readonly done: number; readonly failed: number };

/** Sockets that are opened at once. */
const AT_ONCE = 50;
const BODY = { model: 'gpt-4o-mini', input: 'x'.repeat(880), max_output_tokens: 500 };
const CREATE = JSON.stringify({ type: 'response.create', ...BODY });
const POST = JSON.stringify({ ...BODY, stream: true });
const LAST = '"response.completed"';

process.once('message', async (order: Order) => {
  const report = await { idle, turns, posts }[order.kind](order);
  process.send?.(report);
});

async function open(address: string): Promise<WebSocket> {
  const socket = new WebSocket(address, { perMessageDeflate: false });
  await once(socket, 'open');
  socket.on('error', () => {});
  return socket;
}

async function idle({ port, paths, connections }: Order): Promise<Report> {
  let [next, done, failed] = [0, 0, 0];
  const lane = async () => {
    while (next < connections) {
      const path = paths[next++ % paths.length];
      await open(`ws://127.0.0.1:${port}${path}`).then(
        () => done++,
        () => failed++,
      );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return { done, failed };
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

const turns = (order: Order): Promise<Report> =>
  closedLoop(order, async (lane) => {
    const socket = await open(`ws://127.0.0.1:${order.port}${order.paths[lane % order.paths.length]}`);
    return () =>
      new Promise((resolve) => {
        const hear = (data: Buffer) => {
          const isError = data.includes('"type":"error"');
          if (!isError && !data.includes(LAST)) return;
          socket.off('message', hear);
          resolve(!isError);
        };
        socket.on('message', hear);
        socket.send(CREATE);
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
