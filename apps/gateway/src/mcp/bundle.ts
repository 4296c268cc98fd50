import { unseal } from '@presign/crypto';
import type { McpBundle, Refusal } from '@presign/schema';
import { credentialContext } from '@presign/schema/tables';
import type { Handler } from 'hono';
import type { GatewayDeps, GatewayEnv } from '../app.ts';
import { findSealed, type GrantMemory } from '../grant/policy.ts';
import type { VerifiedGrant, Verifier } from '../grant/verify.ts';
import { ANSWER_HEADERS } from '../http/cors.ts';
import { chargeCall, getPolicy, outage } from '../limits/admit.ts';
import { newHoldId } from '../limits/new-hold-id.ts';
import { FORMATS, inFormat } from './bundle-formats.ts';
import { bundleRefusalAnswer } from './refuse.ts';

type BundleDeps = GatewayDeps & { readonly verify: Verifier<VerifiedGrant>; readonly memory: GrantMemory };

/** `GET /mcp/bundle/<token>`: the bundle's document, or with `?format=` a client's own configuration. Costs no use. */
export function bundle(deps: BundleDeps): Handler<GatewayEnv> {
  return async (c) => {
    const requestId = c.get('requestId');
    if (c.req.method !== 'GET' && c.req.method !== 'HEAD')
      return bundleRefusalAnswer(NOT_A_SERVER, requestId);
    const format = c.req.query('format');
    const found = await findBundle(deps, requestId, c.req.param('token') ?? '');
    if ('refusal' in found) return bundleRefusalAnswer(found.refusal, requestId);
    const body = format === undefined ? found.bundle : inFormat(found.bundle, format);
    if (body === undefined) return bundleRefusalAnswer(UNKNOWN_FORMAT, requestId);
    return c.json(body, 200, { ...ANSWER_HEADERS, 'cache-control': 'no-store' });
  };
}

const NOT_A_SERVER: Refusal = {
  code: 'method_not_allowed',
  message: 'This is the URL of a bundle: GET it, and connect to the URLs of the servers in it.',
};

const UNKNOWN_FORMAT: Refusal = {
  code: 'invalid_request',
  param: 'format',
  message: `format: expected one of ${FORMATS.join(', ')}.`,
};

async function findBundle(
  deps: BundleDeps,
  requestId: string,
  token: string,
): Promise<{ bundle: McpBundle } | { refusal: Refusal }> {
  const verified = deps.verify(token);
  if ('refusal' in verified) return verified;
  const { grant } = verified;
  const found = await getPolicy(deps, requestId, grant);
  if ('refusal' in found) return found;
  const { ref, accountId } = found.policy;
  // Counts nothing; tells whether the bundle still stands.
  const ask = { chargeId: newHoldId(), uses: 0, costMicrousd: 0, record: '{}' };
  const checked = await chargeCall(deps, requestId, grant, found.policy, ask);
  if ('refusal' in checked) return checked;
  try {
    const sealed = await findSealed(deps, ref, checked.admitted.credentialVersion);
    const context = credentialContext(accountId, ref.credentialId);
    return { bundle: JSON.parse(unseal(deps.encryptionKeys, sealed?.sealed ?? '', context)) as McpBundle };
  } catch (error) {
    return { refusal: outage(deps, requestId, error) };
  }
}
