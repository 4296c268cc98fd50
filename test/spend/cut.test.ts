import { request as httpRequest, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import {
  eachOf,
  indexIn,
  modelOf,
  post,
  rowsByModel,
  type Spending,
  startSpending,
  statusOf,
  urlOf,
} from './many-calls.ts';
import { COST, RECORDED, type Recorded } from './recorded.ts';

const WIDTH = 60;
const longest = Math.max(...RECORDED.map(({ stream }) => Buffer.byteLength(stream))) + 2;

let spending: Spending;
/** What comes of a call: told by its model's name. */
let recorded = RECORDED[0] as Recorded;
/** Told when the first k bytes of the k-th call have left. */
const onSent = new Map<number, () => void>();
/** Told when the holder of the k-th call has left. */
const onLeft = new Map<number, () => void>();

beforeAll(async () => {
  spending = await startSpending(
    ['left', 'cuts', 'ends', 'hang'],
    longest,
    async (seen, response, request) => {
      const text = seen.url + seen.body.toString();
      const bytes = Buffer.from(recorded.stream);
      if (text.includes('hang-')) return;
      if (text.includes('left-')) return tillHolderLeaves(indexIn(text, 'left'), bytes, response);
      const resets = text.includes('cuts-');
      // Without a length and not chunked: the end of the connection is the end of the answer.
      if (!resets) response.removeHeader('transfer-encoding');
      const k = indexIn(text, resets ? 'cuts' : 'ends');
      response.writeHead(200, { 'content-type': recorded.contentType });
      response.flushHeaders();
      if (k > 0) await new Promise<void>((sent) => response.write(bytes.subarray(0, k), () => sent()));
      await sleep(2);
      if (resets) request.socket.resetAndDestroy();
      else response.end();
    },
  );
});
afterAll(() => spending.close());

async function tillHolderLeaves(k: number, bytes: Buffer, response: ServerResponse): Promise<void> {
  const left = new Promise<void>((resolve) => onLeft.set(k, resolve));
  response.writeHead(200, { 'content-type': recorded.contentType });
  response.flushHeaders();
  if (k > 0) await new Promise<void>((sent) => response.write(bytes.subarray(0, k), () => sent()));
  onSent.get(k)?.();
  await left;
  response.end(bytes.subarray(k));
}

/** A holder who is gone once the provider has sent k bytes. */
function leaveAfter(url: string, body: object, k: number): Promise<void> {
  return new Promise((resolve) => {
    const request = httpRequest(url, {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json' },
    });
    request.on('error', () => {});
    request.on('response', (response) => response.on('error', () => {}).resume());
    request.on('close', () => {
      onLeft.get(k)?.();
      resolve();
    });
    onSent.set(k, () => setTimeout(() => request.destroy(), 3));
    request.end(JSON.stringify(body));
  });
}

/** What one call of this shape holds: as the holder of a URL is told while a call hangs. */
async function holdOf(shape: Recorded): Promise<number> {
  const url = await spending.issue(shape);
  // Names of one length make bodies of one length.
  const model = modelOf('hang', 0);
  const request = httpRequest(urlOf(url, shape, model), { method: 'POST', agent: false });
  request.on('error', () => {});
  request.end(JSON.stringify(shape.body(model)));
  const held = await eventually(async () => (await statusOf(url)).held || undefined);
  request.destroy();
  return held;
}

describe.each(RECORDED)('$name', (shape) => {
  const size = Buffer.byteLength(shape.stream);
  beforeAll(() => {
    recorded = shape;
  });

  test(`a holder who leaves after any of its ${size} bytes is charged what the call cost`, async () => {
    const url = await spending.issue(shape);
    await eachOf(size + 1, WIDTH, (k) => {
      const model = modelOf('left', k);
      return leaveAfter(urlOf(url, shape, model), shape.body(model), k);
    });
    const rows = await rowsByModel(spending, url, size + 1);
    const odd = [...rows.values()].filter(
      (row) => row.costMicrousd !== COST || row.uses !== 1 || row.outputTokens !== 30,
    );
    expect(odd).toEqual([]);
    expect(rows.size).toBe(size + 1);
    const status = await statusOf(url);
    expect(status).toMatchObject({ used: size + 1, spent: COST * (size + 1), held: 0 });
  });

  test('a provider that resets the connection after any of its bytes: the hold is charged, the use kept', async () => {
    const hold = await holdOf(shape);
    expect(hold).toBeGreaterThan(COST);
    const url = await spending.issue(shape);
    const whole: number[] = [];
    await eachOf(size + 1, WIDTH, async (k) => {
      const model = modelOf('cuts', k);
      const answer = await post(urlOf(url, shape, model), shape.body(model)).catch(() => undefined);
      if (answer && !answer.broken) whole.push(k);
    });
    const rows = await rowsByModel(spending, url, size + 1);
    expect([...rows.values()].filter((row) => row.costMicrousd !== hold || row.uses !== 1)).toEqual([]);
    expect(rows.size).toBe(size + 1);
    // What is not whole never looks whole.
    expect(whole).toEqual([]);
  });

  test('a provider that ends early without a fault: the hold is charged until its last word was said', async () => {
    const hold = await holdOf(shape);
    const url = await spending.issue(shape);
    await eachOf(size + 1, WIDTH, async (k) => {
      const model = modelOf('ends', k);
      await post(urlOf(url, shape, model), shape.body(model));
    });
    const rows = await rowsByModel(spending, url, size + 1);
    const costs = Array.from({ length: size + 1 }, (_, k) => rows.get(modelOf('ends', k))?.costMicrousd);
    const told = costs.indexOf(COST);
    expect(costs).toEqual(costs.map((_, k) => (k < told ? hold : COST)));
    // Nothing but the end of its last event may be missing.
    expect(told).toBeGreaterThanOrEqual(size - 2);
  });
});
