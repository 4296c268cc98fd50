// The least that a proxy of sockets in Node does: `ws` on both sides, no checks, no limits, no log. Arguments: the port to listen on, and
// the origin to send to.
import { WebSocket, WebSocketServer } from 'ws';

const [port, origin] = process.argv.slice(2);
const options = { perMessageDeflate: false };

new WebSocketServer({ ...options, port: Number(port), host: '127.0.0.1' }).on(
  'connection',
  (holder, { url }) => {
    const upstream = new WebSocket(`${origin}${url}`, options);
    const early = [];
    const pass = (data, isBinary) => upstream.send(data, { binary: isBinary });
    holder.on('message', (data, isBinary) =>
      upstream.readyState === WebSocket.OPEN ? pass(data, isBinary) : early.push([data, isBinary]),
    );
    upstream.on('open', () => {
      for (const each of early) pass(...each);
    });
    upstream.on('message', (data, isBinary) => holder.send(data, { binary: isBinary }));
    for (const [one, other] of [
      [holder, upstream],
      [upstream, holder],
    ]) {
      one.on('error', () => {});
      one.on('close', () => other.terminate());
    }
  },
);
