import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import { eventsOf, type Json } from '../sockets/responses-provider.ts';
import { type Billed, costOf, FATES, type Fate, numberIn, WORKLESS } from './billing-provider.ts';
import type { Books, Kind } from './kind.ts';
import { seeded } from './random.ts';

type Turn = { readonly model: string; readonly input: string; readonly max_output_tokens: number };

/** A provider of Responses over sockets that does random work within the bounds of each turn, and keeps its own books. */
export const startSocketBilling: Kind['startProvider'] = async (options): Promise<Books> => {
  const { prices, seed, fates = FATES, slowestMs = 40 } = options;
  const billed = new Map<string, Billed>();
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  const take = async (socket: WebSocket, event: Turn) => {
    const { model, input, max_output_tokens: maxTokens } = event;
    const random = seeded(seed + numberIn(model));
    const usage = {
      prompt_tokens: random.int(1, Buffer.byteLength(input)),
      completion_tokens: random.int(1, maxTokens),
      total_tokens: 0,
    };
    const fate = random.pick(fates);
    const price = prices.get(model) ?? { input: 0, output: 0 };
    const again = billed.get(model);
    if (again) again.times++;
    const microusd = WORKLESS.has(fate) ? 0 : costOf(usage, price);
    if (!again) billed.set(model, { fate, microusd, maxTokens, atMs: Date.now(), times: 1 });
    await sleep(random.int(0, slowestMs));
    const events = eventsOf(event, { input: usage.prompt_tokens, output: usage.completion_tokens });
    ENDS[fate](socket, events);
  };
  const server = createServer((_request, response) => void response.writeHead(404).end());
  server.on('upgrade', (request, socket, head) =>
    wss.handleUpgrade(request, socket, head, (accepted) => {
      accepted.on('error', () => {});
      accepted.on('message', (data) => void take(accepted, JSON.parse(String(data)) as Turn));
    }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    billed,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      for (const each of wss.clients) each.terminate();
      server.close();
      server.closeAllConnections();
    },
  };
};

const send = (socket: WebSocket, events: readonly unknown[], then?: () => void) => {
  for (const [i, each] of events.entries())
    socket.send(JSON.stringify(each), i === events.length - 1 ? then : undefined);
};
const error = (status: number) => [{ type: 'error', status, error: { code: 'x', message: 'no' } }];

/** How the provider ends a turn. A socket has no page of an intermediary: there, an error comes in the midst of a response. */
const ENDS: Readonly<Record<Fate, (socket: WebSocket, events: readonly Json[]) => void>> = {
  answer: send,
  silent: (socket, [created, delta, last]) => {
    const { response } = last as { response: Json };
    send(socket, [created, delta, { ...last, response: { ...response, usage: null } }]);
  },
  broken: (socket, [created]) => send(socket, [created], () => socket.terminate()),
  'hung up': (socket) => socket.terminate(),
  page: (socket, [created]) => send(socket, [created, ...error(502)]),
  'bad request': (socket) => send(socket, error(400)),
  'rate limited': (socket) => send(socket, error(429)),
  'own error': (socket) => send(socket, error(500)),
};
