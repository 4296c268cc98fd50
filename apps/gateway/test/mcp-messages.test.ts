import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkHeaders, readMessages } from '../src/mcp/messages.ts';
import { type McpPrices, priceCalls } from '../src/mcp/price.ts';
import { UnrunRequests } from '../src/mcp/refund.ts';
import { readMcpUrl } from '../src/mcp/request.ts';

const read = (value: unknown) =>
  readMessages(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
const request = (method: string, params: object = {}, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});
const messagesOf = (value: unknown) => {
  const told = read(value);
  if ('refusal' in told) throw new Error(told.refusal.message ?? told.refusal.code);
  return told.messages;
};
const codeOf = (value: unknown) => {
  const told = read(value);
  return 'refusal' in told ? told.refusal.code : undefined;
};

const server = { name: 'files', url: 'https://mcp.example.com/mcp', transport: 'http' } as const;
const prices: McpPrices = { byServer: new Map(), defaultMicrousd: 1_000 };
const usesOf = (value: unknown) => {
  const priced = priceCalls(messagesOf(value).all, server, prices);
  return 'charged' in priced ? priced.charged.length : priced.refusal.code;
};

describe('messages', () => {
  it.each([
    'initialize',
    'ping',
    'server/discover',
    'tools/list',
    'prompts/list',
    'resources/list',
    'resources/templates/list',
    'subscriptions/listen',
    'resources/subscribe',
    'resources/unsubscribe',
    'logging/setLevel',
    'completion/complete',
    'tasks/get',
    'tasks/result',
    'notifications/initialized',
  ])('%s is free', (method) => expect(usesOf(request(method))).toBe(0));

  it.each([
    'tools/call',
    'prompts/get',
    'resources/read',
    'x',
    'Tools/Call',
    'notification/x',
    'list',
    '/list',
  ])('%s is one use', (method) => expect(usesOf(request(method))).toBe(1));

  it('a message of an unknown method is one use without an id, too', () => {
    expect(usesOf({ jsonrpc: '2.0', method: 'do/it' })).toBe(1);
  });

  it('a response is free', () => {
    expect(usesOf({ jsonrpc: '2.0', id: 1, result: {} })).toBe(0);
    expect(usesOf({ jsonrpc: '2.0', id: 1, error: { code: 1, message: '' } })).toBe(0);
  });

  it('what has a method is a request, whatever stands beside it', () => {
    expect(usesOf({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a' }, result: {} })).toBe(
      1,
    );
  });

  it('each message of a batch counts', () => {
    expect(usesOf([request('tools/call'), request('ping'), request('tools/call')])).toBe(2);
  });

  it.each([
    ['not JSON', '{', 'invalid_json'],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]).toString('latin1').replace('ÿ', '\ud800'), 'invalid_json'],
    ['an empty batch', [], 'invalid_request'],
    ['101 messages', Array(101).fill(request('ping')), 'invalid_request'],
    ['a string', '"x"', 'invalid_request'],
    ['null in a batch', [null], 'invalid_request'],
    ['a batch in a batch', [[request('ping')]], 'invalid_request'],
    ['a method that is no string', { jsonrpc: '2.0', id: 1, method: 5 }, 'invalid_request'],
    ['an id that is an object', { jsonrpc: '2.0', id: {}, method: 'ping' }, 'invalid_request'],
    ['neither request nor response', { jsonrpc: '2.0', id: 1 }, 'invalid_request'],
    ['a method twice', '{"id":1,"method":"ping","method":"tools/call"}', 'invalid_request'],
    ['a method in another case', '{"id":1,"method":"ping","Method":"tools/call"}', 'invalid_request'],
    [
      'a name in another case',
      '{"id":1,"method":"tools/call","params":{"name":"a","NAME":"b"}}',
      'invalid_request',
    ],
    ['params in another case', '{"id":1,"method":"tools/call","Params":{"name":"b"}}', 'invalid_request'],
    ['a method twice in a batch', '[{"id":1,"method":"ping","method":"tools/call"}]', 'invalid_request'],
    ['a method in another case in a batch', '[{"id":1,"method":"ping","METHOD":"x"}]', 'invalid_request'],
    [
      'arguments twice',
      '{"id":1,"method":"tools/call","params":{"name":"a","a":1,"a":2}}',
      'invalid_request',
    ],
  ])('%s is refused', (_, body, code) => expect(codeOf(body)).toBe(code));

  it("a tool's own arguments may be named alike but for case", () => {
    const body = request('tools/call', { name: 'a', arguments: { name: 1, Name: 2, METHOD: 3 } });
    expect(codeOf(body)).toBeUndefined();
  });

  it('whatever JSON comes is read or refused, never thrown over', () => {
    fc.assert(
      fc.property(fc.json(), (text) => void read(text)),
      { numRuns: 2_000 },
    );
  });
});

describe('prices', () => {
  const call = (name: string) => messagesOf(request('tools/call', { name })).all;
  const costOf = (name: string, own: object, operators: [string, object][] = []) => {
    const priced = priceCalls(call(name), { ...server, ...own }, {
      ...prices,
      byServer: new Map(operators),
    } as McpPrices);
    return 'charged' in priced ? priced.charged[0]?.costMicrousd : priced.refusal.code;
  };
  const pricing = { default: 20, tools: { search: 30 } };

  it("are the grant's for the tool, then the grant's default, the operator's, and the operator's default", () => {
    expect(costOf('search', { pricing })).toBe(30);
    expect(costOf('other', { pricing })).toBe(20);
    expect(costOf('search', { pricing: { tools: { other: 5 } } })).toBe(1_000);
    expect(costOf('search', {}, [['https://mcp.example.com', { tools: { search: 7 } }]])).toBe(7);
    expect(
      costOf('search', {}, [
        [server.url, { default: 8 }],
        ['https://mcp.example.com', { default: 9 }],
      ]),
    ).toBe(8);
    expect(costOf('search', {})).toBe(1_000);
  });

  it('of a tool named like a part of every object are what was laid down', () => {
    expect(costOf('constructor', { pricing })).toBe(20);
    expect(costOf('toString', { pricing: { tools: {} } })).toBe(1_000);
  });

  it('are not asked for tools that are not allowed', () => {
    expect(costOf('search', { tools: ['other'] })).toBe('tool_not_allowed');
    expect(costOf('search', { tools: [] })).toBe('tool_not_allowed');
    expect(costOf('search', { tools: ['search'] })).toBe(1_000);
    const nameless = priceCalls(messagesOf(request('tools/call')).all, { ...server, tools: ['a'] }, prices);
    expect(nameless).toMatchObject({ refusal: { code: 'tool_not_allowed' } });
  });
});

describe('what did not run', () => {
  const unrunOf = (sent: unknown, ...answers: unknown[]) => {
    const priced = priceCalls(messagesOf(sent).all, server, prices);
    const unrun = new UnrunRequests('charged' in priced ? priced.charged : []);
    for (const answer of answers) unrun.see(typeof answer === 'string' ? answer : JSON.stringify(answer));
    return { ...unrun.unrun, isDone: unrun.isDone };
  };
  const failed = (code: number, id: unknown = 1) => ({ jsonrpc: '2.0', id, error: { code, message: '' } });

  it.each([-32600, -32601, -32602, -32700])('is told by %i', (code) =>
    expect(unrunOf(request('tools/call'), failed(code))).toEqual({
      uses: 1,
      costMicrousd: 1_000,
      isDone: true,
    }),
  );

  it.each([-32603, -32000, 0])('is not told by %i', (code) =>
    expect(unrunOf(request('tools/call'), failed(code)).uses).toBe(0),
  );

  it('is not a result that says it is an error', () => {
    expect(unrunOf(request('tools/call'), { id: 1, result: { isError: true } }).uses).toBe(0);
  });

  it('is counted once, for the request it answers, and only if that was charged', () => {
    expect(unrunOf(request('tools/call'), failed(-32602), failed(-32602)).uses).toBe(1);
    expect(unrunOf(request('tools/call'), failed(-32602, 2)).uses).toBe(0);
    expect(unrunOf(request('tools/call'), failed(-32602, '1')).uses).toBe(0);
    expect(unrunOf(request('tools/list'), failed(-32602)).uses).toBe(0);
    expect(unrunOf(request('tools/call'), 'no JSON', 'null', '5').uses).toBe(0);
  });

  it('is an error without an id, where one request was sent', () => {
    expect(unrunOf(request('tools/call'), failed(-32700, null)).uses).toBe(1);
    const two = [request('tools/call', {}, 1), request('tools/call', {}, 2)];
    expect(unrunOf(two, failed(-32700, null)).uses).toBe(0);
  });

  it('is told by a long answer, but by none that would take long to parse', () => {
    const long = { ...failed(-32602), data: 'x'.repeat(20_000) };
    expect(unrunOf(request('tools/call'), long).uses).toBe(1);
    const names = { ...failed(-32602), data: { ['k'.repeat(16_001)]: 1 } };
    expect(unrunOf(request('tools/call'), names).uses).toBe(0);
  });

  it('is told for each request of a batch', () => {
    const two = [request('tools/call', {}, 1), request('tools/call', {}, 'b')];
    expect(unrunOf(two, failed(-32602, 'b'))).toMatchObject({ uses: 1, isDone: false });
    expect(unrunOf(two, [failed(-32602, 'b'), { id: 1, result: {} }])).toMatchObject({
      uses: 1,
      isDone: true,
    });
  });
});

describe('the headers that repeat a message', () => {
  const check = (headers: Record<string, string>, body: unknown = request('tools/call', { name: 'a' })) =>
    checkHeaders(headers, messagesOf(body))?.param;

  it('must say what it says', () => {
    expect(check({})).toBeUndefined();
    expect(check({ 'mcp-method': 'tools/call', 'mcp-name': 'a' })).toBeUndefined();
    expect(check({ 'mcp-method': 'tools/list' })).toBe('Mcp-Method');
    expect(check({ 'mcp-method': 'tools/call', 'mcp-name': 'b' })).toBe('Mcp-Name');
    expect(check({ 'mcp-name': '=?base64?Yg==?=' })).toBe('Mcp-Name');
    expect(check({ 'mcp-name': '=?base64?YQ==?=' })).toBeUndefined();
    expect(check({ 'mcp-method': 'tools/call' }, [request('tools/call')])).toBe('Mcp-Method');
    expect(
      check(
        { 'mcp-method': 'resources/read', 'mcp-name': 'file:///a' },
        request('resources/read', { uri: 'file:///a' }),
      ),
    ).toBeUndefined();
    const task = request('tasks/get', { taskId: 't' });
    expect(check({ 'mcp-method': 'tasks/get', 'mcp-name': 't' }, task)).toBeUndefined();
    expect(check({ 'mcp-method': 'tasks/get', 'mcp-name': 'u' }, task)).toBe('Mcp-Name');
  });
});

describe("a call's URL", () => {
  it('gives server, token and endpoint, decoded', () => {
    expect(readMcpUrl('/mcp/mcp?url=https%3A%2F%2Fa%2Fb%3Fc%3D1&token=t&ep=e&x=1')).toEqual({
      url: 'https://a/b?c=1',
      token: 't',
      endpoint: 'e',
    });
  });

  it.each([
    '/mcp/mcp',
    '/mcp/mcp?url=a',
    '/mcp/mcp?token=a',
    '/mcp/mcp?url=&token=a',
    '/mcp/mcp?url=a&token=b&token=c',
    '/mcp/mcp?url=a&url=a&token=b',
    '/mcp/mcp?url=%zz&token=b',
    '/mcp/mcp?url=a&token=b&ep=%ff',
  ])('%s is none', (target) => expect(readMcpUrl(target)).toBeUndefined());
});
