import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunningLocal, readLocalEnv, runLocal } from '@presign/local';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';

const ROOT = new URL('../../', import.meta.url);
/** Where the SDKs that the snippets import are installed. */
const HERE = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(new URL('README.md', ROOT), 'utf8');

let folder: string;
let ports: readonly [number, number];
let local: RunningLocal;
/** Set by the first snippet, as in a reader's shell. */
let presignedUrl: string;
/** As `presignedUrl`, of the MCP server. */
let mcpUrl: string;
/** Microdollars that calls so far cost. */
let spent = 0;

/** As the first snippet asks for it: 5 cents. */
const COST_LIMIT = 50_000;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  ports = [await freePort(), await freePort()];
  const env = readLocalEnv({
    PRESIGN_DATA_DIR: join(folder, '.presign'),
    ISSUER_PORT: String(ports[0]),
    GATEWAY_PORT: String(ports[1]),
  });
  local = await runLocal(env, pino({ level: 'silent' }));
});
afterAll(() => local.close());

test('the curl issues a URL and calls it; two of three uses and what it did not cost are left', async () => {
  const snippet = fence('bash').replace(':8787', `:${ports[0]}`);
  const printed = await run('sh', ['-euc', `${snippet}\nprintf '\\n%s' "$PRESIGNED_URL"`], folder);
  const [head = '', body = ''] = printed.split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  expect(headerIn(head, 'x-presign-uses-remaining')).toBe('2');
  const [answer = '', url = ''] = body.split('\n');
  const completion = JSON.parse(answer) as { usage: { prompt_tokens: number; completion_tokens: number } };
  expect(completion).toMatchObject({ object: 'chat.completion', model: 'sandbox-1' });
  // $0.15 and $0.60 per million tokens, as the sandbox's price list says.
  spent = Math.ceil(completion.usage.prompt_tokens * 0.15 + completion.usage.completion_tokens * 0.6);
  expect(headerIn(head, 'x-presign-cost')).toBe(String(spent));
  // Not there when the charge took longer to write than an answer waits for it.
  expect(headerIn(head, 'x-presign-cost-remaining')).toBeOneOf([String(COST_LIMIT - spent), undefined]);
  presignedUrl = url;
  expect(presignedUrl).toMatch(
    new RegExp(`^http://127.0.0.1:${ports[1]}/llm/t/v4.public.*/v1/chat/completions$`),
  );
});

test('the headers that the page shows are those of its call', () => {
  const shown = (name: string) => headerIn(readme.replaceAll('`', '\n'), name);
  expect(shown('x-presign-cost')).toBe(String(spent));
  expect(shown('x-presign-cost-remaining')).toBe(String(COST_LIMIT - spent));
});

test('the URL without its path tells what the page says that it tells', async () => {
  await nothingHeld();
  const told = JSON.parse(await run('sh', ['-euc', fence('bash', 1)], folder)) as object;
  const shown = JSON.parse(fence('json')) as object;
  const ownOfEach = { session_id: expect.any(String), expires_at: expect.any(Number) };
  expect(told).toEqual({ ...shown, ...ownOfEach });
});

test('the TypeScript prints what the model said', async () => {
  expect(await run(process.execPath, ['--input-type=module', '-e', fence('ts')], HERE)).toContain('Hello');
});

const hasPythonSdk = spawnSync('python3', ['-c', 'import openai']).status === 0;
test.skipIf(!hasPythonSdk)('the Python prints what the model said', async () => {
  expect(await run('python3', ['-c', fence('python')], HERE)).toContain('Hello');
});

test('what an SDK spent is counted too, and nothing stays held', async () => {
  const { used, spent: total } = await nothingHeld();
  expect({ used, total }).toEqual({ used: hasPythonSdk ? 3 : 2, total: spent * used });
});

test('the fourth call answers 403 uses_exhausted', async () => {
  const ask = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const body = '{"model":"sandbox-1","messages":[{"role":"user","content":"Hello"}]}';
  const call = () => fetch(presignedUrl, { ...ask, body });
  if (!hasPythonSdk) expect((await call()).status).toBe(200);
  const fourth = await call();
  expect(fourth.status).toBe(403);
  expect(await fourth.json()).toMatchObject({ error: { code: 'uses_exhausted', limit: 3, used: 3 } });
});

test('the sandbox MCP server listens where the page says', () => {
  expect(readme).toContain(`http://127.0.0.1:${readLocalEnv({}).sandboxMcpPort}/mcp`);
});

test('the curl issues a URL for the MCP server, and the TypeScript runs a tool on it', async () => {
  const here = new URL(local.sandboxMcpUrl ?? '').port;
  const snippet = fence('bash', 2).replace(':8787', `:${ports[0]}`).replace(':8790', `:${here}`);
  mcpUrl = await run('sh', ['-euc', `${snippet}\nprintf '%s' "$MCP_URL"`], folder);
  expect(mcpUrl).toMatch(new RegExp(`^http://127.0.0.1:${ports[1]}/mcp/mcp\\?url=.*&token=v4.public`));
  const printed = await run(process.execPath, ['--input-type=module', '-e', fence('ts', 1)], HERE);
  expect(printed).toContain("text: '42'");
});

test('every script that its commands name exists', () => {
  const commands = [
    ...readme.matchAll(/(?:^|; )(?:npx -y pnpm@12|pnpm)(?: --filter @presign\/(\w+))? ([\w-]+)/gm),
  ];
  expect(commands.length).toBeGreaterThan(6);
  for (const [, member, script = ''] of commands) {
    const folder = member === 'examples' ? member : `apps/${member}`;
    const file = member === undefined ? 'package.json' : `${folder}/package.json`;
    const { scripts } = JSON.parse(readFileSync(new URL(file, ROOT), 'utf8')) as { scripts: object };
    expect(scripts, file).toHaveProperty(script);
  }
});

test('where the money is spent first, the call answers 402 as the page says', async () => {
  const snippet = fence('bash').replace(':8787', `:${ports[0]}`).replace(`${COST_LIMIT}`, '0');
  const printed = await run('sh', ['-euc', snippet], folder);
  const [head = '', body = ''] = printed.split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 402 /);
  expect(JSON.parse(body)).toMatchObject({ error: { code: 'cost_limit_reached', limit: 0, remaining: 0 } });
});

/** How many snippets there are of a language; one, where nothing is said. */
const FENCES: Readonly<Record<string, number>> = { bash: 3, ts: 2 };

/** A snippet of a language, by its place among them. */
function fence(language: string, place = 0): string {
  const found = [...readme.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter(([, name]) => name === language);
  expect(found, language).toHaveLength(FENCES[language] ?? 1);
  return found[place]?.[2] ?? '';
}

const headerIn = (head: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*?)\r?$`, 'im').exec(head)?.[1];

type Told = { readonly used: number; readonly spent: number; readonly held: number };

/** What the URL tells of itself once its calls are charged. */
const nothingHeld = (): Promise<Told> =>
  eventually(async () => {
    const answer = await fetch(presignedUrl.slice(0, presignedUrl.indexOf('/v1/')));
    const told = (await answer.json()) as Told;
    return told.held === 0 ? told : undefined;
  });

/** Runs a program to its end while the services in this process answer it; resolves with what it printed. */
async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const env = { PATH: process.env.PATH, PRESIGNED_URL: presignedUrl, MCP_URL: mcpUrl };
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  for await (const chunk of child.stdout) printed += String(chunk);
  return printed;
}
