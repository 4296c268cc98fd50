import { eventually } from '../harness/eventually.ts';
import type { Stack } from '../harness/stack.ts';

/** The uses and microdollars that a session has spent, as `GET /v1/sessions/{id}` returns them. */
export async function figuresOf(stack: Stack, sessionId: string): Promise<{ used: number; spent: number }> {
  return eventually(async () => {
    const answer = await fetch(`${stack.issuerUrl}/v1/sessions/${sessionId}`, {
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    const { grants } = (await answer.json()) as {
      grants: { live: { used: number; spent: number } | null }[];
    };
    const [live] = grants.map((grant) => grant.live);
    return live ? { used: live.used, spent: live.spent } : undefined;
  });
}
