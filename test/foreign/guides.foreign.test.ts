import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { type ClientPage, clientPages, forTest, PROVIDERS, runsInProject } from '../docs/client-pages.ts';
import { codeIn, type Fence } from '../docs/fences.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import type { PacedUpstream } from '../sdk/upstreams/paced.ts';
import type { Installed } from './install.ts';

const run = promisify(execFile);
const toolchains = inject('toolchains');
const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/** Java and Go compile the program first. */
const BUILDS_MS = 600_000;

const upstreams: PacedUpstream[] = [];
let stack: Stack;
beforeAll(async () => {
  const providers: Record<string, object> = {};
  for (const [name, { start }] of PROVIDERS) {
    const upstream = await start();
    upstreams.push(upstream);
    providers[name] = { base_url: upstream.url };
  }
  stack = await startStack({ providers });
});
afterAll(async () => {
  await stack.close();
  for (const upstream of upstreams) await upstream.close();
});

/** Runs a program: the toolchain that it needs, and a command made in a folder that is removed afterwards. */
type Runner = {
  readonly needs: Installed;
  readonly parent: (at: string) => string;
  readonly write: (folder: string, code: string, at: string) => readonly [string, ...string[]];
};

const URL_OF = {
  python: 'import os\nurl = os.environ["PRESIGN_URL"]',
  ts: 'process.env.PRESIGN_URL as string',
};

function runnerOf({ language, code }: Fence): Runner {
  switch (language) {
    case 'python':
      return {
        needs: /import (litellm|instructor)/.test(code) ? toolchains.python.litellm : toolchains.python.llm,
        parent: tmpdir,
        write: (folder, text, at) => {
          writeFileSync(join(folder, 'guide.py'), `${URL_OF.python}\n${text}`);
          return [at, join(folder, 'guide.py')];
        },
      };
    case 'java':
      return {
        needs: toolchains.java,
        parent: tmpdir,
        write: (folder, text, at) => {
          writeFileSync(join(folder, 'Main.java'), text);
          return ['java', '-cp', readFileSync(at, 'utf8').trim(), join(folder, 'Main.java')];
        },
      };
    case 'go':
      return {
        needs: toolchains.go,
        parent: () => join(import.meta.dirname, 'go'),
        write: (folder, text) => {
          writeFileSync(join(folder, 'main.go'), text);
          return ['go', 'run', folder];
        },
      };
    default:
      return {
        needs: toolchains.js,
        // Its packages are there.
        parent: (at) => at,
        write: (folder, text) => {
          writeFileSync(join(folder, 'guide.mts'), `const url = ${URL_OF.ts};\n${text}`);
          return [process.execPath, '--import', TSX, join(folder, 'guide.mts')];
        },
      };
  }
}

const foreign = clientPages.flatMap((page) =>
  page.programs
    .filter((program) => !runsInProject(program))
    .map((program, i) => ({ page, program, name: `${page.name}, ${program.language} ${i + 1}` })),
);

describe.each(foreign)('$name', ({ page, program }) => {
  const { needs, parent, write } = runnerOf(program);
  const at = 'at' in needs ? needs.at : undefined;

  const name = 'gets an answer, and prints why a second call is refused';
  test.skipIf(at === undefined)(name, { timeout: BUILDS_MS }, async () => {
    if (at === undefined) return;
    const folder = mkdtempSync(join(parent(at), 'guide-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [command, ...args] = write(folder, program.code, at);
    const { says, url } = await issueFor(page);
    const { PATH, HOME } = process.env;
    const env = { PATH, HOME, PRESIGN_URL: url, LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
    const options = { env, cwd: program.language === 'go' ? parent(at) : folder };
    // The answer of this one is JSON, of which it prints a field.
    const answer = program.code.includes('import instructor') ? 'Ada' : says;
    expect((await run(command, args, options)).stdout).toContain(answer);
    const { stdout } = await run(command, args, options);
    expect(stdout).toContain('uses_exhausted: This URL has no uses left');
  });
});

const { llm } = toolchains.python;
test.skipIf(!('at' in llm))('the Python of the guide to issuing issues a URL', async () => {
  if (!('at' in llm)) return;
  const page = readFileSync(new URL('../../docs/guides/issue-a-url.md', import.meta.url), 'utf8');
  const [code = ''] = codeIn(page, 'python');
  const env = { PATH: process.env.PATH, ISSUER_URL: stack.issuerUrl, PRESIGN_API_KEY: stack.apiKey };
  const { stdout } = await run(
    llm.at,
    ['-c', code.replace('"sandbox"', '"openai"').replace('sandbox-1', 'gpt-4o-mini')],
    { env },
  );
  expect(stdout).toMatch(/\/llm\/t\/v4\.public\..*\/v1\/chat\/completions$/m);
});

test.skipIf(!('at' in llm))(
  "a Python SDK logs the URL at INFO, and not with the guide's logging setup",
  async () => {
    if (!('at' in llm)) return;
    const guide = readFileSync(new URL('../../docs/guides/use-an-sdk.md', import.meta.url), 'utf8');
    const [silence = ''] = codeIn(guide, 'python');
    const page = clientPages.find(({ name }) => name === 'openai.md');
    const program = page?.programs.find(({ language }) => language === 'python');
    if (!page || !program) throw new Error('the guide has no Python');
    for (const [before, logs] of [
      ['', true],
      [silence, false],
    ] as const) {
      const { url } = await issueFor(page);
      const code = `${URL_OF.python}\nimport logging\nlogging.basicConfig(level=logging.INFO)\n${before}\n${program.code}`;
      const { stderr } = await run(llm.at, ['-c', code], {
        env: { PATH: process.env.PATH, PRESIGN_URL: url },
      });
      expect(stderr.includes('/llm/t/v4.public.')).toBe(logs);
    }
  },
);

async function issueFor({ request }: ClientPage): Promise<{ says: string; url: string }> {
  const { says = '' } = PROVIDERS.get(request.provider) ?? {};
  const { url } = await stack.issue({ ...request, ...forTest(says) });
  return { says, url };
}
