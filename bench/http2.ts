/**
 * Compares HTTP/1.1 and HTTP/2 to a provider over TLS, each with undici as the gateway uses it: CPU µs of this process for a call, and
 * its latency. The provider is a process of its own on this machine. Needs `openssl`.
 *
 *     npx tsx http2.ts
 */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, type Dispatcher } from 'undici';

const ROUNDS = Number(process.env.ROUNDS ?? 9);
const CALLS = Number(process.env.CALLS ?? 4_000);
const REQUEST = Buffer.alloc(1_024, 'q');
const ANSWER = Buffer.alloc(2_048, 'a');
const EVENT = Buffer.from(`data: ${'e'.repeat(180)}\n\n`);
const EVENTS = 80;

/** The provider: it speaks both protocols, as the client's first message asks. */
function serve(folder: string): void {
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => readFileSync(join(folder, name)));
  const server = createSecureServer({ key, cert, allowHTTP1: true }, (request, response) => {
    request.resume().once('end', () => {
      if (request.url === '/json') return response.writeHead(200).end(ANSWER);
      response.writeHead(200);
      let left = EVENTS;
      const next = () => {
        if (left-- === 0) return response.end();
        response.write(EVENT);
        setImmediate(next);
      };
      return next();
    });
  });
  process.once('disconnect', () => process.exit());
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}

async function measure(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'presign-http2-'));
  const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')];
  const key = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
  execFileSync('openssl', ['req', '-x509', ...key, ...files], { stdio: 'ignore' });
  const provider = fork(fileURLToPath(import.meta.url), [folder], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [port] = (await once(provider, 'message')) as [number];
  const origin = `https://127.0.0.1:${port}`;
  for (const path of ['/json', '/stream'])
    for (const atOnce of [64, 512]) {
      const connect = { rejectUnauthorized: false, timeout: 60_000 };
      const agents = {
        'HTTP/1.1': new Agent({ connect, pipelining: 1 }),
        'HTTP/2': new Agent({ connect, allowH2: true, pipelining: 100 }),
        'HTTP/2, 4 connections': new Agent({ connect, allowH2: true, pipelining: 256, connections: 4 }),
      };
      const rows = Object.entries(agents).map(([name, agent]) => ({
        name,
        agent,
        cpu: [] as number[],
        p50: [] as number[],
        p99: [] as number[],
      }));
      for (let round = 0; round <= ROUNDS; round++)
        for (const { agent, cpu, p50, p99 } of rows) {
          // The connections of the last round have closed.
          await run(agent, origin, path, atOnce, atOnce);
          const times = await run(agent, origin, path, atOnce, path === '/json' ? CALLS : CALLS / 4);
          // The first round warms up.
          if (round === 0) continue;
          cpu.push(times.cpu);
          p50.push(times.p50);
          p99.push(times.p99);
        }
      for (const { name, cpu, p50, p99 } of rows)
        console.log(
          [
            path,
            atOnce,
            name,
            `${median(cpu).toFixed(0)} µs CPU`,
            `p50 ${median(p50).toFixed(1)} ms`,
            `p99 ${median(p99).toFixed(1)} ms`,
            `CPU × ${median(cpu.map((each, i) => each / (rows[0]?.cpu[i] ?? 1))).toFixed(2)}`,
            `p50 × ${median(p50.map((each, i) => each / (rows[0]?.p50[i] ?? 1))).toFixed(2)}`,
            `p99 × ${median(p99.map((each, i) => each / (rows[0]?.p99[i] ?? 1))).toFixed(2)}`,
          ].join('\t'),
        );
      await Promise.all(Object.values(agents).map((agent) => agent.destroy()));
    }
  provider.kill();
}

/** Makes calls, always so many at once. */
async function run(agent: Dispatcher, origin: string, path: string, atOnce: number, calls: number) {
  const took: number[] = [];
  let begun = 0;
  const before = process.cpuUsage();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (begun++ < calls) {
        const start = performance.now();
        await call(agent, origin, path);
        took.push(performance.now() - start);
      }
    }),
  );
  const { user, system } = process.cpuUsage(before);
  took.sort((a, b) => a - b);
  return {
    cpu: (user + system) / calls,
    p50: took[took.length >> 1] ?? 0,
    p99: took[Math.floor(took.length * 0.99)] ?? 0,
  };
}

const call = (agent: Dispatcher, origin: string, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = [
      'content-type',
      'application/json',
      'authorization',
      'Bearer sk-test',
      'content-length',
      '1024',
    ];
    agent.dispatch(
      { origin, path, method: 'POST', headers, body: REQUEST },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, status) => {
          if (status !== 200) reject(new Error(`status ${status}`));
        },
        onResponseData: () => {},
        onResponseEnd: () => resolve(),
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

if (process.send === undefined) await measure();
else serve(process.argv[2] ?? '');
