import type { Refusal } from '@presign/schema';
import { isCut, type Why } from '../http/forward.ts';
import { type McpSent, redirects, refusesWhole } from './send.ts';

/** Whether certainly no request of a POST ran: it never arrived, or the server refused it as a whole. */
export function nothingRan(sent: McpSent): boolean {
  if (sent.is === 'complete') return refusesWhole(sent.status);
  return sent.is !== 'broken' && sent.is !== 'unanswered';
}

/** The refusal of a call that ended without an answer for the holder. */
export function endRefusal(sent: McpSent): Refusal | undefined {
  switch (sent.is) {
    case 'complete':
      return redirects(sent.status) ? REDIRECTED : undefined;
    case 'broken':
      return cutRefusal(sent.why);
    case 'unauthorized':
      return sent.refusal;
    case 'unavailable':
      return { code: 'limits_unavailable', retryAfterSeconds: 1 };
    case 'failed':
      return { code: 'internal_error' };
    case 'unsent':
      return UNANSWERED[sent.cut ?? 'unsent'];
    case 'unanswered':
      return UNANSWERED[sent.why];
  }
}

/** The refusal of a call that the gateway ended itself. */
export const cutRefusal = (why: Why): Refusal | undefined => (isCut(why) ? UNANSWERED[why] : undefined);

const REDIRECTED: Refusal = {
  code: 'upstream_unreachable',
  message:
    'The MCP server redirects to another address. Issue a URL for that address, or with or without the final slash.',
};

const BROKEN_OFF: Refusal = {
  code: 'upstream_unreachable',
  message:
    'The MCP server closed the connection before it answered. The call may have run, so its charge stands.',
};

const UNANSWERED = {
  unsent: { code: 'upstream_unreachable', message: 'The MCP server could not be reached.' },
  timeout: { code: 'upstream_timeout', message: 'The MCP server did not answer in time.' },
  left: BROKEN_OFF,
  failure: BROKEN_OFF,
  revoked: { code: 'grant_revoked' },
  expired: { code: 'token_expired' },
  closing: { code: 'overloaded', message: 'This gateway is closing. Try again.', retryAfterSeconds: 1 },
} as const satisfies Readonly<Record<string, Refusal>>;
