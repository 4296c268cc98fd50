import type { Limits } from '@presign/client';
import { createContext } from 'preact';

type Scope = Limits['api_key']['scopes'][number];

/** Whether the session's API key has a scope. `admin` includes `presign` and `read`. The issuer judges each request by itself. */
export type Can = (scope: Scope) => boolean;

export const canOf =
  ({ api_key: { scopes } }: Limits): Can =>
  (scope) =>
    scopes.includes(scope) || (scope !== 'operator' && scopes.includes('admin'));

export const Rights = createContext<Can>(() => false);
