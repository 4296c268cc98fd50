import { randomUUID } from 'node:crypto';
import { outcomeOf, UNFAILED, USAGE_DIMENSIONS, USAGE_SUMS, type UsageDimension } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets, grants, sessions } from '@presign/schema/tables';
import type { Random } from '../chaos/random.ts';
import type { Stack } from '../harness/stack.ts';
import { addVirtualKey } from './accounts.ts';
import { type LedgerRow, type Query, type Reader, row } from './ask-usage.ts';

const DAY = 86_400_000;
const endOf = ({ outcome, failure = null, status = null, server = null, totalMs = null }: LedgerRow) => ({
  ...{ outcome, failure, status, server, totalMs },
});
const START = Date.parse('2026-01-30T00:00:00Z');
/** No ledger row refers to a row of its API key. */
const API_KEYS: readonly string[] = [randomUUID(), randomUUID()];
const oneOf = <T>(random: Random, values: readonly T[]) => values[random.int(0, values.length - 1)] as T;
/** From 11 hours behind UTC to 14 ahead, and half and quarter hours between. */
const ZONES = [
  'Pacific/Pago_Pago',
  'America/New_York',
  'Asia/Kolkata',
  'Asia/Kathmandu',
  'Pacific/Kiritimati',
  'UTC',
];
/** Moments close to both ends of each day of four. */
const moment = (random: Random) =>
  START + random.int(0, 4) * DAY + oneOf(random, [-1, 0, 1, random.int(2, DAY - 2)]);

/** A ledger with everything in it: nulls, refunds, sums beyond 2^53, and grants with and without virtual key. */
export async function randomLedger(stack: Stack, of: Reader, random: Random) {
  const keyIds: string[] = await Promise.all([0, 1].map(() => addVirtualKey(stack, of.account)));
  const budgetId = randomUUID();
  await stack.db.insert(budgets).values({ id: budgetId, partition: 1 });
  const sessionIds: string[] = Array.from({ length: 4 }, () => randomUUID());
  await stack.db.insert(sessions).values(sessionIds.map((id) => ({ id, accountId: of.account })));
  const common = { accountId: of.account, budgetId, kind: 'llm', provider: 'openai' } as const;
  const times = { issuedAt: new Date(START), expiresAt: new Date(START) };
  const issued = sessionIds.map((sessionId, i) => ({
    ...{ ...common, ...times, id: randomUUID(), sessionId, virtualKeyId: keyIds[i] ?? null },
  }));
  await stack.db.insert(grants).values(issued);
  const rows = Array.from({ length: random.int(0, 120) }, () => {
    const grant = oneOf(random, issued);
    const refund = random.int(0, 9) === 0;
    const sign = refund ? -1 : 1;
    const amount = () => oneOf(random, [0, 1, random.int(0, 1e6), Number.MAX_SAFE_INTEGER]);
    return row(of, {
      // The ledger stands without the grant, too.
      grantId: random.int(0, 9) === 0 ? randomUUID() : grant.id,
      sessionId: grant.sessionId,
      virtualKeyId: grant.virtualKeyId,
      apiKeyId: oneOf(random, [null, ...API_KEYS]),
      provider: oneOf(random, ['openai', 'mcp']),
      model: oneOf(random, [null, 'm1', 'm2']),
      server: oneOf(random, [null, 's1']),
      tool: oneOf(random, [null, 't1', 't2']),
      externalUser: oneOf(random, [null, '', 'u1', 'U1', 'ü,"=1']),
      uses: sign * random.int(0, 3),
      costMicrousd: !refund && random.int(0, 4) === 0 ? null : sign * amount(),
      inputTokens: oneOf(random, [null, amount()]),
      outputTokens: oneOf(random, [null, amount()]),
      outcome: refund ? 'refunded' : oneOf(random, ['settled', 'expired'] as const),
      failure: oneOf(random, [null, null, 'provider_error', 'holder_left']),
      status: oneOf(random, [null, 200, 429, 502]),
      settledAt: new Date(moment(random)),
    });
  });
  if (rows.length > 0) await stack.db.insert(ledger).values(rows);
  return { rows, keyIds, sessionIds };
}
export type Made = Awaited<ReturnType<typeof randomLedger>>;

/** A query that such a ledger has something for. */
export function randomQuery(random: Random, { keyIds, sessionIds }: Made): Query {
  const by = USAGE_DIMENSIONS.filter(() => random.int(0, 3) === 0);
  const [a, b] = [moment(random), moment(random)].sort((x, y) => x - y) as [number, number];
  const filters = {
    external_user: oneOf(random, ['u1', '', 'ü,"=1']),
    session_id: oneOf(random, sessionIds),
    provider: oneOf(random, ['openai', 'mcp']),
    model: 'm1',
    virtual_key: oneOf(random, keyIds),
    api_key: oneOf(random, API_KEYS),
    server: 's1',
    tool: oneOf(random, ['t1', 't2']),
    timezone: oneOf(random, ZONES),
  };
  const some = Object.entries(filters).filter(() => random.int(0, 4) === 0);
  return {
    from: new Date(a).toISOString(),
    to: new Date(a === b ? b + 1 : b).toISOString(),
    ...(by.length > 0 ? { group_by: by.join(',') } : {}),
    ...Object.fromEntries(some),
  };
}

/** The sums of the ledger's rows, added one by one. */
export function expected({ rows }: Made, query: Query): Map<string, Record<string, bigint>> {
  const valuesOf = (each: LedgerRow): Record<UsageDimension, string | null> => ({
    external_user: each.externalUser ?? null,
    session_id: each.sessionId,
    model: each.model ?? null,
    provider: each.provider,
    virtual_key: each.virtualKeyId ?? null,
    api_key: each.apiKeyId ?? null,
    server: each.server ?? null,
    tool: each.tool ?? null,
    outcome: outcomeOf(endOf(each)),
    day: dayIn(query.timezone, each.settledAt),
    month: dayIn(query.timezone, each.settledAt).slice(0, 7),
  });
  const by = (query.group_by?.split(',') ?? []) as UsageDimension[];
  const groups = new Map<string, Record<string, bigint>>();
  const add = (key: string, each?: LedgerRow) => {
    const sums = groups.get(key) ?? Object.fromEntries(USAGE_SUMS.map((name) => [name, 0n]));
    groups.set(key, sums);
    if (!each) return;
    const isCall = each.outcome !== 'refunded';
    const plus = (name: string, value: number | null | undefined) => {
      sums[name] = (sums[name] ?? 0n) + BigInt(value ?? 0);
    };
    plus('calls', isCall ? 1 : 0);
    plus('uses', each.uses);
    plus('cost', each.costMicrousd);
    plus('failed_calls', UNFAILED.includes(outcomeOf(endOf(each))) ? 0 : 1);
    plus('calls_of_unknown_cost', isCall && each.costMicrousd === null ? 1 : 0);
    plus('input_tokens', each.inputTokens);
    plus('output_tokens', each.outputTokens);
  };
  if (by.length === 0) add('[]');
  for (const each of rows) {
    const values = valuesOf(each);
    const fits = (name: UsageDimension, filter: string | undefined) =>
      filter === undefined || values[name] === filter;
    const time = each.settledAt.getTime();
    if (time < Date.parse(query.from ?? '') || time >= Date.parse(query.to ?? '')) continue;
    if (!fits('session_id', query.session_id)) continue;
    if (
      !(['external_user', 'provider', 'model', 'virtual_key', 'api_key', 'server', 'tool'] as const).every(
        (name) => fits(name, query[name]),
      )
    )
      continue;
    add(JSON.stringify(by.map((name) => values[name])), each);
  }
  return groups;
}

/** The day in a zone, as the locale of Canada writes it. */
const dayIn = (timeZone = 'UTC', moment: Date) =>
  new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(
    moment,
  );

/** Sums in their order, of any size. */
export const asText = (sums: object) =>
  USAGE_SUMS.map((name) => String((sums as Record<string, unknown>)[name])).join(' ');
