// Sends one attack as fast as it can; `attacks.ts` starts it. Each request is made once and written as bytes, so that the attacker takes
// little time itself.
import { once as event } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTACKS, type Attack } from '@presign/test/harness/attack-bodies.ts';

// It must not outlive the process that measures.
process.once('disconnect', () => process.exit());

type Order = { host: string; port: number; paths: string[]; name: string; connections: number };

process.once('message', ({ host, port, paths, name, connections }: Order) => {
  const attack = ATTACKS.find((each) => each.name === name);
  if (!attack) throw new Error(name);
  const requests = paths.map((path) => requestOf(attack, `${host}:${port}`, path));
  for (let i = 0; i < connections; i++)
    void repeat({ host, port }, attack, requests[i % requests.length] ?? Buffer.alloc(0));
});

async function repeat(at: { host: string; port: number }, attack: Attack, bytes: Buffer): Promise<never> {
  for (;;) {
    const status = await once(at, attack, bytes);
    process.send?.(status);
    // A refused connection is no reason to spin.
    if (status === 'error') await sleep(10);
  }
}

/** Resolves to the status, once the gateway has closed the connection or refused the request. */
async function once(at: { host: string; port: number }, { holder }: Attack, bytes: Buffer): Promise<string> {
  const socket = connect(at);
  let status = 'error';
  socket.on('error', () => {});
  socket.once('data', (head) => {
    status = head.toString('latin1', 9, 12);
    if (holder === 'leave' || Number(status) >= 400) socket.destroy();
  });
  socket.on('data', () => {});
  socket.write(holder === 'stall' ? bytes.subarray(0, -1) : bytes);
  await event(socket, 'close').catch(() => {});
  return status;
}

function requestOf({ body, headers, holder, raw, times = 1 }: Attack, host: string, path: string): Buffer {
  if (raw) return Buffer.from(raw(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\n`), 'latin1');
  const bytes = Buffer.from(body?.() ?? '');
  const chunked = holder === 'bytes';
  const all = {
    host,
    'content-type': 'application/json',
    ...(chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': bytes.length }),
    ...headers,
  };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = (connection: string) =>
    `POST ${path} HTTP/1.1\r\n${head.join('')}connection: ${connection}\r\n\r\n`;
  const content = chunked ? Buffer.from(inBytes(bytes), 'latin1') : bytes;
  const request = (connection: string) => Buffer.concat([Buffer.from(text(connection)), content]);
  return Buffer.concat([...Array.from({ length: times - 1 }, () => request('keep-alive')), request('close')]);
}

const inBytes = (body: Buffer): string =>
  `${Array.from(body, (byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join('')}0\r\n\r\n`;
