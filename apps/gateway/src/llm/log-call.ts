import type { GatewayDeps } from '../app.ts';
import type { VerifiedGrant } from '../verify.ts';

type Logged = {
  readonly requestId: string;
  readonly grant: VerifiedGrant;
  readonly beganMs: number;
};

/** One line a call. Neither URL nor header nor body: a token rides in the first, keys and content in the rest. */
export function logCall(
  { log, now }: Pick<GatewayDeps, 'log' | 'now'>,
  { requestId, grant, beganMs }: Logged,
  {
    ended,
    uses,
  }: { readonly ended: { readonly is: string; readonly status?: number }; readonly uses: number },
): void {
  log.info(
    {
      request_id: requestId,
      session: grant.sessionId,
      grant: grant.id,
      provider: grant.provider.id,
      method: grant.method,
      ended: ended.is,
      status: ended.status,
      uses,
      ms: now() - beganMs,
    },
    'call',
  );
}
