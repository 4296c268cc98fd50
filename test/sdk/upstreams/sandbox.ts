import { startSandboxLlm } from '@presign/local';
import type { Seen } from '../../harness/upstream.ts';
import { type PacedUpstream, type Reply, startPacedUpstream } from './paced.ts';

/**
 * The sandbox provider behind a front that records and keeps pace.
 * @param prefix what a provider's paths have in front of the sandbox's, such as Groq's `/openai`
 */
export async function startSandboxUpstream(prefix = ''): Promise<PacedUpstream> {
  const sandbox = await startSandboxLlm();
  const upstream = await startPacedUpstream((seen) =>
    ask(`${sandbox.url}${seen.url.slice(prefix.length)}`, seen),
  );
  return {
    ...upstream,
    close: async () => {
      await upstream.close();
      await sandbox.close();
    },
  };
}

/** Headers that the sandbox reads. */
const READ = ['authorization', 'x-api-key', 'anthropic-version', 'content-type'];

async function ask(url: string, { method, headers, body }: Seen): Promise<Reply> {
  const read = READ.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]]));
  const answer = await fetch(url, {
    method,
    headers: Object.fromEntries(read),
    ...(body.length > 0 && { body: body.toString() }),
  });
  const text = await answer.text();
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) {
    return { status: answer.status, json: JSON.parse(text) };
  }
  return { events: text.split(/(?<=\n\n)/) };
}
