import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';

const DAY_MS = 86_400_000;

type Pem = { readonly key: string; readonly cert: string };

/** A company's own certificate authority. */
export async function newAuthority(): Promise<Pem> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'Test authority' }], {
    keySize: 2048,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { key, cert };
}

/** A certificate for one name: of an authority, or else self-signed. */
export async function newCertificate(name: string, authority?: Pem, isExpired = false): Promise<Pem> {
  const { private: key, cert } = await generate([{ name: 'commonName', value: name }], {
    keySize: 2048,
    notBeforeDate: new Date(Date.now() - 2 * DAY_MS),
    notAfterDate: new Date(Date.now() + (isExpired ? -DAY_MS : DAY_MS)),
    extensions: [
      { name: 'subjectAltName', altNames: [{ type: 2, value: name }] },
      { name: 'extKeyUsage', serverAuth: true },
    ],
    ...(authority && { ca: authority }),
  });
  return { key, cert };
}

/** A provider behind TLS. */
export type TlsUpstream = {
  /** By the name `localhost`. */
  readonly url: string;
  /** Requests, with their header lines and bodies. */
  readonly seen: { readonly headers: readonly string[]; readonly body: string }[];
  /** The names that clients asked for (SNI) in handshakes that were completed. */
  readonly names: (string | false)[];
  readonly close: () => Promise<void>;
};

export async function startTlsUpstream(pem: Pem): Promise<TlsUpstream> {
  const seen: TlsUpstream['seen'] = [];
  const names: TlsUpstream['names'] = [];
  const server = createServer(pem, (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += String(chunk);
    });
    request.on('end', () => {
      seen.push({ headers: request.rawHeaders, body });
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
    });
  });
  server.on('secureConnection', (socket: TLSSocket & { servername?: string | false }) =>
    names.push(socket.servername ?? false),
  );
  return { url: `https://localhost:${await listen(server)}`, seen, names, close: () => closed(server) };
}

/** TLS in front of a server on loopback, as a load balancer has it. `port`: by the name `localhost`. */
export async function startTlsFront(
  pem: Pem,
  to: URL,
): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createTlsServer(pem, (socket) => {
    const behind = connect(Number(to.port), to.hostname);
    for (const [from, other] of [
      [socket, behind],
      [behind, socket],
    ] as const)
      from.on('error', () => other.destroy()).pipe(other);
  });
  return { port: await listen(server), close: () => closed(server) };
}

/** A provider that ends each connection after the first bytes of the handshake. */
export async function startCutTls(): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {}).once('data', () => socket.destroy());
  });
  return { url: `https://localhost:${await listen(server)}`, close: () => closed(server) };
}

/** A forward proxy that opens tunnels, as a company has one. */
export type ForwardProxy = {
  readonly url: string;
  /** The targets of tunnels, with the credentials that came along. */
  readonly tunnels: { readonly to: string; readonly login: string | undefined }[];
  readonly close: () => Promise<void>;
};

export async function startProxy(): Promise<ForwardProxy> {
  const tunnels: ForwardProxy['tunnels'] = [];
  const server = createHttpServer();
  const sockets = new Set<Socket>();
  // An HTTP server forgets the connections of its tunnels, and waits for them when it closes.
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('connect', (request, socket) => {
    const to = request.url ?? '';
    tunnels.push({ to, login: request.headers['proxy-authorization'] });
    const { hostname, port } = new URL(`https://${to}`);
    const upstream = connect(Number(port || 443), hostname, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    upstream.on('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
    socket.on('error', () => upstream.destroy());
  });
  const close = () => {
    for (const socket of sockets) socket.destroy();
    return closed(server);
  };
  return { url: `http://127.0.0.1:${await listen(server)}`, tunnels, close };
}

async function listen(server: TcpServer): Promise<number> {
  // Both families: `localhost` may be either.
  await new Promise<void>((resolve) => server.listen(0, resolve));
  return (server.address() as AddressInfo).port;
}

function closed(server: TcpServer | Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
}
