import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, outcomes, post, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';

const MIB = 1024 * 1024;
const TOOL = '{"name":"hidden"},';
const JSON_LIST = {
  type: 'application/json',
  start: '{"jsonrpc":"2.0","id":1,"result":{"tools":[',
  end: ']}}',
};
const EVENT_LIST = {
  ...JSON_LIST,
  type: 'text/event-stream',
  start: `data: ${JSON_LIST.start}`,
  end: ']}}\n\n',
};

let stack: Stack;
let upstream: McpUpstream;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
  upstream = await startMcpUpstream();
});
afterAll(async () => {
  await upstream.close();
  await stack.close();
});
beforeEach(() => {
  upstream.behaves = undefined;
});

const issue = async () =>
  urlOf(
    await stack.issueMcp({
      servers: [{ name: 'a', url: upstream.url, transport: 'http', tools: ['shown'] }],
    }),
    'a',
  );

describe('an endless list of tools', () => {
  const piece = Buffer.from(TOOL.repeat(MIB / 4 / TOOL.length));
  test.each([
    ['in one piece', JSON_LIST, () => piece],
    ['as one event', EVENT_LIST, () => piece],
    ['as one event of empty lines', EVENT_LIST, () => Buffer.from('\ndata:'.repeat(MIB / 24))],
  ])('%s is refused, and read no further', async (_what, { type, start }, next) => {
    let sent = 0;
    const closed = new Promise<void>((resolve) => {
      upstream.behaves = (_arrived, response) => {
        const bytes = next();
        response.once('close', resolve).writeHead(200, { 'content-type': type }).write(start);
        const more = () => {
          while (!response.destroyed) {
            sent += bytes.length;
            if (!response.write(bytes)) return response.once('drain', more);
          }
          return undefined;
        };
        more();
      };
    });
    const heard = await post(await issue(), ask('tools/list', 1));
    expect(outcomes(heard).at(-1)).toBe('upstream_unreachable');
    expect(heard.text).not.toContain('hidden');
    await closed;
    // An event is waited for up to 16 MiB. The rest is in the buffers of sockets.
    expect(sent).toBeLessThan(32 * MIB);
  });
});

test.each([
  ['in one piece', JSON_LIST],
  ['as events', EVENT_LIST],
])(
  'calls of another URL are answered while one URL lists very many tools at once: %s',
  async (_what, form) => {
    const { type, start, end } = form;
    // The most parts that are read.
    const list = Buffer.from(
      `${start}${TOOL.repeat(12_000)}{"name":"shown","description":"${'x'.repeat(MIB)}"}${end}`,
    );
    upstream.behaves = ({ body }, response) => {
      if (!body.includes('tools/list')) return false;
      return response.writeHead(200, { 'content-type': type }).end(list) && true;
    };
    const [attacker, bystander] = [await issue(), await issue()];
    expect((await post(bystander, ask('ping'))).status).toBe(200);
    let open = 8;
    const lists = Array.from({ length: open }, async () => {
      const { status, text } = await post(attacker, ask('tools/list', 1));
      open--;
      return { status, isFiltered: text.includes('shown') && !text.includes('hidden') };
    });
    let answered = 0;
    while (open > 0) {
      expect((await post(bystander, ask('ping'))).status).toBe(200);
      answered++;
    }
    expect(await Promise.all(lists)).toEqual(Array(8).fill({ status: 200, isFiltered: true }));
    // One answer in one piece after the other, without turns, left time for 38.
    expect(answered).toBeGreaterThan(50);
  },
);
