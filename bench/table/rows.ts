import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { closedLoop, type Figures, LOADS, type Load, openLoop, type Target } from './load.ts';
import type { Peer } from './peers.ts';
import type { Rounds, RowId } from './results.ts';
import type { Services } from './services.ts';

export type Gateway = { readonly name: string; readonly pid: number; readonly origin: string };
/** A measurement of one row: one turn of one subject in a round. */
export type Turn = {
  readonly subject: string;
  readonly measure: (seconds: number) => Promise<Record<string, number>>;
};

const CALLS_PER_SECOND = 400;
const FRESH = { connections: 16, perSecond: 400 };
const MANY = 12_000;
const FEW = 1_000;

/** The rows in which peers take part. Without a load the row is the open loop. */
export const CALLED: Partial<Record<RowId, Load | undefined>> = {
  json: LOADS.json,
  free: LOADS.json,
  burst: LOADS.burst,
  paced: LOADS.paced,
  mcp: LOADS.mcp,
  tls: LOADS.json,
  in32k: LOADS.in32k,
  in256k: LOADS.in256k,
  in1m: LOADS.in1m,
  free256k: LOADS.in256k,
  chat32k: LOADS.chat32k,
  counted32k: LOADS.chat32k,
  chat256k: LOADS.chat256k,
  counted256k: LOADS.chat256k,
  out200k: LOADS.out200k,
  rate: undefined,
};

/** The turns of a row in which peers and gateways make the same calls. */
export function callTurns(id: RowId, peers: readonly Peer[], services: Services): Turn[] {
  return peers.flatMap((peer) => {
    const to = peer.targets[id];
    if (!to) return [];
    const target = { ...to, name: peer.name, pid: peer.pid };
    const usual = CALLED[id];
    const load = usual && { ...usual, connections: peer.connections ?? usual.connections };
    const run = load
      ? (seconds: number) => closedLoop(target, load, { seconds: Math.max(seconds, load.leastSeconds ?? 0) })
      : (seconds: number) =>
          openLoop(target, LOADS.json, CALLS_PER_SECOND, Math.max(1, Math.round(2 * seconds)));
    const measure = (seconds: number) => checked(peer, services, usual ?? LOADS.json, () => run(seconds));
    return [{ subject: peer.name, measure }];
  });
}

/** Measures one peer, and checks that each of its calls was counted, and charged what it costs. */
async function checked(peer: Peer, services: Services, load: Load, run: () => Promise<Figures>) {
  await services.forgetSettled();
  if (peer.isStopped && peer.pid !== undefined) process.kill(peer.pid, 'SIGCONT');
  const { calls, cpuUs, perSecond, p50Ms, p99Ms, rssMb } = await run();
  if (peer.isStopped && peer.pid !== undefined) process.kill(peer.pid, 'SIGSTOP');
  if (peer.settles) {
    for (let tries = 0; tries < 50 && (await services.settled()) < calls; tries++) await sleep(20);
    const settled = await services.settled();
    if (settled !== calls) throw new Error(`${peer.name} settled ${settled} of ${calls} calls`);
    const wrong = (await services.lastCosts()).find((cost) => cost !== String(load.costMicrousd));
    if (peer.settles === 'with costs' && wrong !== undefined)
      throw new Error(`${peer.name} charged ${wrong} and not ${load.costMicrousd}`);
  }
  return { cpuUs, perSecond, p50Ms, p99Ms, rssMb };
}

/** First calls of new URLs, and further calls of the same ones. */
export function freshTurns(gateways: readonly Gateway[], services: Services): Turn[] {
  const load = { ...LOADS.json, connections: FRESH.connections };
  return gateways.map(({ name, pid, origin }) => ({
    subject: name,
    measure: async (seconds) => {
      const calls = Math.round(FRESH.perSecond * seconds);
      await services.forgetSettled();
      await services.pauseIssuer(false);
      const paths = await services.issue('/v1/presign', LIMITED, calls);
      // The issuer may have work left after its answer.
      await sleep(200);
      await services.pauseIssuer(true);
      const first = await closedLoop({ name, origin, paths, pid }, load, { calls });
      const later = await closedLoop({ name, origin, paths, pid }, load, { calls: 2 * calls });
      return { firstUs: first.cpuUs, laterUs: later.cpuUs, ratio: first.cpuUs / later.cpuUs };
    },
  }));
}

/** The same load on few and on many URLs. All have been called before. */
export function rotateTurns(
  gateways: readonly Gateway[],
  services: Services,
  paths: readonly string[],
): Turn[] {
  const few = paths.slice(0, FEW);
  return gateways.map(({ name, pid, origin }) => {
    const own = [...paths];
    const on = (target: readonly string[]): Target => ({ name, origin, paths: target, pid });
    return {
      subject: name,
      measure: async (seconds) => {
        await services.forgetSettled();
        const of1000 = await closedLoop(on(few), LOADS.json, { seconds });
        const of12000 = await closedLoop(on(own), LOADS.json, { seconds });
        return { fewUs: of1000.cpuUs, manyUs: of12000.cpuUs, ratio: of12000.cpuUs / of1000.cpuUs };
      },
    };
  });
}

/** `POST /v1/presign` and `POST /v2/mcp-presign`. */
export function issueTurns(issuers: readonly Gateway[], { headers }: Services): Turn[] {
  const load = (body: object): Load => ({
    body: JSON.stringify(body),
    headers,
    leastBytes: 100,
    connections: 32,
  });
  return issuers.map(({ name, pid, origin }) => ({
    subject: name,
    measure: async (seconds) => {
      const one = async (path: string, body: object) =>
        closedLoop({ name, origin, paths: [path], pid }, load(body), { seconds });
      const presign = await one('/v1/presign', LIMITED);
      const bundle = await one('/v2/mcp-presign', BUNDLE);
      return {
        ...{
          presignPerCore: 1e6 / presign.cpuUs,
          presignPerSecond: presign.perSecond,
          presignP99Ms: presign.p99Ms,
        },
        ...{
          bundlePerCore: 1e6 / bundle.cpuUs,
          bundlePerSecond: bundle.perSecond,
          bundleP99Ms: bundle.p99Ms,
        },
      };
    },
  }));
}

const CALLABLE = {
  provider: 'openai',
  path: '/v1/chat/completions',
  client_api_key: 'sk-real',
  expires_in: 86_400,
};
const SPENDS = { cost_limit: 1_000_000_000_000 };
export const UNLIMITED = CALLABLE;
export const LIMITED = { ...CALLABLE, ...SPENDS };
/** URLs with less money than their bodies cost if each byte is a token, and more than it costs once they are counted. */
export const SHORT_32K = { ...CALLABLE, cost_limit: 4_400 };
export const SHORT_256K = { ...CALLABLE, cost_limit: 18_500 };
export const OVER_TLS = { ...LIMITED, provider: 'tls' };
const server = (name: string, url: string) => ({
  ...{ name, url, transport: 'http' },
  ...{ auth_type: 'bearer', auth_config: { token: 'sk-real' } },
});
export const toolServer = (port: number) => ({
  ...SPENDS,
  expires_in: 86_400,
  servers: [server('tools', `http://127.0.0.1:${port}/mcp`)],
});
const BUNDLE = {
  ...SPENDS,
  servers: ['one', 'two'].map((name) => server(name, `https://${name}.example.com/mcp`)),
};
export const ROTATING = { few: FEW, many: MANY };

/**
 * Runs the turns of a row in interleaved rounds. The first round is not kept: it is longer, because a service runs for days
 * and V8 compiles the code of a call for its first seconds. A subject that fails is left out.
 */
export async function inRounds(
  turns: readonly Turn[],
  rounds: number,
  lasts: { readonly seconds: number; readonly warmSeconds: number },
  failed: (why: string) => void,
) {
  const broken = new Set<string>();
  const subjects: Record<string, Rounds> = {};
  const stealPercent: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    for (const { subject, measure } of turns) {
      if (broken.has(subject)) continue;
      const before = machineTimes();
      const figures = await measure(round === 0 ? lasts.warmSeconds : lasts.seconds).catch((error: Error) =>
        failed(error.message),
      );
      if (!figures) broken.add(subject);
      if (!figures || round === 0) continue;
      const after = machineTimes();
      stealPercent.push((100 * (after.steal - before.steal)) / (after.all - before.all));
      const kept = subjects[subject] ?? {};
      for (const [name, figure] of Object.entries(figures)) kept[name] = [...(kept[name] ?? []), figure];
      subjects[subject] = kept;
    }
  }
  return { subjects, stealPercent };
}

/** All time of all cores and the stolen time, in ticks: proc_stat(5). */
function machineTimes(): { readonly all: number; readonly steal: number } {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, each) => sum + each, 0), steal: ticks[7] ?? 0 };
}
