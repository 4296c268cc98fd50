import type { UsageReport } from '@presign/client';

const SUMS = {
  ...{ calls: 0, uses: 0, cost: 0, failed_calls: 0 },
  ...{ calls_of_unknown_cost: 0, input_tokens: 0, output_tokens: 0 },
};

/** A report by customer, which may lack customers. */
export const report = (costs: Readonly<Record<string, number>>, lacks = 0): UsageReport => ({
  ...{ from: 0, to: 1, group_by: ['external_user'], next_cursor: null },
  groups: Object.keys(costs).length + lacks,
  data: Object.entries(costs).map(([user, cost]) => ({ ...SUMS, external_user: user, cost, calls: 1 })),
  total: { ...SUMS, cost: Object.values(costs).reduce((sum, cost) => sum + cost, 0) },
});
