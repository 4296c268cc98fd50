import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ToolFilter } from '../src/mcp/answer/tool-list.ts';

const filter = new ToolFilter(['a', 'ä"b', '']);
const shown = (text: string) => filter.body(Buffer.from(text))?.toString();
const listOf = (...tools: string[]) => `{"id":1,"result":{"tools":[${tools.join(',')}]}}`;

describe('a list of tools', () => {
  test.each([
    ['one of two', listOf('{"name":"a"}', '{"name":"b"}'), listOf('{"name":"a"}')],
    ['none', listOf('{"name":"b"}', '{"name":"c"}'), listOf()],
    [
      'a name in escapes',
      listOf('{"n\\u0061me":"\\u0061"}', '{"name":"\\u0062"}'),
      listOf('{"n\\u0061me":"\\u0061"}'),
    ],
    ['an allowed name that needs escapes', listOf('{"name":"ä\\"b"}', '{}'), listOf('{"name":"ä\\"b"}')],
    ['a list in escapes', '{"result":{"t\\u006fols":[{"name":"b"}]}}', '{"result":{"t\\u006fols":[]}}'],
    ['a result in escapes', '{"r\\u0065sult":{"tools":[{"name":"b"}]}}', '{"r\\u0065sult":{"tools":[]}}'],
    ['a name twice', listOf('{"name":"a","name":"b"}', '{"name":"b","name":"a"}'), listOf()],
    [
      'two lists',
      '{"result":{"tools":[{"name":"b"}],"tools":[{"name":"c"},{"name":"a"}]}}',
      '{"result":{"tools":[],"tools":[{"name":"a"}]}}',
    ],
    [
      'two results',
      '{"result":{"tools":[1]},"result":{"tools":[2]}}',
      '{"result":{"tools":[]},"result":{"tools":[]}}',
    ],
    [
      'a batch',
      `[${listOf('{"name":"b"}')}, {"result":{}}, ${listOf('{"name":"a"}', '2')}]`,
      `[${listOf()}, {"result":{}}, ${listOf('{"name":"a"}')}]`,
    ],
    [
      'elements that are no tools',
      listOf('1', 'null', '[]', '"a"', '{"name":["a"]}', '{"name":1}', '{"title":"a"}'),
      listOf(),
    ],
    [
      'names within a tool',
      listOf('{"name":"b","x":{"name":"a"}}', '{"x":[{"name":"b"}],"name":"a"}'),
      listOf('{"x":[{"name":"b"}],"name":"a"}'),
    ],
    [
      'a list that all may share',
      '{"result":{"cacheScope":"public","tools":[{"name":"b"}],"ttlMs":9,"cacheScope":"public"}}',
      '{"result":{"cacheScope":"private","tools":[],"ttlMs":9,"cacheScope":"private"}}',
    ],
    [
      'a shared list of allowed tools alone, which another URL may not have',
      '{"result":{"tools":[{"name":"a"}],"cacheSc\\u006fpe":"public"}}',
      '{"result":{"tools":[{"name":"a"}],"cacheSc\\u006fpe":"private"}}',
    ],
    ['a byte order mark', `\ufeff${listOf('{"name":"b"}')}`, listOf()],
  ])('omits the tools that are not allowed: %s', (_what, text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  test('keeps every other byte', () => {
    const kept =
      '{ "name" : "a", "x":1e400, "y":12345678901234567890, "z":"]},\\"{[\\\\", "__proto__":{"2":1,"1":2} }';
    const text = `\n {"result" :{"nextCursor":"n\\/1","tools"\t:\r\n[{"name":"b","inputSchema":{"enum":["]","}"]}} , ${kept}],"ttlMs":1.0},"id":1.0 } `;
    expect(shown(text)).toBe(
      `\n {"result" :{"nextCursor":"n\\/1","tools"\t:\r\n[${kept}],"ttlMs":1.0},"id":1.0 } `,
    );
  });

  test.each([
    'Accepted',
    '',
    '"tools": ["b"]'.replace('"', ''),
    '{"result":{"tools":[ {"name":"a"} ]}}',
    '{"result":{"tools":{"name":"b"},"cacheScope":"public"}}',
    '{"result":{"resources":[],"cacheScope":"public"}}',
    '{"result":{"tools":[],"cacheScope":"private"}}',
    '{"result":[{"tools":[{"name":"b"}]}]}',
    '{"tools":[{"name":"b"}],"params":{"tools":[{"name":"b"}]},"error":{"tools":[1]}}',
    '{"result":{"structuredContent":{"tools":[{"name":"b"}]}}}',
    '{"result":{"content":[{"text":"{\\"tools\\":[{\\"name\\":\\"b\\"}]}"}]}}',
  ])('is not recognised in other JSON, which is unchanged: %s', (text) => {
    expect(shown(text)).toBe(text);
  });

  test.each([
    '{"result":{"tools":[{"name":"b"}]}',
    '{"result":{"tools":[{"name":"b"}]}}{}',
    '{"result":{"tools":[{"name":"b","default":NaN}]}}',
    '{\'result\':{"tools":[]}}',
    listOf(...Array<string>(17_000).fill('{"name":"a"}')),
    `{"result":{"tools":${'['.repeat(300)}${']'.repeat(300)}}}`,
    listOf(JSON.stringify({ name: 'a', description: 'x'.repeat(2 * 1024 * 1024) })),
  ])('that cannot be parsed is withheld: %.80s', (text) => {
    expect(shown(text)).toBeUndefined();
  });

  const tool = fc.record(
    { name: fc.constantFrom('a', 'b', 'ä"b', '', 'c'), more: fc.jsonValue() },
    { requiredKeys: [] },
  );
  const answer = fc.record({
    id: fc.integer(),
    result: fc.record(
      { tools: fc.array(tool), nextCursor: fc.string(), _meta: fc.jsonValue() },
      { requiredKeys: ['tools'] },
    ),
  });
  test('filtered in any answer equals the answer without the forbidden tools', () => {
    const isShown = ({ name }: { name?: string }) => name === 'a' || name === 'ä"b' || name === '';
    fc.assert(
      fc.property(answer, fc.constantFrom(undefined, 1, '\t'), (sent, space) => {
        const expected = { ...sent, result: { ...sent.result, tools: sent.result.tools.filter(isShown) } };
        expect(JSON.parse(shown(JSON.stringify(sent, undefined, space)) ?? '')).toEqual(
          JSON.parse(JSON.stringify(expected)),
        );
      }),
    );
  });
});

describe('an event', () => {
  const event = (text: string) => filter.events([Buffer.from(text)]).map(String);
  const list = listOf('{"name":"a"}', '{"name":"b"}');

  test.each([
    ['alone', `data: ${list}\n\n`, `data: ${listOf('{"name":"a"}')}\n\n`],
    [
      'with other fields',
      `id: 7\nevent: message\ndata:${list}\nretry: 5\n: x\n\n`,
      `id: 7\nevent: message\nretry: 5\n: x\ndata: ${listOf('{"name":"a"}')}\n\n`,
    ],
    ['with other line ends', `id: 7\r\ndata: ${list}\r\n\r\n`, `id: 7\ndata: ${listOf('{"name":"a"}')}\n\n`],
    [
      'over lines',
      'data: {"result":\ndata: {"tools":[1,\ndata: {"name":"a"}\ndata: ]}}\n\n',
      'data: {"result":\ndata: {"tools":[{"name":"a"}]}}\n\n',
    ],
  ])('omits the tools that are not allowed: %s', (_what, text, expected) => {
    expect(event(text)).toEqual([expected]);
  });

  test.each([
    ': "tools"\n\n',
    'event: endpoint\ndata: /messages?x="tool"\n\n',
    'event: endpoint\ndata: /messages?x="tools"\n\n',
    'event: ping\ndata: \\u00\n\n',
    `data: ${listOf('{"name":"a"}')}\r\r`,
  ])('without forbidden tools is unchanged byte for byte: %j', (text) => expect(event(text)).toEqual([text]));

  test.each([
    ['is no JSON', 'data: {"tools"\n\n'],
    ['has very many lines', `data: ${listOf('{"name":"a"}')}${'\ndata:'.repeat(60_000)}\n\n`],
    [
      'has very many lines that end with CR',
      `data: ${listOf('{"name":"a"}')}${'\rdata:'.repeat(60_000)}\r\r`,
    ],
    ['is very long', `data: {"tools":"${'x'.repeat(2 * 1024 * 1024)}"}\n\n`],
  ])('that %s ends the stream', (_what, text) => {
    const all = ['data: {}\n\n', text, 'data: {}\n\n'].map((each) => Buffer.from(each));
    expect(filter.events(all).map(String)).toEqual(['data: {}\n\n']);
  });

  test('that is long or has many lines passes if it cannot list tools', () => {
    for (const text of [
      `data: 1${'\ndata:'.repeat(60_000)}\n\n`,
      `data: "${'x'.repeat(2 * 1024 * 1024)}"\n\n`,
    ])
      expect(event(text)).toEqual([text]);
  });
});
