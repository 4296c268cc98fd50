import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A way to a server that can be cut and restored while the server lives on, as when a network fails. */
export type Road = {
  readonly port: number;
  /** Ends all connections and refuses new ones. */
  readonly cut: () => Promise<void>;
  /** Lets what is sent arrive, but no reply come back. */
  readonly loseReplies: () => void;
  readonly mend: () => Promise<void>;
};

export async function buildRoad(to: number): Promise<Road> {
  const sockets = new Set<Socket>();
  let losing = false;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  };
  const build = () =>
    createServer((near) => {
      const far = connect(to, '127.0.0.1');
      for (const socket of [near, far]) keep(socket);
      near.on('data', (chunk) => void far.write(chunk)).on('close', () => far.destroy());
      far.on('data', (chunk) => losing || near.write(chunk)).on('close', () => near.destroy());
    });
  let server = build();
  const listen = async (port: number) => {
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const cut = async () => {
    const closed = closing(server);
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return {
    port,
    cut,
    loseReplies: () => {
      losing = true;
    },
    mend: async () => {
      if (server.listening) await cut();
      losing = false;
      server = build();
      await listen(port);
    },
  };
}

const closing = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()));
