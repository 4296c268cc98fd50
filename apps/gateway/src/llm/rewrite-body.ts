import type { IncomingMessage } from 'node:http';
import { applyConfig, type Dialect, dialectOf, type Provider } from '@presign/providers';
import { isJsonObject, type JsonObject, type Refusal } from '@presign/schema';
import { ambiguousKey, type NamesRead } from './ambiguous-key.ts';

/** The largest body that is read whole, because a config must act on it. */
export const BODY_MAX_BYTES = 64 * 1024 * 1024;

/** Reads a body and lays the grant's config over it; what is checked here is what is sent. */
export async function rewriteBody(
  request: IncomingMessage,
  provider: Provider,
  path: string,
  config: JsonObject,
): Promise<{ body: Buffer } | { refusal: Refusal }> {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    return { refusal: { code: 'unsupported_media_type', param: 'Content-Encoding' } };
  const raw = await readWhole(request);
  if (raw === undefined) {
    return {
      refusal: { code: 'body_too_large', message: `The body may have at most ${BODY_MAX_BYTES} bytes.` },
    };
  }
  const text = decode(raw);
  if (text === undefined) return { refusal: { code: 'invalid_json' } };
  const dialect = dialectOf(provider, path);
  const read = parse(text, namesRead(dialect, config));
  if ('refusal' in read) return read;
  const { body } = applyConfig(dialect, config, { path, body: read.value });
  return { body: Buffer.from(JSON.stringify(body)) };
}

/** The body's bytes; undefined when there are too many. */
async function readWhole(request: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > BODY_MAX_BYTES) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** UTF-8, with a byte order mark refused later by the parser (RFC 8259 §8.1). */
function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** What a config touches in a body, under every name it has there. */
function namesRead(dialect: Dialect | undefined, config: JsonObject): NamesRead {
  const settings = dialect?.settings ?? [];
  const names = settings.flatMap(({ at, names, rivals }) => [
    ...names,
    ...(rivals ?? []),
    ...(at ? [at[0], at.join('.')] : []),
  ]);
  const overrides = Object.entries(config).flatMap(([key, value]) =>
    isJsonObject(value) ? [key, ...Object.keys(value).map((inner) => `${key}.${inner}`)] : [key],
  );
  return new Set([...names, ...overrides]);
}

function parse(text: string, names: NamesRead): { value: JsonObject } | { refusal: Refusal } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { refusal: { code: 'invalid_json' } };
  }
  if (!isJsonObject(value)) return { refusal: { code: 'unsupported_media_type' } };
  const key = ambiguousKey(text, names);
  if (key === undefined) return { value };
  const message = `${key}: readers may differ on what this key says: it stands twice, or in another case than ours.`;
  return { refusal: { code: 'invalid_request', param: key, message } };
}
