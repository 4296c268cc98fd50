import { RefusedError } from '@presign/schema';
import type { Context } from 'hono';

/** Reads a JSON body: its exact bytes and what they say. Refuses another content type, bad UTF-8, bad JSON. */
export async function readJson(c: Context): Promise<{ bytes: Uint8Array; value: unknown }> {
  const type = c.req.header('content-type') ?? '';
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    const message = 'Send the body as Content-Type: application/json.';
    throw new RefusedError({ code: 'unsupported_media_type', message });
  }
  const bytes = new Uint8Array(await c.req.arrayBuffer());
  try {
    return { bytes, value: JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) };
  } catch {
    throw new RefusedError({ code: 'invalid_json' });
  }
}
