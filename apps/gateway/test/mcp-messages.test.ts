import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileTools } from '../src/grant/tool-rules.ts';
import { KnownNames } from '../src/json/names.ts';
import { UnrunRequests } from '../src/mcp/answer/refund.ts';
import { UnansweredRequests } from '../src/mcp/open/unanswered.ts';
import { checkHeaders, readAnswers, readMessages, waitingIds } from '../src/mcp/request/messages.ts';
import { type McpPrices, priceCalls } from '../src/mcp/request/price.ts';
import { readMcpUrl } from '../src/mcp/request/request.ts';

const read = (value: unknown) =>
  readMessages(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
const request = (method: string, params: object = {}, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});
const call = (id: unknown = 1) => request('tools/call', { name: 'run' }, id);
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
  const priced = priceCalls(messagesOf(value).all, compileTools(server), prices);
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

  it.each(['tools/call', 'prompts/get', 'resources/read', 'x', 'notification/x', 'list', '/list'])(
    '%s counts as one use',
    (method) => expect(usesOf(request(method, { name: 'a' }))).toBe(1),
  );

  it('a message of an unknown method counts as one use, even without an id', () => {
    expect(usesOf({ jsonrpc: '2.0', method: 'do/it' })).toBe(1);
  });

  it('a response is free', () => {
    expect(usesOf({ jsonrpc: '2.0', id: 1, result: {} })).toBe(0);
    expect(usesOf({ jsonrpc: '2.0', id: 1, error: { code: 1, message: '' } })).toBe(0);
  });

  it('a message with a method is a request, whatever other fields it has', () => {
    expect(usesOf({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a' }, result: {} })).toBe(
      1,
    );
  });

  it('each message of a batch counts', () => {
    expect(usesOf([call(1), request('ping'), call(2)])).toBe(2);
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

  it("a tool's own arguments may have names that differ only in case", () => {
    const body = request('tools/call', { name: 'a', arguments: { name: 1, Name: 2, METHOD: 3 } });
    expect(codeOf(body)).toBeUndefined();
  });

  it('any JSON is read or refused, and never throws', () => {
    fc.assert(
      fc.property(fc.json(), (text) => void read(text)),
      { numRuns: 2_000 },
    );
  });
});

describe('prices', () => {
  const call = (name: string) => messagesOf(request('tools/call', { name })).all;
  const costOf = (name: string, own: object, operators: [string, object][] = []) => {
    const priced = priceCalls(call(name), compileTools({ ...server, ...own }), {
      ...prices,
      byServer: new Map(operators),
    } as McpPrices);
    return 'charged' in priced ? priced.charged[0]?.costMicrousd : priced.refusal.code;
  };
  const pricing = { default: 20, tools: { search: 30 } };

  it("come from the grant's price for the tool, then the grant's default, the operator's price, and the operator's default", () => {
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

  it('apply to a tool named like a built-in property of an object', () => {
    expect(costOf('constructor', { pricing })).toBe(20);
    expect(costOf('toString', { pricing: { tools: {} } })).toBe(1_000);
  });

  it('are not computed for tools that are not allowed', () => {
    expect(costOf('search', { tools: ['other'] })).toBe('tool_not_allowed');
    expect(costOf('search', { tools: [] })).toBe('tool_not_allowed');
    expect(costOf('search', { tools: ['search'] })).toBe(1_000);
  });
});

describe('a name with a second spelling that a server may accept', () => {
  const SPELLINGS: [string, (name: string) => string][] = [
    ['in upper case', (name) => name.toUpperCase()],
    ['with a space before it', (name) => ` ${name}`],
    ['with a line end after it', (name) => `${name}\r\n`],
    ['with a zero-width space in it', (name) => `${name[0]}\u200b${name.slice(1)}`],
    ['with a null after it', (name) => `${name}\0`],
    ['in full width', (name) => name.replace('c', 'ｃ')],
    ['with a Kelvin sign', (name) => name.replace('k', '\u212a')],
    ['with a long s', (name) => name.replace('s', 'ſ')],
    ['with a dotless i', (name) => name.replace('i', 'ı')],
    ['with a dotted capital I', (name) => name.replace('i', 'İ')],
    ['decomposed', (name) => name.normalize('NFD')],
    ['behind 7,000 spaces', (name) => ' '.repeat(7_000) + name],
  ];
  const TOOL = 'seekcité';
  const refusalOf = (message: object, own: object, operators: object = {}) => {
    const known = { ...prices, byServer: new Map([[server.url, operators]]) } as McpPrices;
    const priced = priceCalls(messagesOf(message).all, compileTools({ ...server, ...own }), known);
    return 'refusal' in priced ? [priced.refusal.code, priced.refusal.param] : undefined;
  };
  const calls = (name: unknown) => request('tools/call', { name });
  const priced = { tools: { [TOOL]: 30 } };

  it.each(SPELLINGS)('is refused for a tool %s, wherever its price comes from', (_how, spell) => {
    const misspelt = calls(spell(TOOL));
    expect(refusalOf(misspelt, { pricing: priced })).toEqual(['invalid_request', 'params.name']);
    expect(refusalOf(misspelt, {}, priced)).toEqual(['invalid_request', 'params.name']);
    expect(refusalOf(misspelt, { tools: [TOOL] })).toEqual(['tool_not_allowed', undefined]);
    expect(refusalOf(calls(TOOL), { pricing: priced })).toBeUndefined();
  });

  it.each(SPELLINGS.filter(([, spell]) => spell('tasks/list') !== 'tasks/list'))(
    'is refused for a method %s',
    (_how, spell) => {
      expect(refusalOf(request(spell('tasks/list')), {})).toEqual(['invalid_request', 'method']);
    },
  );

  it.each(['tools/call', 'prompts/get', 'initialize', 'notifications/cancelled'])(
    'is refused for %s in capitals',
    (method) =>
      expect(refusalOf(request(method.toUpperCase(), { name: 'a' }), {})).toEqual([
        'invalid_request',
        'method',
      ]),
  );

  it('passes if both spellings are listed, or neither is', () => {
    expect(refusalOf(calls('run'), { pricing: { tools: { Run: 1, run: 2 } } })).toBeUndefined();
    expect(
      refusalOf(calls('run'), { pricing: { tools: { run: 2 } } }, { tools: { Run: 1 } }),
    ).toBeUndefined();
    expect(
      refusalOf(calls('Run'), { pricing: { tools: { run: 2 } } }, { tools: { Run: 1 } }),
    ).toBeUndefined();
    expect(refusalOf(calls('Other'), { pricing: priced })).toBeUndefined();
    expect(refusalOf(request('X/Y'), {})).toBeUndefined();
  });

  it.each([[['deep']], [{}], [1], [null], [true]])('is refused if it is %j instead of a string', (name) => {
    expect(refusalOf(calls(name), {})).toEqual(['invalid_request', 'params.name']);
    expect(refusalOf(request('prompts/get', { name }), {})).toEqual(['invalid_request', 'params.name']);
    expect(refusalOf(request('resources/read', { uri: name }), {})).toEqual([
      'invalid_request',
      'params.uri',
    ]);
  });

  it('is refused if a tool call lacks it', () => {
    for (const params of [{}, ['deep'], undefined, 'deep'])
      expect(refusalOf({ ...request('tools/call'), params }, {})).toEqual(['invalid_request', 'params.name']);
  });

  it('is compared in linear time', () => {
    // Canonical ordering of combining marks is quadratic: this would take minutes.
    const marks = '\u0315\u0316'.repeat(4_000_000);
    expect(new KnownNames(['run']).alike(`run${marks}`)).toBeUndefined();
  });
});

describe('a message counts as not run', () => {
  const unrunOf = (sent: unknown, ...answers: unknown[]) => {
    const priced = priceCalls(messagesOf(sent).all, compileTools(server), prices);
    const unrun = new UnrunRequests('charged' in priced ? priced.charged : []);
    for (const answer of answers)
      unrun.see(readAnswers(typeof answer === 'string' ? answer : JSON.stringify(answer)));
    return { ...unrun.unrun, isDone: unrun.isDone };
  };
  const failed = (code: number, id: unknown = 1) => ({ jsonrpc: '2.0', id, error: { code, message: '' } });

  it('if it was answered with -32601', () => {
    expect(unrunOf(call(), failed(-32601))).toEqual({ uses: 1, costMicrousd: 1_000, isDone: true });
  });

  it.each([-32600, -32602, -32603, -32700, -32000, 0])('but not if it was answered with %i', (code) =>
    expect(unrunOf(call(), failed(code)).uses).toBe(0),
  );

  it('but not if its result has isError', () => {
    expect(unrunOf(call(), { id: 1, result: { isError: true } }).uses).toBe(0);
  });

  it('once, for the request that it answers, and only if that request was charged', () => {
    expect(unrunOf(call(), failed(-32601), failed(-32601)).uses).toBe(1);
    expect(unrunOf(call(), failed(-32601, 2)).uses).toBe(0);
    expect(unrunOf(call(), failed(-32601, '1')).uses).toBe(0);
    expect(unrunOf(request('tools/list'), failed(-32601)).uses).toBe(0);
    expect(unrunOf(call(), 'no JSON', 'null', '5').uses).toBe(0);
  });

  it('but not if the error has no id', () => {
    expect(unrunOf(call(), failed(-32601, null)).uses).toBe(0);
    const notification = { jsonrpc: '2.0', method: 'do/it' };
    expect(unrunOf(notification, { jsonrpc: '2.0', error: { code: -32601, message: '' } }).uses).toBe(0);
  });

  it('if a long answer says so, and not if the answer takes long to parse', () => {
    const long = { ...failed(-32601), data: 'x'.repeat(20_000) };
    expect(unrunOf(call(), long).uses).toBe(1);
    const names = { ...failed(-32601), data: { ['k'.repeat(16_001)]: 1 } };
    expect(unrunOf(call(), names).uses).toBe(0);
  });

  it('separately for each request of a batch', () => {
    const two = [call(1), call('b')];
    expect(unrunOf(two, failed(-32601, 'b'))).toMatchObject({ uses: 1, isDone: false });
    expect(unrunOf(two, [failed(-32601, 'b'), { id: 1, result: {} }])).toMatchObject({
      uses: 1,
      isDone: true,
    });
  });
});

describe('the headers that repeat fields of a message', () => {
  const check = (headers: Record<string, string>, body: unknown = request('tools/call', { name: 'a' })) =>
    checkHeaders(headers, messagesOf(body))?.param;

  it('must equal those fields', () => {
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
  it('contains server, token and endpoint, decoded', () => {
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
  ])('%s is not valid', (target) => expect(readMcpUrl(target)).toBeUndefined());
});

it.each([
  ['too large to be finite', '1e400'],
  ['a fraction', '1.5'],
  ['beyond exact numbers, and not in digits', '9007199254740993.0'],
  ['longer than 1,024 digits', '9'.repeat(1_025)],
  ['a lone surrogate', '"\\ud800"'],
  ['longer than 1,024 characters', `"${'x'.repeat(1_025)}"`],
])(
  'an id that is %s is refused, because a server may answer it with the id of another request',
  (_what, id) => {
    const read = readMessages(Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"tools/call"}`));
    expect(read).toMatchObject({ refusal: { code: 'invalid_request' } });
  },
);

it.each(['9007199254740993', '-9007199254740993', '18446744073709551616', '9'.repeat(1_024)])(
  'an id outside the exact range of numbers keeps its digits: %.40s',
  (id) => {
    const body = `[{"id": ${id} ,"method":"ping"},{"params":{"requestId":${id}\n},"method":"notifications/cancelled"}]`;
    expect(messagesOf(body).all).toMatchObject([{ id }, { cancels: id }]);
    expect(readAnswers(`[{"result":{}},{"id":${id},"result":{}}]`).map((each) => each.id)).toEqual([
      undefined,
      id,
    ]);
  },
);

describe('the open requests of a stream', () => {
  it('take bounded memory, however many and however long their ids are', () => {
    for (const [length, most] of [
      [4, 2_000],
      [1_000, 130],
    ] as const) {
      const open = new UnansweredRequests();
      for (let i = 0; i < 5_000; i++) open.add([JSON.stringify(`${i}`.padEnd(length - 2))]);
      expect(open.size).toBeLessThan(most);
      expect(open.size).toBeGreaterThan(most * 0.8);
      // Room that answered requests leave is used again.
      open.answered(open.ids);
      expect(open.size).toBe(0);
      open.add(['"next"']);
      expect(open.ids).toEqual(['"next"']);
    }
  });

  it('include all those of a batch with the longest ids', () => {
    const batch = Array.from({ length: 100 }, (_, i) => call(`${i}`.padEnd(1_024)));
    expect(new UnansweredRequests(waitingIds(messagesOf(batch))).size).toBe(100);
  });
});

it('a method or a name may have 8,000 characters', () => {
  const [long, longer] = ['x'.repeat(8_000), 'x'.repeat(8_001)];
  expect(read(request(long))).toMatchObject({ messages: {} });
  expect(read(request(longer))).toMatchObject({ refusal: { code: 'invalid_request' } });
  expect(read(request('tools/call', { name: long }))).toMatchObject({ messages: {} });
  expect(read(request('resources/read', { uri: longer }))).toMatchObject({
    refusal: { code: 'invalid_request' },
  });
});
