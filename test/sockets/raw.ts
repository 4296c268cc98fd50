import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { eventually } from '../harness/eventually.ts';

/** A socket whose frames a test writes byte by byte. */
export async function rawSocket(
  url: string,
): Promise<{ socket: Socket; got: () => Buffer; ended: Promise<void> }> {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  let got = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    got = Buffer.concat([got, chunk]);
  });
  socket.on('error', () => {});
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const key = randomBytes(16).toString('base64');
  socket.write(
    `GET ${pathname}${search} HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  await eventually(async () => got.includes('\r\n\r\n'));
  if (!got.toString('latin1').startsWith('HTTP/1.1 101'))
    throw new Error(`the handshake was answered with ${got}`);
  got = got.subarray(got.indexOf('\r\n\r\n') + 4);
  return { socket, got: () => got, ended };
}

/** A frame of a client, with a mask of zeros. */
export function frame(opcode: number, payload: Buffer | string, { fin = true, masked = true } = {}): Buffer {
  const bytes = Buffer.from(payload);
  const head = Buffer.from([(fin ? 0x80 : 0) | opcode, (masked ? 0x80 : 0) | Math.min(bytes.length, 126)]);
  const length = Buffer.alloc(bytes.length > 125 ? 2 : 0);
  if (length.length > 0) length.writeUInt16BE(bytes.length);
  return Buffer.concat([head, length, masked ? Buffer.alloc(4) : Buffer.alloc(0), bytes]);
}
/** The code of the close frame at the end of what a client got. */
export const closeCode = (got: Buffer): number | undefined => {
  const at = got.lastIndexOf(0x88);
  return at < 0 ? undefined : got.readUInt16BE(at + 2);
};
export const [CONTINUATION, TEXT, PING] = [0, 1, 9] as const;
