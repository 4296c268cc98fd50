import { request as httpRequest, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { sampled, socketsRead } from '../harness/thorough.ts';
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
/** The stream that answers calls. The model's name in a call says how the stream is cut. */
let recorded = RECORDED[0] as Recorded;
/** Called when the first k bytes of the k-th call have left. */
const onSent = new Map<number, () => void>();
/** Called when the holder of the k-th call has left. */
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
      await socketsRead();
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
    onSent.set(k, () => void socketsRead().then(() => request.destroy()));
    request.end(JSON.stringify(body));
  });
}

/** The amount that one call of this shape holds, as the URL reports it while a call hangs. */
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
  const cuts = sampled(size + 1);
  beforeAll(() => {
    recorded = shape;
  });

  test(`a holder who disconnects after any of the stream's ${size} bytes pays the cost of the call`, async () => {
    const url = await spending.issue(shape);
    await eachOf(cuts, WIDTH, (k) => {
      const model = modelOf('left', k);
      return leaveAfter(urlOf(url, shape, model), shape.body(model), k);
    });
    const rows = await rowsByModel(spending, url, cuts.length);
    const odd = [...rows.values()].filter(
      (row) => row.costMicrousd !== COST || row.uses !== 1 || row.outputTokens !== 30,
    );
    expect(odd).toEqual([]);
    expect(rows.size).toBe(cuts.length);
    const status = await statusOf(url);
    expect(status).toMatchObject({ used: cuts.length, spent: COST * cuts.length, held: 0 });
  });

  test('a stream that the provider resets after any byte costs its hold and its use', async () => {
    const hold = await holdOf(shape);
    expect(hold).toBeGreaterThan(COST);
    const url = await spending.issue(shape);
    const whole: number[] = [];
    await eachOf(cuts, WIDTH, async (k) => {
      const model = modelOf('cuts', k);
      const answer = await post(urlOf(url, shape, model), shape.body(model)).catch(() => undefined);
      if (answer && !answer.broken) whole.push(k);
    });
    const rows = await rowsByModel(spending, url, cuts.length);
    expect([...rows.values()].filter((row) => row.costMicrousd !== hold || row.uses !== 1)).toEqual([]);
    expect(rows.size).toBe(cuts.length);
    // An answer that is not whole never looks whole.
    expect(whole).toEqual([]);
  });

  test('a stream that the provider ends early costs its hold, unless its last event was complete', async () => {
    const hold = await holdOf(shape);
    const url = await spending.issue(shape);
    await eachOf(cuts, WIDTH, async (k) => {
      const model = modelOf('ends', k);
      await post(urlOf(url, shape, model), shape.body(model));
    });
    const rows = await rowsByModel(spending, url, cuts.length);
    const costOf = (k: number) => rows.get(modelOf('ends', k))?.costMicrousd;
    const complete = cuts.find((k) => costOf(k) === COST) ?? Number.NaN;
    expect(cuts.map(costOf)).toEqual(cuts.map((k) => (k < complete ? hold : COST)));
    // Only the line ends of the last event may be missing.
    expect(complete).toBeGreaterThanOrEqual(size - 4);
  });
});
