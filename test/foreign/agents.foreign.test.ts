import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import type { Upstream } from '../harness/upstream.ts';
import { type Everything, startEverything } from '../mcp/everything.ts';
import { AGENTS, type Agent, type Environment } from './agents/agents.ts';
import { ADD, NOTE, READ, SAYS, SUM, startAgentProvider, WORD } from './agents/provider.ts';
import { type Ran, runAgent } from './agents/run-agent.ts';
import { newestNode } from './install.ts';

// `TEST_FOREIGN_AGENTS=true pnpm test:foreign agents` runs the agents and prints the figures of docs/reference/client-compatibility.md.
// Their packages have 3.2 GB.
const { agents, python } = inject('toolchains');
const installed = AGENTS.filter(({ environment: name }) => name === undefined || 'at' in python[name]);

const DOLLARS_5 = 5_000_000;
const RUN_MS = 300_000;

/** The limits of a refused URL, and the text that the agent's user reads. */
const REFUSALS = {
  uses_exhausted: [{ max_uses: 1, cost_limit: DOLLARS_5 }, 'This URL has no uses left (max_uses 1).'],
  token_expired: [{ cost_limit: DOLLARS_5 }, 'This URL has expired.'],
  cost_limit_reached: [{ cost_limit: 0 }, 'This URL has spent its cost_limit of 0 microdollars ($0.00).'],
  cost_limit_too_low: [{ cost_limit: 1 }, 'and 1 microdollar ($0.000001) is left'],
} as const;
type Refusal = keyof typeof REFUSALS;

let upstream: Upstream;
let stack: Stack;
/** A gateway whose clock is a day ahead. */
let tomorrow: string;
/** A server with the tool `get-sum`, over each transport. */
let sums: Record<'http' | 'sse', Everything>;
let project: string;
let running: Agent;
const figures: object[] = [];

beforeAll(async () => {
  if ('skipped' in agents) return;
  project = mkdtempSync(join(tmpdir(), 'presign-project-'));
  writeFileSync(join(project, 'note.txt'), NOTE);
  upstream = await startAgentProvider(() => running.reads?.(project));
  const at = { base_url: upstream.url };
  sums = { http: await startEverything('http'), sse: await startEverything('sse') };
  stack = await startStack({ providers: { anthropic: at, google: at, openai: at } });
  tomorrow = await stack.addGateway({ now: () => Date.now() + 86_400_000 });
});
afterAll(async () => {
  if ('skipped' in agents) return;
  console.table(figures);
  await stack?.close();
  await upstream?.close();
  for (const server of Object.values(sums ?? {})) await server.close();
  await removeFolder(project);
});

describe.skipIf('skipped' in agents).each(installed)('$name', (agent) => {
  test('answers a prompt', { timeout: RUN_MS }, async () => {
    const { ran, used, sent } = await prompt(agent, 'say hi', { cost_limit: DOLLARS_5 }, 'plain');
    expect(ran.reads).toContain(SAYS);
    expect(sent.some(isStreamed)).toBe(agent.isWhole !== true);
    expect(ran.calls.map(({ status }) => status)).toEqual(ran.calls.map(() => 200));
    expect(used).toBe(ran.calls.length);
  });

  test.skipIf(agent.reads === undefined)('uses a tool', { timeout: RUN_MS }, async () => {
    const { ran } = await prompt(agent, READ, { cost_limit: DOLLARS_5 }, 'tool');
    expect(ran.reads).toContain(WORD);
    expect(ran.calls.map(({ status }) => status)).toEqual(ran.calls.map(() => 200));
  });

  test.skipIf(agent.format === undefined).each(['http', 'sse'] as const)(
    "reads a bundle's document, and calls a tool of the bundle over %s",
    { timeout: RUN_MS },
    async (transport) => {
      const bundle = await issueBundle(agent, transport);
      const { ran } = await prompt(
        agent,
        ADD,
        { cost_limit: DOLLARS_5 },
        `mcp ${transport}`,
        bundle.document,
      );
      expect(ran.reads).toContain(SUM);
      expect(await bundle.used()).toBe(1);
    },
  );

  test.each(Object.entries(REFUSALS))(
    'is refused with %s at no cost, and shows its user the reason',
    { timeout: RUN_MS },
    async (code, [limits, message]) => {
      const { ran, used, sent } = await prompt(agent, 'say hi', limits, code as Refusal);
      expect(ran.reads.replace(/\s+/g, ' ')).toContain(message);
      expect(new Set(ran.calls.map((call) => call.code))).toEqual(new Set([code]));
      expect([sent.length, used]).toEqual([0, code === 'uses_exhausted' ? 1 : 0]);
      // An expired URL of OpenAI's API is a 401, which ends what 402 and 403 repeat.
      if (agent.attempts !== undefined && code !== 'token_expired')
        expect(ran.calls.length).toBe(agent.attempts);
    },
  );

  test('answers under the lowest limit that its refusal names', { timeout: RUN_MS }, async () => {
    const refused = await prompt(agent, 'say hi', { cost_limit: 1 }, 'least');
    const needed = Math.max(...refused.ran.calls.map((call) => call.needed ?? 0));
    const least = needed * (agent.callsAtOnce ?? 1);
    const { ran } = await prompt(agent, 'say hi', { cost_limit: least }, `at ${least}`);
    expect(ran.reads).toContain(SAYS);
  });
});

/** Runs an agent on a URL of its own. */
async function prompt(agent: Agent, text: string, limits: object, what: string, bundle?: string) {
  running = agent;
  const { provider, paths, least } = agent;
  const issued = await stack.issue({ provider, path: paths, client_api_key: 'sk-agent', ...limits });
  if (what === 'uses_exhausted') {
    await spend(issued.url, least);
    // The log is written ten times a second.
    await eventually(async () =>
      stack.logs.some((line) => line.includes(issued.session_id) && line.includes('"msg":"call"')),
    );
  }
  const url =
    what === 'token_expired' ? issued.url.replace(stack.gatewayUrls[0] ?? '', tomorrow) : issued.url;
  const before = upstream.seen.length;
  const ran = await runAgent(
    stack,
    agent,
    { ...placeOf(), bundle },
    { url, session: issued.session_id, prompt: text },
  );
  const used = await usesOf(issued.url);
  figures.push(figuresOf(agent, what, ran, used));
  return { ran, used, sent: upstream.seen.slice(before) };
}

const isStreamed = ({ url, body }: Upstream['seen'][number]): boolean =>
  url.includes(':streamGenerateContent') || /"stream": ?true/.test(body.toString());

/** A bundle of a server with the tool `get-sum`, as the agent's file has it, and how many of its uses count. */
async function issueBundle({ format = '' }: Agent, transport: 'http' | 'sse') {
  const { url } = sums[transport];
  const issued = await stack.issueMcp({ servers: [{ name: 'sums', url, transport }] });
  const { bundle_url, session_id } = issued;
  const document = await (await fetch(format === '' ? bundle_url : `${bundle_url}?format=${format}`)).text();
  const used = async () => {
    const headers = { authorization: `Bearer ${stack.apiKey}` };
    const answer = await fetch(`${stack.issuerUrl}/v1/sessions/${session_id}`, { headers });
    const { grants } = (await answer.json()) as { grants: { live: { used: number } }[] };
    return grants[0]?.live.used;
  };
  return { document, used };
}

function placeOf() {
  if ('skipped' in agents) throw new Error(agents.skipped);
  const at = (name: Environment): string => ('at' in python[name] ? python[name].at : '');
  const pythons = { aider: at('aider'), 'agent-sdk': at('agent-sdk') };
  const packages = join(agents.at, 'node_modules');
  return { packages, node: newestNode(agents.at), python: pythons, project };
}

async function spend(url: string, body: object): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  expect((await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status).toBe(200);
}

/** How many uses of a URL count, by `GET` on the URL without its path. */
async function usesOf(url: string): Promise<number> {
  const [itself = ''] = /^.*?\/llm\/t\/[^/]+/.exec(url) ?? [];
  return ((await (await fetch(itself)).json()) as { used: number }).used;
}

const figuresOf = ({ name }: Agent, what: string, { seconds, code, calls, reads }: Ran, used: number) => ({
  ...{ name, what, seconds: seconds.toFixed(1), code, calls: calls.length, used },
  hold: Math.max(...calls.map(({ hold, needed }) => hold ?? needed ?? 0)),
  reads: reads.trim().replace(/\s+/g, ' ').slice(-160),
});
