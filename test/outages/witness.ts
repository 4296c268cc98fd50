import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { call, providersOf } from '../chaos/load.ts';
import { grantIdOf } from '../chaos/sample.ts';
import { canStrike } from '../chaos/strike-all.ts';
import { type Places, startWorld, type World } from '../chaos/world.ts';
import { eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

/** Whether servers may be made and hurt: where servers are to be used at all, and their programs are here. */
export const canHurt = canStrike && Boolean(process.env.TEST_DATABASE_URL);

/** How often the URL of a test may be called. */
export const USES = 40;

export const BODY = { model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 16 };
export const ASK = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-1' };

/** The code of a refusal, the status of another answer, or 0 if there was none. */
export type Code = string | number;

/** An issuer and two gateways in processes of their own, and a caller that sees an outage. */
export type Witness = {
  readonly world: World;
  readonly upstream: Upstream;
  /** Issues the URL that the next calls use, and waits until it can be called. */
  readonly begin: () => Promise<void>;
  /** The grant of that URL. */
  readonly grantId: () => string;
  /** Calls that were answered with 200 since then. */
  readonly passed: () => number;
  /** Calls over one of the gateways, 0 or 1. */
  readonly codeOf: (gateway: number) => Promise<Code>;
  readonly issueCode: () => Promise<Code>;
  /**
   * Fails unless the rest of the uses is there, and not one more, and the ledger has each call of the URL once. Calls of other URLs
   * do not count: a gateway that was killed has admitted calls that it never sent, and they are charged.
   */
  readonly nothingLost: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export async function startWitness(places: Places = {}): Promise<Witness> {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const answer = JSON.stringify({ id: '1', model: 'm', choices: [], usage });
  const upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
  const prices = new Map([['m', { input: 1_000_000, output: 4_000_000 }]]);
  const world = await startWorld(providersOf(upstream.url, prices), places);
  let url = '';
  let passed = 0;
  let seenBefore = 0;
  const codeOf = async (gateway: number) => {
    const own = url.replace(world.gatewayUrls[0], world.gatewayUrls[gateway % 2] ?? '');
    const { status, code } = await call(own, BODY);
    if (status === 200) passed++;
    return code ?? status;
  };
  const begin = async () => {
    url = await world.issue({ ...ASK, max_uses: USES });
    passed = 0;
    seenBefore = upstream.seen.length;
    // The issuer may not have opened every partition yet.
    await until(200, () => codeOf(0), ['limits_unavailable']);
  };
  const nothingLost = async () => {
    for (let i = passed; i < USES; i++) expect(await codeOf(i)).toBe(200);
    for (const i of [0, 1]) expect(await codeOf(i)).toBe('uses_exhausted');
    await eventually(async () => {
      // Postgres may not have recovered for all of its clients.
      const rows = await world.db.$count(ledger, eq(ledger.grantId, grantIdOf(url))).catch(() => undefined);
      if (rows === undefined) return undefined;
      const seen = upstream.seen.length - seenBefore;
      if (rows > seen) throw new Error('the ledger has calls that never ran');
      return rows === seen;
    });
  };
  const close = async () => {
    await world.close();
    await upstream.close();
  };
  const issueCode = () => issueAt(world);
  const figures = { grantId: () => grantIdOf(url), passed: () => passed };
  return { world, upstream, begin, ...figures, codeOf, issueCode, nothingLost, close };
}

async function issueAt({ issuerUrl, apiKey }: World): Promise<Code> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify(ASK);
  const answer = await fetch(`${issuerUrl}/v1/presign`, { method: 'POST', headers, body }).catch(() => {});
  if (!answer) return 0;
  const { error } = (await answer.json()) as { error?: { code: string } };
  return error?.code ?? answer.status;
}

/** Asks until this answer comes. Each answer before it must be one of these. */
export const until = (wanted: Code, ask: () => Promise<Code>, before: readonly Code[]) =>
  eventually(async () => {
    const is = await ask();
    if (is !== wanted) expect(before).toContain(is);
    return is === wanted;
  });
