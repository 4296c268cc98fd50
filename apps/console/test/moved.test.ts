import { expect, test } from 'vitest';
import type { Range } from '../src/data/format/range.ts';
import { readMoved } from '../src/data/moved.ts';
import type { AskUsage } from '../src/data/usage.ts';
import { report } from './report.ts';

const BEFORE: Range = { from: 0, to: 10, zone: 'UTC' };
const NOW: Range = { from: 10, to: 20, zone: 'UTC' };

type Spent = Readonly<Record<string, readonly [before: number, now: number]>>;

/** The movers, of reports that have so many of the customers, and the customers whose spending was read. */
async function movedOf(spent: Spent, shown: number, most: number) {
  const all = (time: 0 | 1) =>
    Object.entries(spent)
      .map(([user, costs]) => [user, costs[time]] as const)
      .filter(([, cost]) => cost > 0)
      .sort(([, a], [, b]) => b - a);
  const cut = (time: 0 | 1) =>
    report(Object.fromEntries(all(time).slice(0, shown)), Math.max(0, all(time).length - shown));
  const asked: unknown[] = [];
  const ask: AskUsage = async ({ from, ...fields }) => {
    const user = 'external_user' in fields ? fields.external_user : undefined;
    asked.push(user);
    return report(Object.fromEntries(all(from === NOW.from ? 1 : 0).filter(([each]) => each === user)));
  };
  const { rows, compared } = await readMoved(ask, {
    now: { range: NOW, report: cut(1) },
    before: { range: BEFORE, report: cut(0) },
    most,
  });
  return { rows: rows.map(({ user, before, now }) => [user, before, now]), compared, asked };
}

test('a customer whom a cut report lacks has not moved by all that it spent in the other time', async () => {
  // The customers of a dollar that spent most before are others than those that spent most now.
  const usual = Array.from({ length: 3_000 }, (_, at): [string, [number, number]] => [
    `user-${at}`,
    [at < 2_000 ? 99 : 101, at < 1_000 ? 101 : 99],
  ]);
  const { rows, compared, asked } = await movedOf(
    { ...Object.fromEntries(usual), adam: [200, 130] },
    1_000,
    8,
  );
  expect(rows).toEqual([['adam', 200, 130]]);
  expect(compared).toBe(1_000);
  expect(asked).toEqual([]);
});

test('a customer whom a cut report lacks is ranked by its least change, and listed with what it spent', async () => {
  const spent: Spent = {
    ...{ adam: [1_000, 1_000], linus: [300, 700], grace: [500, 50], barbara: [90, 480] },
    ...{ alan: [150, 140], edsger: [90, 90] },
  };
  // Grace moved by 450, at least 360 of them for sure. Barbara moved by 390, at least 330.
  expect(await movedOf(spent, 4, 1)).toEqual({ rows: [['linus', 300, 700]], compared: 4, asked: [] });
  expect(await movedOf(spent, 4, 3)).toEqual({
    rows: [
      ['grace', 500, 50],
      ['linus', 300, 700],
      ['barbara', 90, 480],
    ],
    compared: 4,
    asked: ['grace', 'barbara'],
  });
});

test('a customer whom a whole report lacks spent nothing', async () => {
  expect(await movedOf({ adam: [5, 0], grace: [0, 7], linus: [3, 3] }, 10, 8)).toEqual({
    rows: [
      ['grace', 0, 7],
      ['adam', 5, 0],
    ],
    compared: undefined,
    asked: [],
  });
});

test('a customer with an empty name is not compared: a filter with it would sum the whole account', async () => {
  const { rows, asked } = await movedOf({ '': [900, 1], adam: [500, 500], grace: [400, 410] }, 2, 8);
  expect(rows).not.toContainEqual(expect.arrayContaining(['']));
  expect(asked).not.toContain(undefined);
});
