import type { IncomingMessage } from 'node:http';
import type { Refusal } from '@presign/schema';
import { mayBeLarge, readDecoded } from '../../http/body.ts';
import { outageRefusal } from '../../http/refuse.ts';
import { type Reservation, SMALL_BODY_BYTES } from '../../share/body-memory.ts';
import { takeWork } from '../../share/read-quota.ts';
import type { Listing } from '../ids/list-ids.ts';
import { mayHaveRounds, roundsOf, takeRound } from '../ids/rounds.ts';
import { unsealBody } from '../ids/unseal-body.ts';
import type { McpDeps } from './mcp-deps.ts';
import { checkHeaders, type Message, type Messages, readMessages, scanMessages } from './messages.ts';
import { type Identified, identifyExpired, type McpCall } from './request.ts';

/** The longest time for which a call runs after the end of its URL. */
export const lastEndMs = (
  { upstreamTimeoutMs }: Pick<McpDeps, 'upstreamTimeoutMs'>,
  { expiresAtMs }: Pick<Identified['grant'], 'expiresAtMs'>,
): number => expiresAtMs + upstreamTimeoutMs;

/**
 * Identifies a request with an expired URL that may belong to a call that was admitted before: the rest of its stream, a message to its
 * server, or a further round. Undefined if it cannot belong to one.
 */
export function identifyLate(
  deps: Pick<McpDeps, 'verify' | 'encryptionKeys' | 'memory' | 'now' | 'upstreamTimeoutMs'>,
  grant: Identified['grant'] | undefined,
  incoming: IncomingMessage,
): Identified | undefined {
  if (!grant || deps.now() >= lastEndMs(deps, grant)) return undefined;
  const identified = identifyExpired(deps, grant, incoming);
  if (identified?.method === 'GET') return identified.resumes.length > 0 ? identified : undefined;
  // A refused large body is read for its ids alone.
  return identified?.method === 'POST' && !mayBeLarge(incoming) ? identified : undefined;
}

/** The content of a request, or its refusal. */
type Read =
  | (Pick<McpCall, 'messages' | 'taskId' | 'rounds'> & { readonly body: Listing | { readonly bytes: null } })
  | { readonly refusal: Refusal; readonly messages?: Messages; readonly isRead: true };

/** Reads a request that came after the end of its URL. It is refused before any store is queried, unless it belongs to a call in flight. */
export async function readLate(
  deps: Pick<McpDeps, 'encryptionKeys' | 'readQuota' | 'listeners'>,
  { method, grant, endpoint }: Identified,
  incoming: IncomingMessage,
  memory: Reservation,
): Promise<Read> {
  if (method === 'GET') return { messages: undefined, body: { bytes: null }, taskId: undefined };
  memory.belongsTo(grant.id);
  const whole = await readDecoded(incoming, memory);
  if ('refusal' in whole) return { refusal: EXPIRED, isRead: true };
  const scan = takeWork(
    deps.readQuota,
    grant,
    whole.bytes,
    (most) => scanMessages(whole.bytes, most),
    SMALL_BODY_BYTES,
  );
  const read = readMessages(whole.bytes, undefined, scan, mayHaveRounds(incoming.headers));
  if ('refusal' in read) return { refusal: EXPIRED, isRead: true };
  const { messages } = read;
  const body = unsealBody(deps.encryptionKeys, grant, whole.bytes, messages.ids ?? []);
  if ('refusal' in body) return { refusal: EXPIRED, messages, isRead: true };
  const rounds = roundsOf(deps.encryptionKeys, grant, messages);
  // Its state was sealed with the request's digest, which was judged in the first round.
  if (rounds?.before && !endpoint && !checkHeaders(incoming.headers, messages))
    return { messages, body, taskId: undefined, rounds };
  // After the end, a stream of the older transport stays open only while a call is open on it.
  const belongs =
    areOfCalls(messages) &&
    (!endpoint || (await deps.listeners.hasStream(grant.partition, endpoint.channel).catch(() => false)));
  return belongs ? { messages, body, taskId: undefined } : { refusal: EXPIRED, messages, isRead: true };
}

/** The round of a request, if it continues a call. After the end of its URL it must continue one. */
export async function freeRound(
  deps: Pick<McpDeps, 'redis' | 'now' | 'log'>,
  requestId: string,
  grant: McpCall['grant'],
  { rounds, isLate }: { readonly rounds: McpCall['rounds']; readonly isLate: boolean },
): Promise<Pick<McpCall, 'round'> | { readonly refusal: Refusal }> {
  try {
    const round = await takeRound(deps, grant, rounds);
    // Its state is too old or was used, so it would be a new call.
    return isLate && rounds && !round ? { refusal: EXPIRED } : { round };
  } catch (error) {
    return { refusal: outageRefusal(deps.log, requestId, error) };
  }
}

const EXPIRED: Refusal = { code: 'token_expired' };

/** Whether all messages of a POST belong to calls in flight, and start nothing new: answers to the server, progress and cancellations. */
function areOfCalls({ all, ids = [] }: Messages): boolean {
  const answers = all.filter(({ method }) => method === undefined).length;
  // The server has sent as many requests to this URL.
  return all.every(isOfCall) && ids.filter(({ kind }) => kind === 'request').length === answers;
}

const isOfCall = ({ id, method }: Message): boolean =>
  id === undefined && (method === undefined || OF_CALLS.has(method));

const OF_CALLS: ReadonlySet<string> = new Set(['notifications/cancelled', 'notifications/progress']);
