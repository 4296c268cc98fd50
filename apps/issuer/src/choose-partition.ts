import { PARTITIONS } from '@presign/schema';

/** The Redis partition of a pot, for good. Its id is random, so its last byte spreads pots evenly. */
export const choosePartition = (potId: string): number => Number.parseInt(potId.slice(-2), 16) % PARTITIONS;
