import type { Problem } from './await-store.ts';
import { IAT_LEEWAY_SECONDS } from './claims.ts';

/**
 * The problem of a clock that is far from that of Redis, for `/readyz`. Its effect supposes that the other clocks agree with
 * Redis.
 * @param farMs how far the service is ahead of Redis; undefined if it is not far
 */
export function clockProblems(farMs: number | undefined, service: 'gateway' | 'issuer'): readonly Problem[] {
  if (farMs === undefined) return [];
  const seconds = Math.round(Math.abs(farMs) / 1_000);
  const isAhead = farMs > 0;
  const problem = `is ${seconds} seconds ${isAhead ? 'ahead of' : 'behind'} that of Redis`;
  const urls = service === 'gateway' ? 'URLs expire here' : 'New URLs expire';
  // A token looks older to a gateway that is ahead, and younger if its issuer is.
  if (isAhead === (service === 'gateway'))
    return [{ store: 'clock', problem, effect: `${urls} ${seconds} seconds early.` }];
  const refusedSeconds = seconds - IAT_LEEWAY_SECONDS;
  const refused =
    refusedSeconds > 0 ? ` In its first ${refusedSeconds} seconds, each gets 401 token_invalid.` : '';
  return [{ store: 'clock', problem, effect: `${urls} ${seconds} seconds late.${refused}` }];
}
