import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { codeIn, fencesIn } from '../docs/fences.ts';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { eventually } from '../harness/eventually.ts';
import { until } from '../harness/gateway-process.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { newestNode } from './install.ts';

// The programs of docs/guides/use-sockets.md that need more than Node, each as the page has it.
const run = promisify(execFile);
const { python, js, codex } = inject('toolchains');
const page = readFileSync(new URL('../../docs/guides/use-sockets.md', import.meta.url), 'utf8');
const fences = fencesIn(page);
const [inJavaScript = ''] = codeIn(page, 'js');
const [inPython = ''] = codeIn(page, 'python');
const [toml = ''] = codeIn(page, 'toml');
/** The two answers, and the refusal of the third turn. */
const [first = '', second = '', refusal = ''] = (
  fences[fences.findIndex(({ code }) => code === inJavaScript) + 1]?.code ?? ''
).split('\n');

let local: Local;
beforeAll(async () => {
  local = await startLocalForDocs();
});
afterAll(() => local.close());

async function ask(path: string, body?: object): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${local.issuerPort}${path}`, {
    headers: { authorization: `Bearer ${local.keys.apiKey}`, 'content-type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  expect(answer.status).toBe(200);
  return answer.json();
}

async function issue(limits: object): Promise<{ url: string; grant_id: string }> {
  const sandbox = { provider: 'sandbox', path: '/v1/responses', client_api_key: 'sk-sandbox' };
  return (await ask('/v1/presign', { ...sandbox, sockets: true, ...limits })) as never;
}

const TWO_TURNS = { max_uses: 2, cost_limit: 50_000 };
const { PATH, HOME } = process.env;

const { llm } = python;
test.skipIf('skipped' in llm)(
  'the Python SDK runs turns on a socket, and shows why one is refused',
  async () => {
    if ('skipped' in llm) return;
    const { url } = await issue(TWO_TURNS);
    const ended = run(llm.at, ['-c', inPython], { env: { PATH, PRESIGNED_URL: url } });
    await expect(ended).rejects.toMatchObject({ stdout: `${first}\n${second}\n`, stderr: `${refusal}\n` });
  },
);

test.skipIf('skipped' in js)(
  'the newest JavaScript SDK runs turns, and shows why one is refused',
  async () => {
    if ('skipped' in js) return;
    const { url } = await issue(TWO_TURNS);
    const options = { cwd: js.at, env: { PATH, PRESIGNED_URL: url } };
    const { stdout } = await run(newestNode(js.at), ['--input-type=module', '-e', inJavaScript], options);
    expect(stdout).toBe(`${first}\n${second}\n${refusal}\n`);
  },
);

test.skipIf('skipped' in js)('wscat runs a turn', async () => {
  if ('skipped' in js) return;
  const { url } = await issue(TWO_TURNS);
  const [command = ''] = codeIn(page, 'sh').filter((code) => code.includes('wscat'));
  const installed = `node ${join(js.at, 'node_modules/wscat/bin/wscat')}`;
  const own = command.replace('npx -y wscat@6', `exec ${installed}`);
  expect(own).toContain(installed);
  const child = spawn('sh', ['-c', own], { env: { PATH, HOME, PRESIGNED_URL: url } });
  const exited = once(child, 'exit');
  // It ends with its input, which stays open.
  await until(child, '"type":"response.completed"');
  child.kill();
  await exited;
});

type Row = {
  readonly grant_id: string;
  readonly connection: string | null;
  readonly turn: number | null;
  readonly output_tokens: number;
};

test.skipIf('skipped' in codex)(
  'Codex runs turns on one socket, and falls back to POST if its URL has no socket',
  { timeout: 120_000 },
  async () => {
    if ('skipped' in codex) return;
    const rowsOf = async (sockets: boolean) => {
      const { url, grant_id } = await issue({ sockets, cost_limit: 1_000_000 });
      expect(await prompt(codex.at, url)).toContain('You said: say hi');
      return eventually(async () => {
        const { data } = (await ask('/v1/calls')) as { data: Row[] };
        const own = data.filter((row) => row.grant_id === grant_id);
        return own.some(({ output_tokens: output }) => output > 0) ? own.reverse() : undefined;
      });
    };
    const turns = await rowsOf(true);
    expect(turns.map(({ turn, output_tokens: output }) => [turn, output > 0])).toEqual([
      [1, false],
      [2, true],
    ]);
    expect(turns[0]?.connection).toMatch(/^[\da-f-]{36}$/);
    expect(turns[1]?.connection).toBe(turns[0]?.connection);
    expect(await rowsOf(false)).toMatchObject([{ connection: null, turn: null }]);
  },
);

/** Runs a prompt in an empty home with the settings of the page. Everything that it prints. */
async function prompt(at: string, url: string): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'presign-codex-'));
  onTestFinished(() => removeFolder(home));
  mkdirSync(join(home, '.codex'));
  const token = /\/llm\/t\/([^/]+)/.exec(url)?.[1] ?? '';
  const settings = toml
    .replace('TOKEN', token)
    .replace('http://127.0.0.1:8788', new URL(url).origin)
    .replace('"gpt-5"', '"sandbox-1"');
  writeFileSync(join(home, '.codex/config.toml'), settings);
  const args = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', 'say hi'];
  const env = { PATH, HOME: home, TERM: 'dumb', NO_COLOR: '1', CI: 'true' };
  const ran = run(process.execPath, [join(at, 'node_modules/@openai/codex/bin/codex.js'), ...args], {
    ...{ cwd: home, env, timeout: 60_000 },
  });
  ran.child.stdin?.end();
  const { stdout, stderr } = await ran;
  return stdout + stderr;
}
