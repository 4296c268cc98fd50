import type { UsageEntry } from '@presign/limits';
import { callEnd, parseJson } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import type { Transaction } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import * as z from 'zod';
import { addToHours } from '../usage/call-hours.ts';
import { addLateCalls, takeSummedCalls } from '../usage/sum-days.ts';

/**
 * Adds to the rows of MCP calls how they ended. Their charges come first in the stream, so the rows exist. A row accepts its end once, even
 * if Redis has it twice.
 */
export async function recordEnds(tx: Transaction, entries: readonly UsageEntry[]): Promise<void> {
  const ends = entries.flatMap(({ outcome, record }) => (outcome === 'ended' ? endsIn(record) : []));
  if (ends.length === 0) return;
  const summed = await takeSummedCalls(
    tx,
    ends.map(({ chg }) => chg),
  );
  const each = sql`json_to_recordset(${JSON.stringify(ends)}::json)
    as each(chg uuid, sta int, cod text, fby int, tot int, own int)`;
  const ended = await tx
    .update(ledger)
    .set({
      status: sql`each.sta`,
      failure: sql`each.cod`,
      firstByteMs: sql`each.fby`,
      totalMs: sql`each.tot`,
      ownUs: sql`each.own`,
    })
    .from(each)
    .where(sql`${ledger.holdId} = each.chg and ${ledger.totalMs} is null and ${ledger.outcome} <> 'refunded'`)
    .returning();
  await addLateCalls(tx, summed);
  await addToHours(tx, ended);
}

/** An entry that cannot be read must not stop the ledger. */
function endsIn(record: string) {
  const read = z.array(callEnd).safeParse(parseJson(record));
  return read.success ? read.data : [];
}
