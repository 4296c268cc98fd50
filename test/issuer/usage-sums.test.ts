import { type USAGE_DIMENSIONS, USAGE_SUMS, usageReport } from '@presign/schema';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seeded } from '../chaos/random.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { refused } from './ask.ts';
import { csv, fresh, get, parseCsv } from './ask-usage.ts';
import { asText, expected, randomLedger, randomQuery } from './random-ledger.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'sums of any grouping, range and filter equal those of the ledger, row by row (seed %i)',
  async (seed) => {
    const random = seeded(seed);
    const of = await fresh(stack);
    const made = await randomLedger(stack, of, random);
    for (let i = 0; i < 12; i++) {
      const query = randomQuery(random, made);
      const by = query.group_by?.split(',') ?? [];
      const wanted = expected(made, query);
      const [header, ...cells] = parseCsv(await csv(of, query));
      expect(header).toEqual([...by, ...USAGE_SUMS]);
      const lines = [...wanted].map(([key, sums]) => {
        const values = (JSON.parse(key) as (string | null)[]).map((value) => value ?? '');
        return `${JSON.stringify(values)} ${asText(sums)}`;
      });
      const told = cells.map(
        (each) => `${JSON.stringify(each.slice(0, by.length))} ${each.slice(by.length).join(' ')}`,
      );
      expect(told.sort(), JSON.stringify(query)).toEqual(lines.sort());

      const whole = expected(made, (({ group_by: _, ...rest }) => rest)(query)).get('[]') ?? {};
      const all = [...wanted.values(), whole].flatMap(Object.values) as bigint[];
      const exact = all.every((sum) => sum <= Number.MAX_SAFE_INTEGER && sum >= -Number.MAX_SAFE_INTEGER);
      const sent = await get(of, query);
      if (!exact) {
        refused(sent, 'invalid_request', 'format');
        continue;
      }
      const { data, total, group_by } = usageReport.parse(JSON.parse(sent.text));
      expect(group_by).toEqual(by);
      expect(asText(total)).toBe(asText(whole));
      const found = data.map((each) => [
        JSON.stringify(by.map((name) => each[name as (typeof USAGE_DIMENSIONS)[number]])),
        asText(each),
      ]);
      expect(found.sort()).toEqual([...wanted].map(([key, sums]) => [key, asText(sums)]).sort());
    }
  },
);
