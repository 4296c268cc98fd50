import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { type Seen, startUpstream, type Upstream } from '../../harness/upstream.ts';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });

/** The file of a service account's key that this Google accepts. */
export const SERVICE_ACCOUNT = {
  type: 'service_account',
  project_id: 'my-project',
  private_key_id: '0123456789abcdef',
  private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  client_email: 'presign@my-project.iam.gserviceaccount.com',
  client_id: '1',
  token_uri: 'https://oauth2.googleapis.com/token',
};

/** The requests for a token, and what they are answered with. */
export type Google = Upstream & {
  /** Claims of the assertions that came, in order. */
  readonly assertions: Readonly<Record<string, unknown>>[];
  /** Whether it gives tokens, and for how many seconds. */
  readonly tokens: { are: 'given' | 'denied'; seconds: number };
  /** Tokens that calls are refused with although they have not expired. */
  readonly revoked: Set<string>;
};

/** Vertex AI, and the token endpoint that its access tokens are from. */
export async function startGoogle(): Promise<Google> {
  const assertions: Record<string, unknown>[] = [];
  const tokens: Google['tokens'] = { are: 'given', seconds: 3_600 };
  const revoked = new Set<string>();
  const upstream = await startUpstream((seen, response) => {
    const json = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (seen.url === '/token') {
      const claims = claimsIn(seen);
      if (tokens.are === 'denied' || !claims)
        return json(400, { error: 'invalid_grant', error_description: `Invalid JWT: ${seen.body}` });
      assertions.push(claims);
      const access_token = `ya29.token-${assertions.length}`;
      return json(200, { access_token, expires_in: tokens.seconds, token_type: 'Bearer' });
    }
    const token = /^Bearer (ya29\.token-\d+)$/.exec(seen.headers.authorization ?? '')?.[1];
    if (seen.body.includes('quote the token') || token === undefined || revoked.has(token))
      return json(401, {
        error: { code: 401, message: `Invalid token ${token}`, status: 'UNAUTHENTICATED' },
      });
    if (!/streamRawPredict|streamGenerateContent/.test(seen.url))
      return json(200, seen.url.includes('/anthropic/') ? CLAUDE : GEMINI);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (!seen.url.includes('/anthropic/')) return void response.end(`data: ${JSON.stringify(GEMINI)}\n\n`);
    const events = CLAUDE_EVENTS.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`);
    response.end(events.join(''));
  });
  return { ...upstream, assertions, tokens, revoked };
}

/** The claims of a signed request for a token (RFC 7523). Undefined if anything about it is wrong. */
function claimsIn({ body }: Seen): Record<string, unknown> | undefined {
  const form = new URLSearchParams(body.toString());
  const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.');
  const isSigned = verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    createPublicKey(publicKey.export({ type: 'spki', format: 'pem' })),
    Buffer.from(signature, 'base64url'),
  );
  const read = (text: string) =>
    JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>;
  const fields = [...form.keys()].sort().join();
  const isGrant = form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer';
  if (!isSigned || !isGrant || fields !== 'assertion,grant_type') return undefined;
  const { alg, kid } = read(header);
  return alg === 'RS256' && kid === SERVICE_ACCOUNT.private_key_id ? read(claims) : undefined;
}

const GEMINI = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: {
    promptTokenCount: 20,
    candidatesTokenCount: 7,
    totalTokenCount: 27,
    trafficType: 'ON_DEMAND',
  },
  modelVersion: 'gemini-2.5-flash',
};

const CLAUDE = {
  ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-haiku-4-5-20251001' },
  ...{ content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn', stop_sequence: null },
  usage: { input_tokens: 20, output_tokens: 7 },
};

const CLAUDE_EVENTS = [
  {
    type: 'message_start',
    message: { ...CLAUDE, content: [], usage: { input_tokens: 20, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 7 },
  },
  { type: 'message_stop' },
];
