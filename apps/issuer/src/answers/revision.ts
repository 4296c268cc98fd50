import { RefusedError } from '@presign/schema';
import type { Context } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';

/** A record that gets a new revision with each change. */
type Revised = { readonly revision: number };

/** Sends the revision as `ETag`. A client sends it back in the `If-Match` of a change. */
export const sendRevision = (c: Context<IssuerEnv>, what: Revised) => c.header('etag', etagOf(what));

/**
 * Refuses a change that was meant for another revision (RFC 9110 §13.1.1).
 * @throws RefusedError `revision_mismatch`
 */
export function checkRevision(c: Context<IssuerEnv>, what: Revised): void {
  const wanted = c.req.header('if-match')?.split(',');
  if (wanted === undefined || wanted.some((tag) => ['*', etagOf(what)].includes(tag.trim()))) return;
  throw new RefusedError({ code: 'revision_mismatch', param: 'If-Match' });
}

const etagOf = ({ revision }: Revised) => `"${revision}"`;
