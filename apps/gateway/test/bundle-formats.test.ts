import type { McpBundle } from '@presign/schema';
import { expect, test } from 'vitest';
import { FORMATS, inFormat } from '../src/mcp/bundle.ts';

const url = (host: string) => `${host}/mcp/mcp?url=https%3A%2F%2Fmcp.example.com%2Fsse&token=v4.public.a.b`;
const streamable = url('https://gateway.example.com');
const legacy = url('http://127.0.0.1:8788');
const bundle: McpBundle = {
  mcpServers: {
    files: { url: streamable, transport: 'http' },
    constructor: { url: legacy, transport: 'sse' as const },
  },
};

test.each<[string, object]>([
  [
    'claude-code',
    { mcpServers: { files: { type: 'http', url: streamable }, constructor: { type: 'sse', url: legacy } } },
  ],
  [
    'claude-desktop',
    {
      mcpServers: {
        files: { command: 'npx', args: ['-y', 'mcp-remote', streamable, '--transport', 'http-only'] },
        constructor: {
          command: 'npx',
          args: ['-y', 'mcp-remote', legacy, '--transport', 'sse-only', '--allow-http'],
        },
      },
    },
  ],
  ['cursor', { mcpServers: { files: { url: streamable }, constructor: { url: legacy } } }],
  [
    'vscode',
    { servers: { files: { type: 'http', url: streamable }, constructor: { type: 'sse', url: legacy } } },
  ],
  ['windsurf', { mcpServers: { files: { serverUrl: streamable }, constructor: { serverUrl: legacy } } }],
  [
    'cline',
    {
      mcpServers: {
        files: { type: 'streamableHttp', url: streamable },
        constructor: { type: 'sse', url: legacy },
      },
    },
  ],
  [
    'gemini-cli',
    { mcpServers: { files: { httpUrl: streamable }, constructor: { url: legacy, type: 'sse' } } },
  ],
  [
    'opencode',
    {
      mcp: {
        files: { type: 'remote', url: streamable, oauth: false },
        constructor: { type: 'remote', url: legacy, oauth: false },
      },
    },
  ],
  [
    'pydantic-ai',
    {
      mcpServers: {
        files: { url: streamable },
        constructor: { url: legacy.replace('/mcp/mcp', '/mcp/sse') },
      },
    },
  ],
])('%s has the form its client documents, byte for byte', (format, config) => {
  expect(JSON.stringify(inFormat(bundle, format))).toBe(JSON.stringify(config));
});

test('codex gets a TOML file, which starts mcp-remote for servers with the older transport', () => {
  const args = `["-y","mcp-remote","${legacy}","--transport","sse-only","--allow-http"]`;
  expect(inFormat(bundle, 'codex')).toBe(
    `[mcp_servers."files"]\nurl = "${streamable}"\n\n[mcp_servers."constructor"]\ncommand = "npx"\nargs = ${args}\n`,
  );
});

test('the documentation lists exactly the formats that exist', () => {
  expect(FORMATS).toEqual([
    ...['claude-code', 'claude-desktop', 'cursor', 'vscode', 'windsurf', 'cline'],
    ...['gemini-cli', 'opencode', 'pydantic-ai', 'codex'],
  ]);
});

test.each(['', 'Cursor', 'claude', 'mcpServers', 'constructor', '__proto__', 'toString'])(
  'the format "%s" does not exist',
  (format) => expect(inFormat(bundle, format)).toBeUndefined(),
);

test.each(FORMATS.filter((format) => format !== 'codex'))(
  '%s contains every server under its own name, whatever the name is',
  (format) => {
    const names = ['a b', 'toString', 'Ünïcode 😀', '0', '"quoted"'];
    const mcpServers = Object.fromEntries(
      names.map((name) => [name, { url: streamable, transport: 'http' as const }]),
    );
    const [servers] = Object.values(inFormat({ mcpServers }, format) ?? {}) as [object];
    expect(Object.keys(servers).sort()).toEqual([...names].sort());
  },
);
