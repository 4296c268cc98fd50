import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Balancer = {
  readonly origin: string;
  /** The `Cookie` header of each request, in order; undefined where there was none. */
  readonly cookies: (string | undefined)[];
  readonly close: () => Promise<void>;
};

/**
 * A balancer as nginx, HAProxy and cloud providers run it: it sends a request without a cookie to the next replica, sets a cookie with the
 * replica's number, and sends requests with the cookie there. A session that was begun last loses its replica without the cookie.
 * @param attributes of the cookie
 */
export async function startBalancer(
  replicas: readonly string[],
  attributes = 'Path=/; HttpOnly',
): Promise<Balancer> {
  const cookies: (string | undefined)[] = [];
  let next = 0;
  const server = createServer((incoming, outgoing) => {
    const { cookie } = incoming.headers;
    cookies.push(cookie);
    const known = /(?:^|; )route=(\d+)/.exec(cookie ?? '')?.[1];
    const { method, url = '', headers } = incoming;
    const replica = known === undefined ? next % replicas.length : Number(known);
    if (known === undefined && headers['mcp-session-id'] === undefined && !/[?&]session_?id=/i.test(url))
      next++;
    const { hostname, port } = new URL(replicas[replica] ?? '');
    const passed = request({ hostname, port, method, path: url, headers }, (answer) => {
      const set = known === undefined ? { 'set-cookie': `route=${replica}; ${attributes}` } : {};
      outgoing.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...set }).flushHeaders();
      answer.pipe(outgoing);
      outgoing.once('close', () => answer.destroy());
    });
    passed.once('error', () => outgoing.destroy());
    outgoing.once('close', () => passed.destroy());
    incoming.pipe(passed);
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cookies,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
