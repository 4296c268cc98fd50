import { newHoldId } from '../../limits/admit.ts';
import { type Listing, markLists } from '../ids/list-ids.ts';
import { UnansweredRequests } from '../open/unanswered.ts';
import { listens, type Messages, waitingIds } from './messages.ts';
import { type Charged, callsOf } from './price.ts';
import type { Identified, McpCall } from './request.ts';

/** The body of a request, if it has one. */
type ReadBody = Pick<McpCall, 'messages' | 'taskId' | 'rounds'> & {
  readonly body: Listing | { readonly bytes: null };
};

/** The parts of a call that its request does not have. */
type Own = Pick<
  McpCall,
  'report' | 'incoming' | 'outgoing' | 'bodyMemory' | 'beganMs' | 'policy' | 'server' | 'charged' | 'begun'
> & { readonly round: McpCall['round'] };

/**
 * Builds a call from its parts. Each member is written by name, because V8 would store a spread object of this many members in a hash table
 * of 8 KB.
 */
export function asCall(
  { grant, method, session, cookies, lastEventId, resumes, endpoint }: Identified,
  { messages, body, taskId, rounds }: ReadBody,
  { report, incoming, outgoing, bodyMemory, beganMs, policy, server, round, charged, begun }: Own,
): McpCall {
  return {
    requestId: report.requestId,
    report,
    incoming,
    outgoing,
    method,
    grant,
    policy,
    server,
    messages,
    body: server.tools ? markLists(body) : body,
    bodyMemory,
    session,
    cookies,
    lastEventId,
    resumes,
    taskId,
    endpoint,
    rounds,
    round,
    charged,
    chargeId: newHoldId(),
    beganMs,
    unanswered: unansweredOf(messages, charged),
    begun,
  };
}

function unansweredOf(messages: Messages | undefined, charged: readonly Charged[]): UnansweredRequests {
  const unanswered = new UnansweredRequests(waitingIds(messages), callsOf(messages, charged).length);
  for (const message of messages?.all ?? [])
    if (message.id !== undefined && listens(message)) unanswered.waitsNoMore(message.id, 'listens');
  return unanswered;
}
