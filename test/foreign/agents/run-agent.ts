import { spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeFolder } from '../../harness/remove-folder.ts';
import type { Stack } from '../../harness/stack.ts';
import type { Agent, Place } from './agents.ts';

/** The outcome of one prompt on one URL. */
export type Ran = {
  readonly seconds: number;
  readonly code: number | null;
  /** Both outputs, without colours. */
  readonly reads: string;
  /** The calls of its URL, as the gateway logged them. */
  readonly calls: readonly Call[];
};

export type Call = {
  readonly status: number;
  readonly code?: string;
  readonly hold?: number;
  readonly uses?: number;
  readonly model?: string;
  readonly unbounded?: string;
  /** The amount that a refused call would have held. */
  readonly needed?: number;
};

const LIMIT_MS = 240_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours of a terminal
const COLOURS = /\u001b\[[0-9;?]*[A-Za-z]/g;

/** A prompt on one URL, and after how long it is given up. */
type Prompt = {
  readonly url: string;
  readonly session: string;
  readonly prompt: string;
  readonly limitMs?: number;
};

/** Runs an agent in a project, with an empty home. */
export async function runAgent(
  stack: Stack,
  agent: Agent,
  at: Omit<Place, 'home'>,
  { url, session, prompt, limitMs = LIMIT_MS }: Prompt,
): Promise<Ran> {
  const home = mkdtempSync(join(tmpdir(), 'presign-agent-'));
  const place = { ...at, home };
  const before = stack.logs.length;
  try {
    const { command, env = {} } = agent.start(place, url, prompt);
    const began = performance.now();
    const { code, reads } = await runProgram(command, { ...place, limitMs }, env);
    const seconds = (performance.now() - began) / 1_000;
    return { seconds, code, reads, calls: callsIn(stack.logs.slice(before), session) };
  } finally {
    await removeFolder(home);
  }
}

function runProgram(
  [program, ...args]: readonly [string, ...string[]],
  { home, project, limitMs }: Place & { readonly limitMs: number },
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; reads: string }> {
  const own = { PATH: process.env.PATH, HOME: home, TERM: 'dumb', NO_COLOR: '1', CI: 'true', ...env };
  return new Promise((resolve, reject) => {
    // A group of its own: programs that the agent started would keep its outputs open.
    const child = spawn(program, args, {
      ...{ cwd: project, env: own, detached: true },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const end = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL');
    let reads = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (reads += chunk));
    const timer = setTimeout(end, limitMs);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve({ code, reads: reads.replace(COLOURS, '') });
    });
  });
}

/** Only one agent runs at a time, so a call without a session is of it, too. */
const callsIn = (lines: readonly string[], own: string): readonly Call[] =>
  lines
    .filter((line) => line.includes('"msg":"call"'))
    .map((line) => JSON.parse(line) as Call & { kind: string; session?: string })
    .filter(({ kind, session = own }) => kind === 'llm' && session === own);
