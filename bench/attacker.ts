// Sends one attack as fast as it can; `attacks.ts` starts it.
import { request as send } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTACKS, type Attack } from '@presign/test/harness/attack-bodies.ts';

type Order = { origin: string; path: string; name: string; connections: number };

process.once('message', ({ origin, path, name, connections }: Order) => {
  const attack = ATTACKS.find((each) => each.name === name);
  if (!attack) throw new Error(name);
  const body = attack.body();
  for (let i = 0; i < connections; i++) void repeat(origin + path, attack, body);
});

async function repeat(url: string, attack: Attack, body: string | Buffer): Promise<never> {
  for (;;) {
    const status = await once(url, attack, body);
    process.send?.(status);
    // A refused connection is no reason to spin.
    if (status === 'error') await sleep(10);
  }
}

const once = (url: string, { headers, holder }: Attack, body: string | Buffer): Promise<string> =>
  new Promise((resolve) => {
    const length = Buffer.byteLength(body);
    const framing = holder === 'bytes' ? {} : { 'content-length': length };
    const all = { 'content-type': 'application/json', ...framing, ...headers };
    const request = send(url, { method: 'POST', headers: all, agent: false }, (response) => {
      const status = String(response.statusCode);
      response.once('data', () => holder === 'leave' && request.destroy());
      response.once('close', () => resolve(status)).resume();
    });
    request.once('error', () => resolve('error'));
    if (holder === 'bytes') for (const byte of Buffer.from(body)) request.write(Buffer.of(byte));
    if (holder === 'stall') request.write(Buffer.from(body).subarray(0, -1));
    else request.end(holder === 'bytes' ? undefined : body);
  });
