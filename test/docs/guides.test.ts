import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  modelFacts,
  pricedBound,
  pricingOf,
  spendOf,
} from '@presign/providers';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { until } from '../harness/gateway-process.ts';
import { runProgram } from '../harness/run-program.ts';
import { openSocket } from '../sockets/holder.ts';
import { codeIn, type Fence, fencesIn } from './fences.ts';
import { type Local, startLocalForDocs } from './local.ts';
import { makeReaderFolder, TSX } from './reader-folder.ts';
import { expectAsShown, expectSameShape } from './shown.ts';
import { expectProgramAsShown, tabbed } from './tabs.ts';

const GUIDES = new URL('../../docs/guides/', import.meta.url);
const guides = readdirSync(GUIDES)
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ name, page: readFileSync(new URL(name, GUIDES), 'utf8') }));

let local: Local;
/** The folder of a reader who has installed the client. */
let reader: string;
beforeAll(async () => {
  local = await startLocalForDocs();
  reader = await makeReaderFolder(['@types/node']);
});
afterAll(async () => {
  await local.close();
  rmSync(reader, { recursive: true });
});

// A `bash` fence is run; `sh` is for commands that change a reader's machine or need other services.
const runnable = guides.filter(({ page }) => codeIn(page, 'bash').length > 0);

test('most guides have commands that run here', () => {
  expect(runnable.length).toBeGreaterThan(7);
});

describe.each(runnable)('$name', ({ page }) => {
  const steps = stepsOf(fencesIn(page));

  test('its commands run from top to bottom, and print the output on the page', async () => {
    const script = steps.map(({ command }) => `${local.here(command)}\nprintf '${END}'`).join('\n');
    const printed = await local.run('bash', ['-euo', 'pipefail', '-c', script]);
    const outputs = printed.split(END);
    expect(outputs).toHaveLength(steps.length + 1);
    for (const [place, { shown }] of steps.entries()) expectAsShown(outputs[place] ?? '', shown);
  });
});

/** Pages whose programs call a URL, or that are about `start` itself. */
const WITHOUT_TABS = ['sandbox.md', 'use-sockets.md', 'voice.md'];

test('a guide with issuer requests shows them in three languages, and leads to how they run', () => {
  const asking = runnable.filter(({ page }) => codeIn(page, 'bash').join('').includes('$ISSUER_URL/v'));
  const names = asking.map(({ name }) => name).filter((name) => !WITHOUT_TABS.includes(name));
  const shown = [...new Set(tabbed.map(({ name }) => name)), 'issue-a-url.md'];
  expect(shown.sort()).toEqual(names.sort());
  for (const name of names)
    expect(pageOf(name), name).toMatch(/`start`\]\(sandbox\.md#start-stop-and-reset\)/);
  for (const command of ['python3 program.py', 'npx -y tsx program.mts'])
    expect(pageOf('sandbox.md')).toContain(`\`${command}\``);
});

// Their Python: test/foreign/python-client.foreign.test.ts.
test.each(tabbed)('the TypeScript of $name prints what its curl prints', async (tabs) => {
  writeFileSync(join(reader, 'program.mts'), local.here(tabs.ts));
  await expectProgramAsShown(local, tabs, `cd ${reader} && node ${TSX.join(' ')} program.mts`);
});

test('the TypeScript of all guides has no type errors', () => {
  const files = tabbed.map(({ ts }, place) => {
    writeFileSync(join(reader, `${place}.mts`), `${ts}\nexport {};\n`);
    return `${place}.mts`;
  });
  const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2023', '--types', 'node'];
  const args = [tsc, ...options, '--lib', 'es2023,dom', '--skipLibCheck', ...files];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: reader, encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, '']);
});

test('the TypeScript of the guide to issuing issues the URL that its curl issues', async () => {
  const [program = ''] = codeIn(pageOf('issue-a-url.md'), 'ts');
  writeFileSync(join(reader, 'program.mts'), program);
  const env = {
    ISSUER_URL: `http://127.0.0.1:${local.issuerPort}`,
    PRESIGN_API_KEY: local.keys.apiKey,
  };
  const { out: url } = await runProgram(process.execPath, [...TSX, 'program.mts'], { cwd: reader, env });
  expect(url).toMatch(/\/llm\/t\/v4\.public\..*\/v1\/chat\/completions\n$/);
  const left = (await (await fetch(url.replace('/v1/chat/completions\n', ''))).json()) as object;
  expect(left).toMatchObject({ max_uses: 3, cost_limit: 50_000 });
});

test('the MCP client of the guide runs a tool', async () => {
  const { page } = guides.find(({ name }) => name === 'mcp-bundle.md') ?? { page: '' };
  const [issue = ''] = codeIn(page, 'bash').filter((command) => command.includes('/v2/mcp-presign'));
  const [start = ''] = codeIn(page, 'bash');
  await local.run('bash', ['-euc', local.here(`${start}\n${issue}`)]);
  const client = codeIn(page, 'ts').find((code) => code.includes('new Client(')) ?? '';
  expect(await local.run(process.execPath, ['--input-type=module', '-e', client])).toContain("text: '42'");
});

test('the JavaScript of the socket guide runs turns, and the refusal of the next turn is the one on the page', async () => {
  const page = pageOf('use-sockets.md');
  const fences = fencesIn(page);
  const [issue = ''] = codeIn(page, 'bash');
  const at = fences.findIndex(({ language }) => language === 'js');
  const urlOfAnother = async () => {
    await local.run('bash', ['-euc', local.here(issue)]);
    return (JSON.parse(readFileSync(join(local.folder, 'issued.json'), 'utf8')) as { url: string }).url;
  };
  const PRESIGNED_URL = await urlOfAnother();
  const program = ['--input-type=module', '-e', fences[at]?.code ?? ''];
  expect(await local.run(process.execPath, program, { PRESIGNED_URL })).toBe(fences[at + 1]?.code);

  const { turn, socket } = await openSocket(await urlOfAnother());
  const create = { type: 'response.create', model: 'sandbox-1', input: 'Hello' };
  for (let i = 0; i < 2; i++) expect(await turn(create)).toMatchObject({ type: 'response.completed' });
  const refusal = fences.find(({ code }) => code.includes('"type": "error"'))?.code ?? '';
  expectSameShape(await turn(create), JSON.parse(refusal), '');
  socket.close();
});

test('the voice guide states the hold of an answer of each model', () => {
  const rows = [...pageOf('voice.md').matchAll(/^\| `(gpt-realtime\S*)` +\| \$([\d.]+)/gm)];
  expect(rows.length).toBeGreaterThan(2);
  const openai = BUILT_IN_PROVIDERS.get('openai');
  for (const [, model = '', shown] of rows) {
    const facts = openai && modelFacts(openai, model);
    const path = '/v1/realtime';
    const judged = facts && spendOf(openai, path)?.bound({ model }, { path, bytes: 10, facts });
    const pricing = openai && pricingOf(openai, model, { prices: BUNDLED_PRICES, now: Date.now() });
    if (!pricing || !judged || 'unbounded' in judged) throw new Error(`${model} has no bound`);
    const { bound } = judged;
    const { fixedMicrousd, outputRate } = pricedBound(openai, model, pricing, bound) as PricedBound;
    const most = bound.output?.coversReasoning ? bound.output.asked : facts.maxOutput;
    expect((fixedMicrousd / 1e6 + (Number(most) * outputRate) / 1e12).toFixed(2), model).toBe(shown);
  }
});

type PricedBound = { readonly fixedMicrousd: number; readonly outputRate: number };

test('the usage guide shows its calls once they are in the ledger', async () => {
  const commands = codeIn(pageOf('read-usage-and-bill.md'), 'bash').map(local.here);
  const [make = '', sum = ''] = commands;
  await local.run('bash', ['-euc', make]);
  const row = await eventually(async () => {
    const printed = await local.run('bash', ['-euc', `${make.split('\n', 1)[0]}\n${sum}`]);
    const { data } = JSON.parse(printed) as { data: Record<string, unknown>[] };
    return data.find((each) => each.external_user === 'user-9');
  });
  const [calls, cost] = [Number(row.calls), Number(row.cost)];
  expect(row).toMatchObject({ model: 'sandbox-1', uses: calls, calls_of_unknown_cost: 0 });
  expect([calls > 0, cost]).toEqual([true, calls * 9]);
});

test('the receiver of the webhook guide accepts a signed request, and refuses an unsigned one', async () => {
  const port = await freePort();
  const receiver = codeIn(pageOf('webhooks.md'), 'ts').find((code) => code.includes('new Webhook(')) ?? '';
  writeFileSync(join(local.folder, 'receiver.mts'), receiver.replace('3000', String(port)));
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const child = spawn(process.execPath, ['--import', 'tsx', 'receiver.mts'], {
    cwd: local.folder,
    env: { PATH: process.env.PATH, PRESIGN_WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await until(child, 'ready');
  const body = '{"type":"webhook.test","timestamp":"2026-01-01T00:00:00Z","data":{}}';
  const now = new Date();
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('msg_1', now, body),
  };
  const post = (more: object) =>
    fetch(`http://127.0.0.1:${port}`, { method: 'POST', body, headers: { ...headers, ...more } });
  const shown = until(child, "type: 'webhook.test'");
  expect((await post({})).status).toBe(204);
  await shown;
  expect((await post({ 'webhook-signature': 'v1,AAAA' })).status).toBe(400);
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
});

const pageOf = (name: string): string => guides.find((guide) => guide.name === name)?.page ?? '';

const END = '\n--- end of a step ---\n';

/** A command, and the fence after it where that shows its output. */
type Step = { readonly command: string; readonly shown: Fence | undefined };

function stepsOf(fences: readonly Fence[]): readonly Step[] {
  return fences.flatMap(({ language, code }, place) => {
    if (language !== 'bash') return [];
    // The same request in other languages may stand between a command and its output.
    const next = fences.slice(place + 1).find((each) => !['python', 'ts'].includes(each.language));
    return [{ command: code, shown: next && ['json', ''].includes(next.language) ? next : undefined }];
  });
}
