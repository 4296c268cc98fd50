import type { McpDeps } from '../deps.ts';
import type { Refused } from './call.ts';
import { errorMessages, wantsAnswer } from './refuse.ts';

/**
 * Tells a refusal on the open stream of the older transport, where its client waits for it.
 * @returns whether it was told; if not, the answer to the POST itself must say so
 */
export async function tellOnStream(
  { listeners, log }: McpDeps,
  { refusal, grant, messages, endpoint }: Refused,
  requestId: string,
): Promise<boolean> {
  if (!grant || !endpoint || !messages?.all.some(wantsAnswer)) return false;
  const told = JSON.stringify(errorMessages(refusal, messages, requestId));
  return listeners.tell(grant.partition, endpoint.channel, told).catch((error: Error) => {
    log.warn({ request_id: requestId, error: error.name }, 'a refusal could not be told on its stream');
    return false;
  });
}
