import type { End } from './dialects/end.ts';

/** How a socket closed: the code of its close, and the side that closed it, or the cause for which the gateway did. */
export type Closed = { readonly code: number; readonly cause: string };

/** How a socket closed, one of whose sides has closed with this code. */
export const closedBy = (side: 'holder' | 'provider', code: number, end: End | undefined): Closed =>
  end ? { code: end.code, cause: end.cause ?? end.refusal.code } : { code, cause: side };
