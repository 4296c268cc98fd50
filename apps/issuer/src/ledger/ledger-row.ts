import type { UsageEntry } from '@presign/limits';
import { sumOfLines } from '@presign/providers';
import { type CallRecord, callRecord } from '@presign/schema';

/** An entry that is a row. */
export type SettledEntry = UsageEntry & { readonly outcome: Exclude<UsageEntry['outcome'], 'ended'> };

/** The row of a settled call. */
export function ledgerRow(entry: SettledEntry) {
  const record = callRecord.parse(JSON.parse(entry.record));
  return {
    holdId: entry.holdId,
    accountId: record.acc,
    sessionId: record.ses,
    grantId: record.grt,
    requestId: record.rid ?? null,
    provider: storable(record.prv),
    model: storableOrNull(record.mod),
    server: storableOrNull(record.srv),
    tool: storableOrNull(record.tol),
    externalUser: record.usr ?? null,
    uses: entry.uses,
    costMicrousd: entry.costMicrousd ?? null,
    overrunMicrousd: record.ovr ?? 0,
    // A call whose gateway died is charged its hold.
    heldMicrousd: record.hld ?? (entry.outcome === 'expired' ? (entry.costMicrousd ?? null) : null),
    priceList: record.prc ?? null,
    knowledge: record.knw ?? null,
    priceLines: priceLines(record, entry.costMicrousd),
    failure: record.cod ?? (entry.outcome === 'expired' ? 'lease_ended' : null),
    inputTokens: record.inp ?? null,
    outputTokens: record.out ?? null,
    status: record.sta ?? null,
    outcome: entry.outcome,
    firstByteMs: record.fby ?? null,
    totalMs: record.tot ?? null,
    ownUs: record.own ?? null,
    retryCount: record.rty ?? null,
    userAgent: storableOrNull(record.agt),
    connectionId: record.con ?? null,
    turn: record.trn ?? null,
    startedAt: new Date(record.beg),
    // A stream id starts with the clock of Redis in milliseconds.
    settledAt: new Date(Number(entry.id.split('-')[0])),
  };
}

/** The holder of a URL chooses the name of a model or a tool. It must not stop the ledger, and Postgres refuses NUL in a text. */
const storable = (text: string) => text.replaceAll('\0', '').slice(0, NAME_MAX_CHARS);

const storableOrNull = (text: string | undefined) => (text === undefined ? null : storable(text));

const NAME_MAX_CHARS = 255;

/**
 * The price lines of a call, if they explain its charge. They explain its usage, but a call whose grant has had too many refunds is charged
 * its hold instead.
 */
export function priceLines(
  { lin, ovr = 0 }: Pick<CallRecord, 'lin' | 'ovr'>,
  costMicrousd: number | undefined,
): CallRecord['lin'] | null {
  if (!lin || costMicrousd === undefined) return null;
  const sum = sumOfLines(lin.map(([unit, count, rate]) => ({ unit, count, rate })));
  return sum === BigInt(costMicrousd + ovr) ? lin : null;
}
