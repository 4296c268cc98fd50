import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports below those that a system gives to connections (Linux: 32,768 and up). Each of vitest's workers has its own, so no other
 * process takes a port before its use.
 */
const FIRST = 10_000;
const OF_A_WORKER = 1_200;
const first = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % 8) * OF_A_WORKER;
let next = Math.floor(Math.random() * OF_A_WORKER);

/** A port of this machine's own address that is free. No port is returned twice. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < OF_A_WORKER; tries++) {
    const port = first + (next++ % OF_A_WORKER);
    if (await isFree(port)) return port;
  }
  throw new Error('no port is free');
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
