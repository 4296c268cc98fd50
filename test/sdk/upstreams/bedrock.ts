import { createHash, createHmac } from 'node:crypto';
import { eventFrame } from '@presign/gateway/test/frame.ts';
import { type Seen, startUpstream, type Upstream } from '../../harness/upstream.ts';

/** The keys that this Bedrock accepts. */
export const AWS_KEY = {
  access_key_id: 'AKIDEXAMPLE000000001',
  secret_access_key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  session_token: 'IQoJb3JpZ2luX2VjEXAMPLE//////////wEaCXVzLWVhc3QtMSJH',
  region: 'eu-central-1',
};
export const BEDROCK_API_KEY = 'ABSKQmVkcm9ja0FQSUtleS1leGFtcGxl';

/** Usage of every answer: 30 input tokens, 10 of them read from the cache, and 7 output tokens. */
const USAGE = {
  inputTokens: 20,
  outputTokens: 7,
  totalTokens: 37,
  cacheReadInputTokens: 10,
  cacheWriteInputTokens: 0,
};
const CLAUDE_USAGE = {
  input_tokens: 20,
  cache_read_input_tokens: 10,
  cache_creation_input_tokens: 0,
  output_tokens: 7,
};

/** Bedrock's runtime, which checks each signature as AWS describes it and answers with fixed usage. */
export async function startBedrock(): Promise<Upstream> {
  return startUpstream((seen, response) => {
    const problem = signatureProblem(seen);
    if (problem !== undefined) {
      response.writeHead(403, {
        'content-type': 'application/json',
        'x-amzn-errortype': 'InvalidSignatureException',
      });
      response.end(JSON.stringify({ message: problem }));
      return;
    }
    const operation = /\/([\w-]+)$/.exec(seen.url)?.[1] ?? '';
    const stream = STREAMS[operation];
    if (stream) {
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
      response.end(Buffer.concat(stream));
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(operation === 'converse' ? CONVERSE : CLAUDE));
  });
}

const CONVERSE = {
  output: { message: { role: 'assistant', content: [{ text: 'Hello' }] } },
  stopReason: 'end_turn',
  usage: USAGE,
  metrics: { latencyMs: 1 },
};

const CLAUDE = {
  ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-haiku-4-5-20251001' },
  ...{ content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn', stop_sequence: null },
  usage: CLAUDE_USAGE,
};

const CLAUDE_EVENTS = [
  {
    type: 'message_start',
    message: { ...CLAUDE, content: [], stop_reason: null, usage: { ...CLAUDE_USAGE, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 7 },
  },
  { type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 20, outputTokenCount: 7 } },
];

const STREAMS: Readonly<Record<string, readonly Buffer[]>> = {
  'converse-stream': [
    eventFrame('messageStart', { role: 'assistant' }),
    eventFrame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hello' }, p: 'abcd' }),
    eventFrame('contentBlockStop', { contentBlockIndex: 0 }),
    eventFrame('messageStop', { stopReason: 'end_turn' }),
    eventFrame('metadata', { usage: USAGE, metrics: { latencyMs: 1 } }),
  ],
  'invoke-with-response-stream': CLAUDE_EVENTS.map((each) =>
    eventFrame('chunk', { bytes: Buffer.from(JSON.stringify(each)).toString('base64'), p: 'abc' }),
  ),
};

const sha256 = (text: Buffer | string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** A request and the account that may sign it. */
type Account = { readonly secret: string; readonly scope: readonly [region: string, service: string] };

/**
 * The signature of a request by the steps of
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function signatureOf(
  { method, url, headers, body }: Pick<Seen, 'method' | 'url' | 'headers' | 'body'>,
  signedHeaders: readonly string[],
  { secret, scope: [region, service] }: Account,
): string {
  const [path = '', query = ''] = url.split('?');
  const encode = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const canonical = [
    method,
    path.split('/').map(encode).join('/'),
    query.split('&').sort().join('&'),
    ...signedHeaders.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    signedHeaders.join(';'),
    sha256(body),
  ].join('\n');
  const time = String(headers['x-amz-date']);
  const day = time.slice(0, 8);
  const scope = [day, region, service, 'aws4_request'].join('/');
  const key = [day, region, service, 'aws4_request'].reduce<Buffer | string>(hmac, `AWS4${secret}`);
  return hmac(key, ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')).toString('hex');
}

/** Why a request is not signed with the account's key. Undefined if it is. */
function signatureProblem(seen: Seen): string | undefined {
  const { authorization = '' } = seen.headers;
  if (authorization === `Bearer ${BEDROCK_API_KEY}`) return undefined;
  const [, id, day, region, service, names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([\w-]+)\/(\w+)\/aws4_request, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/.exec(
      authorization,
    ) ?? [];
  const { access_key_id, secret_access_key, session_token } = AWS_KEY;
  if (id !== access_key_id || region !== AWS_KEY.region || service !== 'bedrock') return 'other key or scope';
  if (seen.headers['x-amz-security-token'] !== session_token) return `other token than ${session_token}`;
  if (!String(seen.headers['x-amz-date']).startsWith(String(day))) return 'other day';
  const signed = names.split(';');
  const unsigned = Object.keys(seen.headers).filter(
    (name) => /^(host|x-amz-.*)$/.test(name) && !signed.includes(name),
  );
  if (unsigned.length > 0) return `not signed: ${unsigned}`;
  const expected = signatureOf(seen, signed, {
    secret: secret_access_key,
    scope: [AWS_KEY.region, 'bedrock'],
  });
  return signature === expected ? undefined : `The signature of ${session_token} does not match`;
}
