import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';

/**
 * Serves a request as if it requested no upgrade (RFC 9110 §7.8: a server may ignore it). Node no longer handles its connection, so the
 * server reads it again. Java's HttpClient requests `h2c` with the first request of each connection without TLS.
 */
export function serveWithoutUpgrade(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    const kept = name.toLowerCase() === 'connection' ? withoutOptions(value) : value;
    if (!OF_UPGRADES.has(name.toLowerCase()) && kept !== '') lines.push(`${name}: ${kept}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}

/** RFC 7540 §3.2.1. */
const OF_UPGRADES: ReadonlySet<string> = new Set(['upgrade', 'http2-settings']);

const withoutOptions = (connection: string): string =>
  connection
    .split(',')
    .map((option) => option.trim())
    .filter((option) => !OF_UPGRADES.has(option.toLowerCase()))
    .join(', ');
