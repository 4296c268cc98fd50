import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeIn } from '../docs/fences.ts';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { type InstalledCommand, installCommand } from './installed-command.ts';

let local: Local;
let command: InstalledCommand;

beforeAll(async () => {
  command = await installCommand();
  local = await startLocalForDocs();
  // Two services start: on a machine that runs much else this takes minutes.
}, 600_000);
afterAll(async () => {
  await local?.close();
  command.remove();
});

const presign = (args: readonly string[], env: Record<string, string> = {}) =>
  command.run(args, {
    ISSUER_URL: `http://127.0.0.1:${local.issuerPort}`,
    PRESIGN_API_KEY: local.keys.apiKey,
    ...env,
  });

const SANDBOX = ['--provider', 'sandbox', '--model', 'sandbox-1'];
/** The address in the settings, and the token if it is not in the address. */
function readGiven(out: string): { readonly base: string; readonly token: string | undefined } {
  const [base = ''] = /http:\/\/127\.0\.0\.1:\d+\/llm[^"\s]*/.exec(out) ?? [];
  return { base, token: base.includes('/llm/t/') ? undefined : /v4\.public\.[\w.-]+/.exec(out)?.[0] };
}
const MESSAGE = { max_tokens: 20, messages: [{ role: 'user', content: 'Hello' }] };

/** Calls a URL as the tool does, and returns the answer's text. */
async function call(url: string, body: object, token?: string): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...bearer(token) },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(200);
  return answer.text();
}

const bearer = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };
/** The figures of a URL, by an address with its token or by the token in a header. */
const describeAt = async (base: string, token: string | undefined) =>
  (await fetch(base.replace(/(\/llm(?:\/t\/[^/]+)?).*/, '$1'), { headers: bearer(token) })).json();

const TOOLS = [
  ['claude-code', '/v1/messages?beta=true', MESSAGE],
  ['codex', '/responses', { input: 'Hello', client_metadata: { 'x-codex-turn-metadata': '{}' } }],
  ['cursor', '/chat/completions', MESSAGE],
  ['vscode', '', MESSAGE],
  ['openai-python', '/chat/completions', MESSAGE],
  ['openai-ts', '/chat/completions', MESSAGE],
  ['anthropic-python', '/v1/messages', MESSAGE],
  ['anthropic-ts', '/v1/messages', MESSAGE],
] as const;

test.each(TOOLS)('give 5 --for %s prints a URL that the tool can call', async (tool, path, body) => {
  const { code, out, note } = await presign(['give', '5', '--for', tool, ...SANDBOX, '--uses', '3']);
  expect([code, note]).toEqual([0, expect.stringMatching(/It allows 5 dollars and 3 uses, until 20\S+Z\./)]);
  const { base, token } = readGiven(out);
  expect(await call(base + path, { model: 'another', ...body }, token)).toContain('You said: Hello');
  expect(await describeAt(base, token)).toMatchObject({ cost_limit: 5_000_000, max_uses: 3 });
});

test('one dollar and one use are printed in the singular', async () => {
  const { note } = await presign(['give', '1', '--for', 'codex', ...SANDBOX, '--uses', '1']);
  expect(note).toContain('It allows 1 dollar and 1 use, until');
});

test('Claude Code can count tokens at no cost', async () => {
  const { out } = await presign(['give', '1', '--for', 'claude-code', ...SANDBOX]);
  const { base, token } = readGiven(out);
  const path = '/v1/messages/count_tokens';
  expect(await call(base + path, { model: 'sandbox-1', ...MESSAGE }, token)).toContain('input_tokens');
  expect(await describeAt(base, token)).toMatchObject({ spent: 0, held: 0 });
});

describe('the printed settings', () => {
  const settingsOf = async (tool: string) =>
    (await presign(['give', '1', '--for', tool, ...SANDBOX, '--expires-in=12h'])).out;

  test('of Claude Code belong in settings.json', async () => {
    const { env, ...rest } = JSON.parse(await settingsOf('claude-code')) as { env: Record<string, string> };
    expect(rest).toEqual({});
    expect(env).toEqual({
      ANTHROPIC_BASE_URL: expect.stringMatching(/:\d+\/llm$/),
      ANTHROPIC_AUTH_TOKEN: expect.stringMatching(/^v4\.public\.[\w.-]+$/),
      ANTHROPIC_MODEL: 'sandbox-1',
    });
  });

  test('of Codex belong in config.toml', async () => {
    const shown = (await settingsOf('codex'))
      .replace(/http\S+(?=\/v1")/, 'URL')
      .replace(/v4\.[\w.-]+/, 'TOKEN');
    expect(shown).toBe(`model = "sandbox-1"
model_provider = "presign"
web_search = "disabled"

[model_providers.presign]
name = "Presign"
base_url = "URL/v1"
wire_api = "responses"
http_headers = { Authorization = "Bearer TOKEN" }
`);
  });

  test('of VS Code belong in chatLanguageModels.json', async () => {
    const [group] = JSON.parse(await settingsOf('vscode')) as { models: object[] }[];
    expect(group).toMatchObject({ vendor: 'customendpoint', apiType: 'chat-completions' });
    const url = expect.stringMatching(/\/v1\/chat\/completions$/) as string;
    expect(group?.models).toEqual([expect.objectContaining({ id: 'sandbox-1', url, toolCalling: true })]);
  });

  test('of a program are code that runs', async () => {
    const code = `${await settingsOf('openai-ts')}
      const { choices } = await client.chat.completions.create({
        model: 'any',
        messages: [{ role: 'user', content: 'Hello' }],
      });
      console.log(choices[0].message.content);`;
    writeFileSync(join(local.folder, 'given.mjs'), code);
    expect(await local.run(process.execPath, ['given.mjs'])).toContain('You said: Hello');
  });
});

test.each([
  ['claude-code', 'mcpServers'],
  ['cursor', 'mcpServers'],
  ['vscode', 'servers'],
  ['gemini-cli', 'mcpServers'],
  ['opencode', 'mcp'],
])("--mcp prints the servers for %s in the tool's own format", async (tool, under) => {
  const server = `tools=${local.sandboxMcpUrl}`;
  const { code, out } = await presign(['give', '0.50', '--for', tool, '--mcp', server]);
  expect(code).toBe(0);
  const settings = JSON.parse(out) as Record<string, Record<string, { url?: string; httpUrl?: string }>>;
  const { url, httpUrl } = settings[under]?.tools ?? {};
  await expectServer(httpUrl ?? url);
});

test('--mcp prints a table of its configuration for codex', async () => {
  const server = `tools=${local.sandboxMcpUrl}`;
  const { code, out } = await presign(['give', '0.50', '--for', 'codex', '--mcp', server]);
  expect(code).toBe(0);
  expect(out).toMatch(/^\[mcp_servers\."tools"\]\nurl = "http/);
  await expectServer(/url = "([^"]+)"/.exec(out)?.[1]);
});

async function expectServer(url = ''): Promise<void> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE }),
  });
  expect(answer.status).toBe(200);
}

const INITIALIZE = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
};

const AGENTS = readFileSync(new URL('../../docs/guides/clients/coding-agents.md', import.meta.url), 'utf8');

test.each([
  ['claude-code', 'json', []],
  ['codex', 'toml', ['--model', 'gpt-5']],
  ['vscode', 'json', ['--model', 'gpt-5']],
] as const)("the guide shows the command's output for %s", async (tool, language, options) => {
  const env = { PROVIDER_API_KEY: 'sk-any' };
  const { code, out, note } = await presign(['give', '5', '--for', tool, ...options], env);
  expect([code, note]).toEqual([0, expect.any(String)]);
  const shown = out
    .replace(/http:\/\/[^"]*?\/llm/, 'https://gateway.example.com/llm')
    .replace(/v4\.public\.[\w.-]+/, 'TOKEN');
  expect(codeIn(AGENTS, language)).toContain(shown);
});

describe('without --model', () => {
  const env = { PROVIDER_API_KEY: 'sk-any' };

  test('Codex gets the newest priced version of its usual model', async () => {
    const { code, out, note } = await presign(['give', '5', '--for', 'codex'], env);
    expect(code, note).toBe(0);
    expect(out).toMatch(/^model = "gpt-6\.1-sol"$/m);
    expect(note).toContain('gpt-6.2-sol, which codex calls, has no price yet');
  });

  test('Claude Code keeps its own choice while its usual model has a price', async () => {
    const { code, out, note } = await presign(['give', '5', '--for', 'claude-code'], env);
    expect(code, note).toBe(0);
    expect(out + note).not.toMatch(/model|price/i);
  });

  test('a provider without a price for any version is refused by name', async () => {
    const { code, note } = await presign(['give', '5', '--for', 'codex', '--provider', 'groq'], env);
    expect([code, note]).toEqual([
      1,
      expect.stringContaining('gpt-6.2-sol, which codex calls, has no price at groq'),
    ]);
  });
});

test.each([
  [[], 2, 'Usage: presign COMMAND'],
  [['give', '--help'], 0, 'Usage: presign give DOLLARS'],
  [['take', '5'], 2, 'there is no command "take"'],
  [['give'], 2, 'DOLLARS is missing'],
  [['give', '5'], 2, '--for: expected one of claude-code, codex'],
  [['give', '5', '--for', 'emacs'], 2, '--for: expected one of'],
  [['give', '0', '--for', 'codex'], 2, 'DOLLARS: expected an amount above 0'],
  [['give', '1e3', '--for', 'codex'], 2, 'DOLLARS: expected an amount above 0'],
  [['give', '0.0000001', '--for', 'codex'], 2, 'DOLLARS: expected an amount above 0'],
  [['give', '5', '--for', 'vscode', '--provider', 'sandbox'], 2, '--model is missing'],
  [['give', '5', '--for', 'codex', '--uses', '0'], 2, '--uses: expected'],
  [['give', '5', '--for', 'codex', '--expires-in', '1y'], 2, '--expires-in: expected'],
  [
    ['give', '5', '--for', 'openai-ts', '--mcp', 'a=https://a.example/'],
    2,
    '--for: expected one of claude-code',
  ],
  [['give', '5', '--for', 'codex', '--color', 'red'], 2, 'unknown option --color'],
  [['give', '5', '--for'], 2, '--for needs a value'],
  [['give', '5', '--for', 'codex'], 1, 'The key of openai is missing'],
  [['give', '5', '--for', 'codex', '--provider', 'none', '--virtual-key', 'vk_none'], 1, 'provider'],
])('presign %j explains what is wrong', async (args, code, text) => {
  const ran = await presign(args);
  expect([ran.code, ran.out + ran.note]).toEqual([code, expect.stringContaining(text)]);
});

test('no output contains the API key or the provider’s key', async () => {
  const key = 'sk-sandbox-marked';
  const env = { PROVIDER_API_KEY: key };
  const given = await presign(['give', '5', '--for', 'codex', ...SANDBOX], env);
  const refused = await presign(['give', '5', '--for', 'codex', '--provider', 'none'], env);
  const wrong = 'presign_sk_wrong';
  const unauthenticated = await presign(['give', '5', '--for', 'codex', ...SANDBOX], {
    PRESIGN_API_KEY: wrong,
  });
  const unreachable = await presign(['give', '5', '--for', 'codex', ...SANDBOX], {
    ISSUER_URL: 'http://127.0.0.1:1',
  });
  expect([given, refused, unauthenticated, unreachable].map(({ code }) => code)).toEqual([0, 1, 1, 1]);
  for (const { out, note } of [given, refused, unauthenticated, unreachable])
    for (const secret of [key, wrong, local.keys.apiKey]) expect(out + note).not.toContain(secret);
});
