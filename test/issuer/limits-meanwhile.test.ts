import type { PresignAnswer } from '@presign/schema';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { budgets, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { eq, inArray, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deferred } from '../harness/eventually.ts';
import { othersWait } from '../harness/others-wait.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { least, refused, send } from './ask.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';

let stack: Stack;
let takeAway = async () => {};

beforeAll(async () => {
  if (canReachDatabase) takeAway = await reachableDatabase();
  stack = await startStack({ providers: { openai: { base_url: 'http://127.0.0.1:9' } } });
});
afterAll(async () => {
  await stack.close();
  await takeAway();
});

/** No call of it could pass under a limit of money or of tokens. */
const DEAD = { provider: 'openai', path: '/v1/audio/transcriptions' };
const LIMIT = 100_000_000;
let users = 0;

async function make(path: string, body: object): Promise<string> {
  const sent = await send(stack, { path, body });
  expect(sent.status, sent.text).toBe(201);
  return (JSON.parse(sent.text) as { id: string }).id;
}
const makeBudget = (scope: object) =>
  make('/v1/budgets', { scope, window: 'day', time_zone: 'UTC', max_uses: 100 });

/** A first limit that is set elsewhere than in a URL, and a URL that draws on it. */
type Way = {
  readonly param: string;
  readonly path: string;
  readonly change: object;
  readonly url: object;
  /** Does as the change does, without its check. */
  readonly set: (tx: Transaction) => Promise<unknown>;
};

const ofKey = async (): Promise<Way> => {
  const key = { name: 'k', provider: 'openai', key: 'sk-upstream', budget: { max_uses: 100 } };
  const id = await make('/v1/virtual-keys', key);
  const budget = stack.db
    .select({ id: virtualKeys.budgetId })
    .from(virtualKeys)
    .where(eq(virtualKeys.id, id));
  return {
    ...{ param: 'budget.cost_limit', path: `/v1/virtual-keys/${id}` },
    ...{ change: { budget: { cost_limit: LIMIT } }, url: { ...DEAD, virtual_key: id } },
    set: (tx) => tx.update(budgets).set({ costLimitMicrousd: LIMIT }).where(inArray(budgets.id, budget)),
  };
};
const ofBudget = async (param: 'cost_limit' | 'tokens', isTemplate = false): Promise<Way> => {
  const external_user = `user-${users++}`;
  const id = isTemplate
    ? await makeBudget({ metadata: { [external_user]: '*' } })
    : await makeBudget({ external_user });
  const metadata = isTemplate ? { [external_user]: 'a' } : {};
  const column = param === 'tokens' ? 'tokenLimit' : 'costLimitMicrousd';
  return {
    ...{ param, path: `/v1/budgets/${id}`, change: { [param]: LIMIT } },
    url: { ...least, ...DEAD, external_user, metadata },
    set: (tx) =>
      tx
        .update(sharedBudgets)
        .set({ [column]: LIMIT })
        .where(eq(sharedBudgets.id, id)),
  };
};

describe.each([
  ['a virtual key', ofKey],
  ['a shared budget, money', () => ofBudget('cost_limit')],
  ['a shared budget, tokens', () => ofBudget('tokens')],
  ['a template, money', () => ofBudget('cost_limit', true)],
  ['a template, tokens', () => ofBudget('tokens', true)],
] as const)('a first limit of %s', (_name, makeWay) => {
  const patch = ({ path, change }: Way) => send(stack, { method: 'PATCH', path, body: change });

  test('is refused if it would make an issued URL unusable', async () => {
    const way = await makeWay();
    const issued = await send(stack, { body: way.url });
    expect(issued.status, issued.text).toBe(200);
    refused(await patch(way), 'invalid_request', way.param);
  });

  test.skipIf(!canReachDatabase)(
    'waits for a URL that is being issued, and is then refused because of it',
    async () => {
      const way = await makeWay();
      const { session_id } = (await (await stack.presign(least)).json()) as PresignAnswer;
      const [locked, go] = [deferred(), deferred()];
      // The URL waits for its session after it has read its limits.
      const held = stack.db.transaction(async (tx) => {
        await tx.execute(sql`select 1 from sessions where id = ${session_id} for update`);
        locked.resolve();
        await othersWait(stack, tx);
        go.resolve();
        // The change waits for the URL, or is made meanwhile.
        await Promise.race([changed, othersWaitForOthers()]);
      });
      await locked.promise;
      const issued = send(stack, { body: { ...way.url, session_id } });
      const changed = go.promise.then(() => patch(way));
      await held;
      expect((await issued).status, (await issued).text).toBe(200);
      refused(await changed, 'invalid_request', way.param);
    },
  );

  test.skipIf(!canReachDatabase)('that is being set refuses the URL', async () => {
    const way = await makeWay();
    const locked = deferred();
    const held = stack.db.transaction(async (tx) => {
      await way.set(tx);
      locked.resolve();
      await Promise.race([issued, othersWait(stack, tx)]);
    });
    const issued = locked.promise.then(() => send(stack, { body: way.url }));
    await held;
    refused(await issued, 'invalid_request', 'path');
  });
});

/** Resolves once two connections wait: the URL for its session, and the change for the URL. */
async function othersWaitForOthers(): Promise<void> {
  for (;;) {
    const [found] = (await stack.db.execute(
      sql`select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
    )) as unknown as { readonly waiting: number }[];
    if ((found?.waiting ?? 0) >= 2) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
