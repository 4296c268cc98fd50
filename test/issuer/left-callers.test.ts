import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

type Line = { readonly level: number; readonly msg: string; readonly path?: string } & Record<
  string,
  unknown
>;
const linesSince = (from: number) => stack.logs.slice(from).map((line) => JSON.parse(line) as Line);

/** Sends the beginning of a request, and leaves when the issuer has it. */
async function leave(text: string): Promise<void> {
  const socket = net.connect(Number(new URL(stack.issuerUrl).port), '127.0.0.1');
  await new Promise<void>((resolve) => socket.write(text, () => resolve()));
  await new Promise((resolve) => setTimeout(resolve, 300));
  socket.destroy();
}

const head = (path: string, fields: string) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${stack.apiKey}\r\nContent-Type: application/json\r\n${fields}\r\n\r\n`;

describe('a request whose caller disconnects', () => {
  test.each([
    ['with a length', '/v1/presign', 'Content-Length: 100', '{"provider":'],
    ['in chunks', '/v1/presign', 'Transfer-Encoding: chunked', 'c\r\n{"provider":\r\n'],
    ['in a chunk', '/v1/presign', 'Transfer-Encoding: chunked', '64\r\n{"provider":'],
    ['of another route', '/v1/webhooks', 'Content-Length: 100', '{"url":'],
  ])('in the middle of a body %s is not an error of the service', async (_, path, fields, body) => {
    const from = stack.logs.length;
    await leave(head(path, fields) + body);
    const line = await eventually(async () => linesSince(from).find(({ msg }) => msg === 'request'));
    expect(line).toMatchObject({ level: 30, status: 499, code: 'caller_left' });
    expect(linesSince(from).filter(({ level }) => level >= 40)).toEqual([]);
  });
});

describe('the log under a flood of requests', () => {
  test('has short lines, whatever the path is', async () => {
    const from = stack.logs.length;
    for (const path of [`/v1/${'x'.repeat(12_000)}`, `/v1/v4.public.${'x'.repeat(12_000)}`])
      expect((await fetch(stack.issuerUrl + path)).status).toBe(401);
    const lines = linesSince(from).filter(({ msg }) => msg === 'request');
    expect(lines).toHaveLength(2);
    for (const { path = '' } of lines) expect(path.length).toBeLessThan(220);
    expect(lines[1]?.path).toBe('/v1/v4.public.…');
  });

  test('has at most 20 refused requests a second, and says how many it left out', async () => {
    // Longer than the second that counts the requests of other tests.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const from = stack.logs.length;
    const began = performance.now();
    const ask = () => fetch(`${stack.issuerUrl}/v1/limits`);
    for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 20 }, ask));
    const written = await eventually(async () => {
      const out = linesSince(from).filter(({ msg }) => msg === 'refused requests were not logged');
      const logged = linesSince(from).filter(({ msg }) => msg === 'request').length;
      const sum = out.reduce((all, { left_out }) => all + Number(left_out), logged);
      return sum === 200 ? logged : undefined;
    });
    const seconds = Math.ceil((performance.now() - began) / 1_000);
    expect(written).toBeLessThanOrEqual(20 * (seconds + 1));
    // A request that is not refused has its line all the same.
    const authorization = `Bearer ${stack.apiKey}`;
    await fetch(`${stack.issuerUrl}/v1/limits`, { headers: { authorization } });
    expect(linesSince(from).some(({ status }) => status === 200)).toBe(true);
  });
});
