import type { UsageReport } from '@presign/client';
import type { Range } from './format/range.ts';
import { type AskUsage, isCut, usageFields } from './usage.ts';

export type Moved = { readonly user: string; readonly before: number; readonly now: number };

export type MovedMost = {
  /** Those who moved most first. */
  readonly rows: readonly Moved[];
  /** The customers of each time who were compared, those who spent most. Undefined: all were. */
  readonly compared: number | undefined;
};

/** A time with its report by customer. */
type Time = { readonly range: Range; readonly report: UsageReport };
type Asked = { readonly now: Time; readonly before: Time; readonly most: number };

/**
 * Finds the customers whose spending differs most between two times, of those who spent most in one of them. A customer whom a cut report
 * lacks is ranked by the least change that is possible. The spending that is missing is then read: at most one answer for each.
 */
export async function readMoved(ask: AskUsage, { now, before, most }: Asked): Promise<MovedMost> {
  const [ofNow, ofBefore] = [costs(now), costs(before)];
  const users = [...new Set([...ofNow.keys(), ...ofBefore.keys()])];
  const leastMoved = users.map((user) => {
    const known = { now: ofNow.get(user), before: ofBefore.get(user) };
    return {
      user,
      now: known.now ?? Math.min(known.before ?? 0, mostOfMissing(now)),
      before: known.before ?? Math.min(known.now ?? 0, mostOfMissing(before)),
    };
  });
  const found = ranked(leastMoved).slice(0, most);
  const read: Moved[] = [];
  for (const { user } of found) {
    const spent = async (time: Time, known: ReadonlyMap<string, number>) =>
      known.get(user) ?? (isCut(time.report) ? await readCost(ask, time.range, user) : 0);
    read.push({ user, now: await spent(now, ofNow), before: await spent(before, ofBefore) });
  }
  const compared = [now, before].find(({ report }) => isCut(report))?.report.data.length;
  return { rows: ranked(read), compared };
}

/** An empty name cannot be filtered by, so its spending cannot be read alone. */
const costs = ({ report: { data } }: Time): ReadonlyMap<string, number> =>
  new Map(data.flatMap(({ external_user: user, cost }) => (user ? [[user, cost] as const] : [])));

/** The most that a customer without a row can have spent. The last row of a cut report cost least. */
const mostOfMissing = ({ report }: Time): number => (isCut(report) ? (report.data.at(-1)?.cost ?? 0) : 0);

const ranked = (rows: readonly Moved[]): Moved[] =>
  rows
    .filter((each) => each.now !== each.before)
    .sort((a, b) => Math.abs(b.now - b.before) - Math.abs(a.now - a.before));

const readCost = async (ask: AskUsage, range: Range, user: string): Promise<number> =>
  (await ask(usageFields({ range, groupBy: [], filters: { external_user: user } }))).total.cost;
