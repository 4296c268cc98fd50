import type { Context } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';

/** The caller of a request disconnected before its answer. No service has failed. */
export class CallerLeft extends Error {
  override readonly name = 'CallerLeft';
}

/** The status of such a request in logs and metrics. It is nginx' own, and no caller gets it. */
export const CALLER_LEFT_STATUS = 499;

/** Aborts when the caller of a request disconnects. */
export const leavingOf = (c: Context<IssuerEnv>): AbortSignal => c.req.raw.signal;

/**
 * Waits for the body of a request, or for other work that fails if its caller disconnects.
 * @throws CallerLeft instead of the error, if the caller has disconnected
 */
export async function unlessLeft<T>(c: Context<IssuerEnv>, read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (c.env.incoming.destroyed && !c.env.incoming.complete) throw new CallerLeft();
    throw error;
  }
}
