/**
 * Holds 10,000 slow streams open through one gateway process: each lasts a minute and gets an event every 5 seconds. Prints the
 * memory, the CPU time and the event loop's delay of the gateway meanwhile, and checks that every stream ends, is charged its
 * usage, and leaves no hold.
 *
 *     npx tsx bench/scale/streams.ts [10000]
 *
 * A stream takes two file descriptors of the gateway, so `ulimit -n` must be above twice the number; else it opens fewer streams.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { keys } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { freePort } from '@presign/test/harness/free-port.ts';
import { cpuMicros, rssOf } from '../processes.ts';
import { LOADS } from '../table/load.ts';
import { NEWER_NODES } from '../table/peers.ts';
import { LIMITED } from '../table/rows.ts';
import { type Services, startServices } from '../table/services.ts';

const URLS = 500;
/** Streams that begin in a second. */
const PER_SECOND = 250;
/** Files of the gateway besides its streams: listeners, stores, the log. */
const SPARE_FILES = 150;

type Order = { readonly port: number; readonly paths: readonly string[]; readonly streams: number };
type Report = { readonly open: number; readonly ended: number; readonly failed: readonly string[] };

if (process.send) process.once('message', beClient);
else await main();

async function main(): Promise<void> {
  const wanted = Number(process.argv[2] ?? 10_000);
  const files = Number(/Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
  const streams = Math.min(wanted, Math.floor((files - SPARE_FILES) / 2));
  const node = NEWER_NODES.at(-1) ?? process.execPath;
  const services = await startServices(node);
  const metricsPort = await freePort();
  const gateway = await services.start('gateway', node, { METRICS_PORT: String(metricsPort) });
  const paths = await services.issue('/v1/presign', LIMITED, URLS);
  await services.pauseIssuer(true);
  const client = fork(fileURLToPath(import.meta.url), [], { execArgv: process.execArgv });
  process.on('exit', () => client.kill('SIGKILL'));
  let report: Report = { open: 0, ended: 0, failed: [] };
  client.on('message', (latest: Report) => {
    report = latest;
  });
  const idleMb = rssOf(gateway.pid);
  console.log(`${streams} streams; ulimit -n is ${files}; the idle gateway takes ${idleMb.toFixed(0)} MB`);
  client.send({ port: gateway.port, paths, streams } satisfies Order);
  let [cpu, at, most] = [cpuMicros(gateway.pid), performance.now(), 0];
  while (report.ended + report.failed.length < streams) {
    await sleep(10_000);
    const [cpuNow, now] = [cpuMicros(gateway.pid), performance.now()];
    const share = (cpuNow - cpu) / 10 / (now - at);
    [cpu, at] = [cpuNow, now];
    const rssMb = rssOf(gateway.pid);
    most = Math.max(most, rssMb);
    const { p50, p99 } = await delays(metricsPort);
    console.log(
      `${report.open} open, ${report.ended} ended, ${report.failed.length} failed; RSS ${rssMb.toFixed(0)} MB;`,
      `${share.toFixed(0)} % of a core; event loop late by ${p50} ms (p50), ${p99} ms (p99)`,
    );
  }
  console.log(`${(((most - idleMb) * 1_024) / streams).toFixed(1)} KB a stream`);
  await check(services, streams, report);
  process.exit();
}

/** Every stream must have been settled at its price, with no lease left. */
async function check({ redis, settled, lastCosts }: Services, streams: number, { failed }: Report) {
  for (let tries = 0; tries < 100 && (await settled()) < streams; tries++) await sleep(100);
  const leases = await Promise.all(
    Array.from({ length: PARTITIONS }, (_, partition) => redis.zcard(keys.leases(partition))),
  );
  const left = leases.reduce((sum, each) => sum + each, 0);
  const wrong = (await lastCosts()).filter((cost) => cost !== String(LOADS.paced.costMicrousd));
  console.log(`${await settled()} of ${streams} settled, ${left} leases left, ${wrong.length} wrong costs`);
  if (failed.length > 0) console.log([...new Set(failed)].slice(0, 5).join('\n'));
  if (failed.length + left + wrong.length > 0 || (await settled()) !== streams) process.exitCode = 1;
}

async function delays(port: number): Promise<{ p50: string; p99: string }> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const at = (percentile: string) => {
    const line = new RegExp(
      `^presign_event_loop_delay_seconds\\{[^}]*percentile="${percentile}"[^}]*\\} (\\S+)`,
      'm',
    );
    return (1_000 * Number(line.exec(text)?.[1])).toFixed(0);
  };
  return { p50: at('50'), p99: at('99') };
}

/** Opens the streams on plain sockets, so that the client takes little of the machine. */
async function beClient({ port, paths, streams }: Order): Promise<void> {
  const failed: string[] = [];
  let [open, ended] = [0, 0];
  const { body } = LOADS.paced;
  setInterval(() => process.send?.({ open, ended, failed } satisfies Report), 500);
  for (let i = 0; i < streams; i++) {
    if (i % PER_SECOND === 0) await sleep(1_000);
    const socket = connect(port, '127.0.0.1');
    open++;
    let last = '';
    socket.on('data', (chunk) => {
      last = (last + chunk.toString('latin1')).slice(-400);
      if (last.includes('data: [DONE]')) socket.destroy();
    });
    socket.on('error', (error) => {
      last = error.message;
    });
    socket.once('close', () => {
      open--;
      if (last.includes('data: [DONE]')) ended++;
      else failed.push(last);
    });
    const head = [
      `POST ${paths[i % paths.length]} HTTP/1.1`,
      'host: gateway.example.com',
      'content-type: application/json',
      'x-answer: slow',
      `content-length: ${Buffer.byteLength(body)}`,
    ];
    await once(socket, 'connect').catch(() => {});
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  }
}
