import { PARTITIONS } from '@presign/schema';

/** The Redis partition of a budget, for good. Its id is random, so its last byte spreads budgets evenly. */
export const choosePartition = (budgetId: string): number =>
  Number.parseInt(budgetId.slice(-2), 16) % PARTITIONS;
