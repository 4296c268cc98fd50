import { execFile, execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { removeFolder } from '../harness/remove-folder.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import type { Upstream } from '../harness/upstream.ts';
import { AGENTS, type Agent } from './agents/agents.ts';
import { NOTE, READ, SAYS, startAgentProvider, WORD } from './agents/provider.ts';
import { type Ran, runAgent } from './agents/run-agent.ts';
import { newestNode } from './install.ts';
import { NEWEST_AGENTS } from './on-request.ts';

// `TEST_FOREIGN_AGENTS=newest pnpm test:foreign newest-agents` installs each agent by itself at its newest version, runs it under a limit, and
// prints a line for each. A name after `-t` runs that agent alone.
const run = promisify(execFile);
const INSTALL_MS = 240_000;
const PROMPT_MS = 90_000;
const DOLLARS_5 = 5_000_000;

let upstream: Upstream;
let stack: Stack;
let project: string;
let running: Agent;

describe.skipIf(!NEWEST_AGENTS)('the newest agents', () => {
  beforeAll(async () => {
    project = mkdtempSync(join(tmpdir(), 'presign-project-'));
    writeFileSync(join(project, 'note.txt'), NOTE);
    upstream = await startAgentProvider(() => running.reads?.(project));
    const at = { base_url: upstream.url };
    stack = await startStack({ providers: { anthropic: at, google: at, openai: at } });
  });
  afterAll(async () => {
    await stack?.close();
    await upstream?.close();
    await removeFolder(project);
  });

  test.each(AGENTS)('$name', { timeout: INSTALL_MS + 3 * PROMPT_MS }, async (agent) => {
    running = agent;
    const folder = mkdtempSync(join(tmpdir(), 'presign-newest-'));
    let report = 'is not installed';
    try {
      const version = await install(agent, folder);
      report = `${version} gave no report`;
      const results = [await prompt(agent, folder, 'say hi', SAYS)];
      if (agent.reads) results.push(await prompt(agent, folder, READ, WORD));
      const bad = results.find(({ problem }) => problem !== undefined);
      report = `${version} ${bad?.problem ?? 'passed'} (${results.map(({ figures }) => figures).join('; ')})`;
      expect(bad?.problem).toBeUndefined();
    } catch (error) {
      if (report === 'is not installed') report += `: ${firstLine(error)}`;
      throw error;
    } finally {
      say(`${agent.name} ${report}`);
      await removeFolder(folder);
    }
  });
});

/** Installs an agent in a folder of its own, and returns its version. */
async function install({ package: name, environment }: Agent, folder: string): Promise<string> {
  const within = { cwd: folder, timeout: INSTALL_MS, killSignal: 'SIGKILL' } as const;
  if (environment !== undefined) {
    await run('python3', ['-m', 'venv', folder], within);
    await run('bin/pip', ['install', '--quiet', name], within);
    const version = `import importlib.metadata as m; print(m.version("${name}"))`;
    return execFileSync(join(folder, 'bin/python'), ['-c', version], { encoding: 'utf8' }).trim();
  }
  const { optionalDependencies } = JSON.parse(
    readFileSync(join(import.meta.dirname, 'agents/package.json'), 'utf8'),
  ) as { optionalDependencies: Record<string, string> };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', optionalDependencies }));
  cpSync(join(import.meta.dirname, 'agents/claude-agent-sdk.mjs'), join(folder, 'claude-agent-sdk.mjs'));
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@latest`], within);
  const installed = readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(installed) as { version: string }).version;
}

/** Runs a prompt under a limit: what went wrong, if anything, and figures. */
async function prompt(agent: Agent, folder: string, text: string, expected: string) {
  const { provider, paths } = agent;
  const limits = { cost_limit: DOLLARS_5 };
  const { url, session_id } = await stack.issue({
    ...{ provider, path: paths, client_api_key: 'sk-agent', ...limits },
  });
  const python = join(folder, 'bin/python');
  const place = {
    ...{ packages: join(folder, 'node_modules'), node: newestNode(folder), project, bundle: undefined },
    python: { aider: python, 'agent-sdk': python },
  };
  const ran = await runAgent(stack, agent, place, {
    ...{ url, session: session_id, prompt: text, limitMs: PROMPT_MS },
  });
  const problem = problemOf(ran, expected);
  return { problem, figures: `${ran.calls.length} calls in ${ran.seconds.toFixed(0)} s` };
}

/** The first thing that was refused, by its name, or how the prompt ended otherwise. Undefined: it passed. */
function problemOf({ calls, reads, code }: Ran, expected: string): string | undefined {
  const refused = calls.find(({ status }) => status !== 200);
  if (refused) return `was refused: ${refused.unbounded ?? refused.code} (${refused.status})`;
  if (code === null) return `gave no answer in ${PROMPT_MS / 1_000} s`;
  if (!reads.includes(expected)) return `did not answer: ${reads.trim().slice(-200).replace(/\s+/g, ' ')}`;
  return undefined;
}

const firstLine = (error: unknown): string => {
  const { stderr, message } = error as { stderr?: string; message: string };
  return (stderr || message).trim().split('\n', 1)[0] ?? '';
};

/** At once, because a later agent may take the job's time. */
function say(line: string): void {
  process.stdout.write(`${line}\n`);
  const summary = process.env.GITHUB_STEP_SUMMARY;
  if (summary) appendFileSync(summary, `- ${line}\n`);
}
