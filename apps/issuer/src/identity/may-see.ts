import { RefusedError } from '@presign/schema';
import type { ApiKey } from './caller.ts';
import { hasScope } from './caller.ts';

/** The part of an API key that decides what it sees of a grant. */
export type Viewer = Pick<ApiKey, 'id' | 'scopes' | 'policy'>;

type Issued = { readonly apiKeyId: string | null };

/** Whether answers have the URL: for the key that issued it, and for a key without a policy that may issue. */
export const maySeeUrl = (key: Viewer, { apiKeyId }: Issued): boolean =>
  key.id === apiKeyId || (key.policy === null && hasScope(key, 'presign'));

/** Whether answers have figures, metadata and everything else that a GET answers with. */
export const mayRead = (key: Viewer): boolean => hasScope(key, 'read');

/**
 * Refuses a change if the key may see neither figures nor the URL. Where it may see a part, the answer leaves out the rest.
 * @throws RefusedError `policy_forbids`
 */
export function refuseUnseen(key: Viewer, grant: Issued): void {
  if (!mayRead(key) && !maySeeUrl(key, grant)) throw new RefusedError(UNSEEN);
}

const UNSEEN = {
  code: 'policy_forbids',
  message: 'Another API key issued this URL. An API key with a policy needs the scope "read" to change it.',
} as const;
