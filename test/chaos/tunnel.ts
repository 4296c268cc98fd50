import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** An address that stays while the server behind it changes, and a line that can fall silent. */
export type Tunnel = {
  readonly port: number;
  /** Passes nothing on any more, and says nothing of it: a lagging line. */
  readonly silence: () => void;
  /** Cuts all connections, and leads new ones to another port. */
  readonly lead: (port: number) => void;
  /** How long each thing that is sent to the server takes from now on. */
  readonly delay: (ms: number) => void;
  /** Leads new connections to another port, and leaves the others where they are. */
  readonly turn: (port: number) => void;
  readonly close: () => void;
};

/** @param firstDelayMs how long what is sent to the server takes to get there */
export async function openTunnel(firstPort: number, firstDelayMs = 0): Promise<Tunnel> {
  let delayMs = firstDelayMs;
  let target = firstPort;
  let silent = false;
  const sockets = new Set<Socket>();
  const server = createServer((inner) => {
    const outer = connect(target, '127.0.0.1');
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      const pass = (chunk: Buffer) => void (silent || to.destroyed || to.write(chunk));
      // Chunks that wait keep those behind them waiting, in whichever order the timers end.
      const waiting: Buffer[] = [];
      const passNext = () => void pass(waiting.shift() ?? Buffer.alloc(0));
      from.on('data', (chunk: Buffer) => {
        if (from === outer || (delayMs === 0 && waiting.length === 0)) return pass(chunk);
        waiting.push(chunk);
        setTimeout(passNext, delayMs);
      });
      from.on('error', () => {});
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    silence: () => {
      silent = true;
    },
    delay: (ms) => {
      delayMs = ms;
    },
    turn: (port) => {
      target = port;
    },
    lead: (port) => {
      target = port;
      silent = false;
      cut();
    },
    close: () => {
      cut();
      server.close();
    },
  };
}
