import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { eventually } from '../harness/eventually.ts';
import type { Started } from './started.ts';

const ISSUES = /^\/v\d\/(mcp-)?presign$/;

type Issued = { readonly session_id: string; readonly url?: string };

/** An address that leads to the issuer. A program gets from it a URL that has expired, or has no uses, whatever it asks for. */
export async function startSpoilingIssuer(
  { ISSUER_URL, PRESIGN_API_KEY }: Started['env'],
  wrong: 'expired' | 'no uses',
) {
  async function spoil({ session_id, url = '' }: Issued): Promise<void> {
    if (wrong === 'expired') {
      const status = url.slice(0, url.indexOf('/v1/'));
      await eventually(async () => !(await fetch(status)).ok || undefined);
      return;
    }
    const answer = await fetch(`${ISSUER_URL}/v1/sessions/${session_id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${PRESIGN_API_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ grants: { max_uses: 0 } }),
    });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  }
  const server = createServer(async (request, response) => {
    const { method = 'GET', url = '/', headers } = request;
    const { host: _, connection: __, 'content-length': ___, 'transfer-encoding': ____, ...kept } = headers;
    const asked = await text(request);
    const isIssuing = ISSUES.test(url);
    const answer = await fetch(ISSUER_URL + url, {
      method,
      headers: kept as Record<string, string>,
      ...(asked !== '' && { body: isIssuing && wrong === 'expired' ? shortened(asked) : asked }),
    });
    const answered = await answer.text();
    if (answer.ok && isIssuing) await spoil(JSON.parse(answered) as Issued);
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
    response.end(answered);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const shortened = (body: string): string =>
  JSON.stringify({ ...(JSON.parse(body) as object), expires_in: 1 });
