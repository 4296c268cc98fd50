import { PARTITIONS } from '@presign/schema';

/** The Redis partition of a budget. It never changes. Ids are random, so their last byte spreads budgets evenly. */
export const choosePartition = (budgetId: string): number =>
  Number.parseInt(budgetId.slice(-2), 16) % PARTITIONS;

/**
 * The partition of all budgets that URLs of an account share, and of the URLs that draw on them: one script decides about all
 * budgets of a call, and a script reaches one partition.
 */
export const homePartition = (accountId: string): number => choosePartition(accountId);
