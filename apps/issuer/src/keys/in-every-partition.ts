import { PARTITIONS, RefusedError } from '@presign/schema';

const ALL: readonly number[] = Array.from({ length: PARTITIONS }, (_, partition) => partition);

/**
 * Changes a credential in all of Redis: a grant of it may lie, or come to lie, in any partition.
 * @throws RefusedError `limits_unavailable` when a partition could not be told, though Postgres has the change
 */
export async function inEveryPartition(
  change: (partitions: readonly number[]) => Promise<void>,
): Promise<void> {
  await change(ALL).catch((cause: unknown) => {
    const message =
      'This is stored, but Redis does not answer, so not all gateways may know of it yet. Repeat this request.';
    throw new RefusedError({ code: 'limits_unavailable', message, retryAfterSeconds: 1 }, { cause });
  });
}
