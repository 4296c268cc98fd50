import { PARTITIONS } from '@presign/schema';

/** The Redis partition of a budget. It never changes. Ids are random, so their last byte spreads budgets evenly. */
export const choosePartition = (budgetId: string): number =>
  Number.parseInt(budgetId.slice(-2), 16) % PARTITIONS;
