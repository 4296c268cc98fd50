/** A customer of the account `sample`. */
export type Person = {
  readonly user: string;
  readonly team: string;
  readonly plan: 'Pro' | 'Team' | 'Trial';
  readonly model: string;
  /** How many calls they make, as part of those of all. */
  readonly share: number;
  /** The length of their questions. */
  readonly words: number;
  /** How much of their budget of the month is spent. */
  readonly full: number;
};

const [PRO, SMALL, MINI] = ['sandbox-pro', 'sandbox-1', 'sandbox-mini'];

/** Ada comes near her budget, and Grace spends hers. */
export const PEOPLE: readonly Person[] = [
  { user: 'ada', team: 'search', plan: 'Pro', model: PRO, share: 20, words: 1_530, full: 0.92 },
  { user: 'grace', team: 'search', plan: 'Trial', model: PRO, share: 8, words: 510, full: 1 },
  { user: 'alan', team: 'support', plan: 'Team', model: PRO, share: 12, words: 850, full: 0.6 },
  { user: 'barbara', team: 'support', plan: 'Team', model: PRO, share: 10, words: 1_190, full: 0.45 },
  { user: 'katherine', team: 'research', plan: 'Pro', model: PRO, share: 9, words: 1_870, full: 0.7 },
  { user: 'edsger', team: 'research', plan: 'Trial', model: SMALL, share: 6, words: 680, full: 0.2 },
  { user: 'margaret', team: 'search', plan: 'Team', model: PRO, share: 7, words: 760, full: 0.35 },
  { user: 'linus', team: 'support', plan: 'Trial', model: MINI, share: 12, words: 340, full: 0.1 },
  { user: 'hedy', team: 'research', plan: 'Team', model: SMALL, share: 8, words: 590, full: 0.15 },
  { user: 'radia', team: 'search', plan: 'Pro', model: PRO, share: 8, words: 1_020, full: 0.5 },
];

/** The person who makes the call of this number, the same at every start. */
export function personOf(call: number): Person {
  let left = mixed(call * 31) % PEOPLE.reduce((sum, { share }) => sum + share, 0);
  for (const person of PEOPLE) {
    left -= person.share;
    if (left < 0) return person;
  }
  return PEOPLE[0] as Person;
}

/** A number that looks like chance, and is the same at every start (the finalizer of MurmurHash3). */
export function mixed(index: number): number {
  let hash = index + 1;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 8;
}

const HOUR_MS = 3_600_000;
/** How busy each hour of UTC is. */
const BUSY = [1, 1, 0, 0, 0, 1, 2, 5, 9, 11, 12, 10, 8, 11, 13, 12, 10, 8, 6, 5, 4, 3, 2, 1];
/** How busy each day of the week is, from Sunday on. */
const DAYS = [2, 9, 10, 10, 9, 8, 3];

/** Times of calls between two moments, as a working week has them, in order. */
export function spread(calls: number, fromMs: number, toMs: number): number[] {
  const hours: { at: number; until: number; weight: number }[] = [];
  for (let at = fromMs; at < toMs; at += HOUR_MS) {
    const hour = new Date(at);
    const weight = (BUSY[hour.getUTCHours()] ?? 0) * (DAYS[hour.getUTCDay()] ?? 0) + 0.1;
    hours.push({ at, until: Math.min(at + HOUR_MS, toMs), weight });
  }
  const total = hours.reduce((sum, { weight }) => sum + weight, 0);
  const times: number[] = [];
  let seen = 0;
  for (const { at, until, weight } of hours) {
    seen += weight;
    const due = Math.round((calls * seen) / total);
    while (times.length < due) times.push(at + (mixed(times.length) % (until - at)));
  }
  return times.sort((a, b) => a - b);
}
