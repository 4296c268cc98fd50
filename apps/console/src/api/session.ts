import type { Limits } from '@presign/client';
import type { QueryClient } from '@tanstack/preact-query';

/** The query of the session's API key and what it may do. */
export const LIMITS = ['limits'];

/** Starts a session. It clears all data that another key has read. */
export function setSession(client: QueryClient, limits: Limits | null): void {
  const before = client.getQueryData<Limits | null>(LIMITS);
  if (before?.api_key.id === limits?.api_key.id) return;
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== LIMITS[0] });
  client.setQueryData(LIMITS, limits);
}
