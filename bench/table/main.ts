// Fills in the table of docs/reference/performance.md: gateways and peers side by side in one run. README.md says how.
import { execFileSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { CHECKOUT } from '../processes.ts';
import { closedLoop, LOADS } from './load.ts';
import { NEWER_NODES, type Peer, startPeers, type Urls } from './peers.ts';
import { render, summary } from './render.ts';
import { isDefaultFile, keepRow, ROWS, type RowId, readResults } from './results.ts';
import {
  CALLED,
  callTurns,
  freshTurns,
  type Gateway,
  inRounds,
  issueTurns,
  LIMITED,
  OVER_TLS,
  ROTATING,
  rotateTurns,
  SHORT_32K,
  SHORT_256K,
  type Turn,
  toolServer,
  UNLIMITED,
} from './rows.ts';
import { type Services, startServices } from './services.ts';
import { startTurns } from './start.ts';

const ROUNDS = Number(process.env.ROUNDS ?? 5);
const SECONDS = Number(process.env.SECONDS ?? 1.2);
const WARM_SECONDS = Number(process.env.WARM_SECONDS ?? 6);
const chosen = (process.env.ROWS ?? Object.keys(ROWS).join()).split(',') as RowId[];
for (const id of chosen) if (!(id in ROWS)) throw new Error(`ROWS: ${id} is none of ${Object.keys(ROWS)}`);
const nodes = [process.execPath, ...(process.env.NODES?.split(',') ?? NEWER_NODES)]
  .map((path) => ({ path, major: Number(version(path).split('.')[0]) }))
  .filter(({ major }, index, all) => all.findIndex((each) => each.major === major) === index)
  .sort((a, b) => a.major - b.major)
  .map(({ path, major }) => ({ path, name: `Presign, Node ${major}` }));
const newest = nodes.at(-1)?.path ?? process.execPath;
const machine = `${cpus().length} × ${cpus()[0]?.model}; ${nodes.map(({ path }) => `Node ${version(path)}`).join(', ')}`;
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
  cwd: CHECKOUT,
  encoding: 'utf8',
}).trim();
if (process.env.CHECKOUT && isDefaultFile)
  throw new Error('CHECKOUT needs RESULTS: the documents are about this commit');
const skipped: string[] = [];

const needsServices = chosen.some((id) => id !== 'start');
const turnsOf = needsServices ? await prepare() : undefined;
for (const id of Object.keys(ROWS) as RowId[]) {
  if (!chosen.includes(id)) continue;
  const began = performance.now();
  const loadBefore = loadavg()[0] ?? 0;
  const rounds = id === 'start' ? Math.min(ROUNDS, 3) : ROUNDS;
  const turns = id === 'start' ? startTurns(nodes) : ((await turnsOf?.(id)) ?? []);
  const failed: string[] = [];
  const lasts = { seconds: SECONDS, warmSeconds: WARM_SECONDS };
  const figures = await inRounds(turns, rounds, lasts, (why) => {
    console.log(`${id}: ${why}`);
    failed.push(why.slice(0, 120));
    process.exitCode = 1;
  });
  const seconds = Math.max(SECONDS, CALLED[id]?.leastSeconds ?? 0);
  const at = { measuredAt: new Date().toISOString(), commit, machine, seconds, loadBefore };
  keepRow(id, { ...at, ...figures, leftOut: [...(id in CALLED ? skipped : []), ...failed] });
  console.log(`${id}: ${((performance.now() - began) / 1_000).toFixed(0)} s`);
}
console.log(summary(readResults(), chosen));
if (isDefaultFile) render();
process.exit();

/** Starts everything; returns what makes the turns of a row. */
async function prepare(): Promise<(id: RowId) => Promise<Turn[]>> {
  const services = await startServices(process.execPath);
  const gateways: Gateway[] = [];
  for (const { name, path } of nodes) gateways.push({ name, ...(await services.start('gateway', path)) });
  const wants = (...ids: RowId[]) => ids.some((id) => chosen.includes(id));
  const issue = (isWanted: boolean, ask: object, count: number) =>
    isWanted ? services.issue('/v1/presign', ask, count) : [];
  const urls: Urls = {
    limited: await issue(true, LIMITED, ROTATING.few),
    unlimited: await issue(wants('free', 'free256k'), UNLIMITED, ROTATING.few),
    tls: await issue(wants('tls'), OVER_TLS, 100),
    short32k: await issue(wants('counted32k'), SHORT_32K, 8 * ROTATING.few),
    short256k: await issue(wants('counted256k'), SHORT_256K, 3 * ROTATING.few),
  };
  const mcp = wants('mcp')
    ? await services.issue('/v2/mcp-presign', toolServer(services.upstream.port), ROTATING.few)
    : [];
  for (const gateway of gateways) {
    for (const paths of Object.values(urls)) await open(gateway, paths);
    await open(gateway, mcp, LOADS.mcp);
  }
  await services.pauseIssuer(true);
  const skip = (why: string) => {
    console.log(`skipped: ${why} (pnpm --filter @presign/bench run peers)`);
    skipped.push(why);
  };
  const peers = [
    ...(await startPeers(services, urls, newest, skip)),
    ...gateways.map((each) => asPeer(each, urls, mcp)),
  ];
  for (const { isStopped, pid } of peers) if (isStopped && pid !== undefined) process.kill(pid, 'SIGSTOP');
  return async (id) => {
    if (id === 'fresh') return freshTurns(gateways, services);
    if (id === 'rotate')
      return rotateTurns(gateways, services, await manyUrls(services, gateways, urls.limited));
    if (id === 'issue') return issueTurns(await startIssuers(services), services);
    return callTurns(id, peers, services);
  };
}

/** Makes the first call of each URL, which reads its grant. */
async function open(
  { name, origin, pid }: Gateway,
  paths: readonly string[],
  load = LOADS.json,
): Promise<void> {
  if (paths.length === 0) return;
  await closedLoop({ name, origin, pid, paths }, { ...load, connections: 32 }, { calls: paths.length });
}

function asPeer(
  { name, pid, origin }: Gateway,
  { limited, unlimited, tls, short32k, short256k }: Urls,
  mcp: readonly string[],
): Peer {
  const to = { origin, paths: limited };
  const targets = {
    ...{ json: to, burst: to, paced: to, rate: to },
    ...{
      in32k: to,
      in256k: to,
      in1m: to,
      out200k: to,
      chat32k: to,
      chat256k: to,
      free256k: { origin, paths: unlimited },
    },
    ...{
      counted32k: { origin, paths: short32k },
      counted256k: { origin, paths: short256k },
      mcp: { origin, paths: mcp },
    },
    ...{ free: { origin, paths: unlimited }, tls: { origin, paths: tls } },
  };
  return { name, pid, settles: 'with costs', targets };
}

/** 12,000 URLs that each gateway has served, the first 1,000 of them known. */
async function manyUrls(
  services: Services,
  gateways: readonly Gateway[],
  few: readonly string[],
): Promise<string[]> {
  await services.pauseIssuer(false);
  const more: string[] = [];
  while (few.length + more.length < ROTATING.many)
    more.push(...(await services.issue('/v1/presign', LIMITED, 500)));
  await services.pauseIssuer(true);
  for (const gateway of gateways) await open(gateway, more);
  return [...few, ...more];
}

/** An issuer on each Node. The first one goes on, too, because it may hold a lock that they need. */
async function startIssuers(services: Services): Promise<Gateway[]> {
  await services.forgetSettled();
  await services.pauseIssuer(false);
  const issuers: Gateway[] = [];
  for (const { name, path } of nodes) issuers.push({ name, ...(await services.start('issuer', path)) });
  return issuers;
}

function version(node: string): string {
  return execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim();
}
