import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '@presign/test/harness/free-port.ts';
import { CHECKOUT, childrenOf, rssOf, temporaryFolder } from '../processes.ts';
import type { Turn } from './rows.ts';

const ROOT = fileURLToPath(CHECKOUT);
const BODY = JSON.stringify({ model: 'sandbox-1', messages: [{ role: 'user', content: 'Hello' }] });
const IDLE_MS = 3_000;
const GIVEN_UP_MS = 120_000;

/**
 * Turns that start the services as the script `start` does, in a folder that has been used before and on all cores: from
 * the start of the process to the first answer through the gateway, and the memory of the idle process and its children.
 */
export function startTurns(nodes: readonly { readonly name: string; readonly path: string }[]): Turn[] {
  return nodes.map(({ name, path }) => {
    const dir = temporaryFolder('presign-start-');
    return { subject: name, measure: () => measureStart(path, dir) };
  });
}

async function measureStart(node: string, dir: string): Promise<{ firstReplyMs: number; idleRssMb: number }> {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: { start: string };
  };
  const [issuerPort, gatewayPort] = [await freePort(), await freePort()];
  const began = performance.now();
  const cores = `0-${availableParallelism() - 1}`;
  const child = spawn('taskset', ['-c', cores, 'sh', '-c', `exec ${scripts.start}`], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: [dirname(node), join(ROOT, 'node_modules/.bin'), process.env.PATH].join(delimiter),
      HOME: process.env.HOME,
      PRESIGN_DATA_DIR: dir,
      ISSUER_PORT: String(issuerPort),
      GATEWAY_PORT: String(gatewayPort),
    },
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  await firstReply(child, `http://127.0.0.1:${issuerPort}`, join(dir, 'api-key'), began);
  const firstReplyMs = performance.now() - began;
  await sleep(IDLE_MS);
  const idleRssMb = treeRss(child.pid ?? 0);
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
  process.off('exit', kill);
  return { firstReplyMs, idleRssMb };
}

/** Issues a URL and calls it, as soon as that works. */
async function firstReply(
  child: ChildProcess,
  issuer: string,
  keyFile: string,
  began: number,
): Promise<void> {
  while (performance.now() - began < GIVEN_UP_MS) {
    if (child.exitCode !== null) throw new Error('start ended');
    const status = await tryOnce(issuer, keyFile).catch(() => 0);
    if (status === 200) return;
    await sleep(20);
  }
  throw new Error('start gave no reply');
}

async function tryOnce(issuer: string, keyFile: string): Promise<number> {
  const headers = {
    authorization: `Bearer ${readFileSync(keyFile, 'utf8').trim()}`,
    'content-type': 'application/json',
  };
  const ask = { provider: 'sandbox', path: '/v1/chat/completions', client_api_key: 'sk-sandbox' };
  const issued = await fetch(`${issuer}/v1/presign`, { method: 'POST', headers, body: JSON.stringify(ask) });
  const { url } = (await issued.json()) as { url: string };
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: BODY,
  });
  await answer.arrayBuffer();
  return answer.status;
}

const treeRss = (pid: number): number =>
  childrenOf(pid).reduce((sum, child) => sum + treeRss(child), rssOf(pid));
