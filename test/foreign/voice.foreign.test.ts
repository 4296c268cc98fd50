import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { codeIn, fencesIn } from '../docs/fences.ts';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { codesIn } from '../gateway/holder-page.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { newAuthority, newCertificate, startTlsFront } from '../harness/tls.ts';
import { pythonProgram } from './cases.ts';
import { newestNode } from './install.ts';

// Clients of OpenAI's Realtime on the socket of a URL, and the programs of docs/guides/voice.md, each as the page has it.
const run = promisify(execFile);
const { python, js } = inject('toolchains');
const page = readFileSync(new URL('../../docs/guides/voice.md', import.meta.url), 'utf8');
const fences = fencesIn(page);
const [inJavaScript = ''] = codeIn(page, 'js');
const [inPython = ''] = codeIn(page, 'python');
/** Two answers, and the refusal of the third. */
const shown = fences[fences.findIndex(({ code }) => code === inJavaScript) + 1]?.code ?? '';

let local: Local;
let front: Awaited<ReturnType<typeof startTlsFront>>;
const folder = mkdtempSync(join(tmpdir(), 'presign-voice-'));
beforeAll(async () => {
  local = await startLocalForDocs();
  const authority = await newAuthority();
  writeFileSync(join(folder, 'ca.pem'), authority.cert);
  const certificate = await newCertificate('localhost', authority);
  front = await startTlsFront(certificate, new URL(`http://127.0.0.1:${local.gatewayPort}`));
});
afterAll(async () => {
  await front.close();
  await local.close();
  removeFolder(folder);
});

/** A URL of the sandbox, which answers as the guide says. */
async function issue(limits: object): Promise<string> {
  const sandbox = { provider: 'sandbox', path: '/v1/realtime', client_api_key: 'sk-sandbox', sockets: true };
  const answer = await fetch(`http://127.0.0.1:${local.issuerPort}/v1/presign`, {
    method: 'POST',
    headers: { authorization: `Bearer ${local.keys.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...sandbox, cost_limit: 2_000_000, ...limits }),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { url: string }).url;
}

/** JavaScript opens `wss` alone. */
const behindTls = (url: string) => {
  const address = new URL(url);
  return Object.assign(address, { protocol: 'https:', host: `localhost:${front.port}` }).href;
};

const { llm } = python;
type Client = {
  readonly name: string;
  readonly needs: typeof llm;
  readonly command: (at: string) => readonly [string, string];
  readonly socket?: string;
  readonly isTls?: boolean;
};
const jsProgram = (name: string) => (at: string) => [newestNode(at), join(at, name)] as const;
const CLIENTS: readonly Client[] = [
  ...['AsyncOpenAI', 'websockets'].map((socket) => ({
    ...{ name: `${socket} in Python`, needs: llm, socket },
    command: (at: string) => [at, pythonProgram('realtime_client')] as const,
  })),
  ...['OpenAIRealtimeWS', 'OpenAIRealtimeWebSocket'].map((socket) => ({
    ...{ name: `${socket} in JavaScript`, needs: js, socket, isTls: true },
    command: jsProgram('realtime.mjs'),
  })),
  { name: "OpenAI's agents in JavaScript", needs: js, command: jsProgram('realtime-agents.mjs') },
];

describe.each(CLIENTS)('$name', ({ needs, command, socket = '', isTls = false }) => {
  const printed = async (limits: object) => {
    if ('skipped' in needs) throw new Error(needs.skipped);
    const [program, file] = command(needs.at);
    const url = await issue(limits);
    const { stdout } = await run(program, [file], {
      ...('at' in js && { cwd: js.at }),
      env: {
        ...{ PATH: process.env.PATH, SOCKET: socket, PRESIGNED_URL: isTls ? behindTls(url) : url },
        NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
      },
      timeout: 100_000,
    });
    return stdout.trim().split('\n');
  };

  test.skipIf('skipped' in needs)(
    'is answered in text and after a speech, calls a tool, and reports that no use is left',
    async () => {
      const says = 'This is the sandbox, no model was asked.';
      expect(await printed({ max_uses: 4 })).toEqual([
        `${says} You said: Hello`,
        `${says} You spoke for 1.0 seconds.`,
        'weather {"city":"Oslo"}',
        `${says} The tool returned: rain`,
        'uses_exhausted: This URL has no uses left (max_uses 4). Issue a new URL.',
      ]);
    },
  );

  test.skipIf('skipped' in needs)('reports that the money does not cover an answer', async () => {
    const lines = await printed({ cost_limit: 1_000_000, max_uses: 4 });
    for (const line of lines) expect(line).toMatch(/^cost_limit_too_low: .*may cost 1064960 microdollars/);
  });
});

const TWO_ANSWERS = { max_uses: 2 };
test.skipIf('skipped' in llm)(
  'the Python of the guide prints two answers, then the reason for the refusal',
  async () => {
    if ('skipped' in llm) return;
    const env = { PATH: process.env.PATH, PRESIGNED_URL: await issue(TWO_ANSWERS) };
    const lines = shown.trim().split('\n');
    await expect(run(llm.at, ['-c', inPython], { env })).rejects.toMatchObject({
      stdout: `${lines.slice(0, 2).join('\n')}\n`,
      stderr: `${lines[2]}\n`,
    });
  },
);

test.skipIf('skipped' in llm)('the Python of the page of a URL gets an answer', async () => {
  if ('skipped' in llm) return;
  const address = (await issue({ models: ['gpt-realtime'] })).replace('/v1/realtime', '');
  const opened = await (await fetch(address, { headers: { accept: 'text/html' } })).text();
  const code = codesIn(opened).find((each) => each.startsWith('import os')) ?? '';
  const env = { PATH: process.env.PATH, PRESIGN_URL: address };
  expect((await run(llm.at, ['-c', code], { env })).stdout).toMatch(
    /^This is the sandbox, no model was asked\./,
  );
});

test.skipIf('skipped' in js)(
  'the JavaScript of the guide prints two answers, then the reason for the refusal',
  async () => {
    if ('skipped' in js) return;
    const env = { PATH: process.env.PATH, PRESIGNED_URL: await issue(TWO_ANSWERS) };
    const options = { cwd: js.at, env };
    const { stdout } = await run(newestNode(js.at), ['--input-type=module', '-e', inJavaScript], options);
    expect(stdout).toBe(shown);
  },
);
