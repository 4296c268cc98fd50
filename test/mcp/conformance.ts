import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { type Stack, startStack } from '../harness/stack.ts';

/** https://github.com/modelcontextprotocol/go-sdk/tree/main/conformance: what the Go SDK itself is judged by. */
const SERVER = 'github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0';

/**
 * The suite's released version has all scenarios for revisions to 2025-11-25. Only its next
 * version has the scenarios of 2026-07-28.
 */
const ROUNDS: readonly Round[] = [
  { suite: '0.1.16', scenarios: ['--suite', 'all'], server: ['-stateless=false'] },
  { suite: '0.2.0-alpha.12', scenarios: ['--suite', 'all', '--spec-version', '2026-07-28'], server: [] },
];

type Round = {
  readonly suite: string;
  readonly scenarios: readonly string[];
  readonly server: readonly string[];
};

/** Where the gateway rightly answers otherwise than the server. */
const EXPECTED = new Map([
  [
    'dns-rebinding-protection',
    'a server on localhost goes by Host; the gateway has other names, and a page that rebinds has no token',
  ],
]);

const run = promisify(execFile);

/**
 * `npx tsx test/mcp/conformance.ts`: runs the official conformance suite (@modelcontextprotocol/conformance) on one
 * server, direct and through the gateway; prints both results of each scenario, and fails where they differ. By hand:
 * it fetches the suite with npx, a Node 24 to run it where this one is older than 22, and the server with Go.
 */
async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'presign-conformance-'));
  const stack = await startStack({ providers: {}, gateways: 2 });
  try {
    await run('go', ['install', SERVER], { env: { ...process.env, GOBIN: folder } });
    let different = 0;
    for (const round of ROUNDS) different += await compare(stack, folder, round);
    tell(
      different === 0
        ? 'Through the gateway no other result differs.'
        : `Through the gateway ${different} results differ that should not.`,
    );
    process.exitCode = different === 0 ? 0 : 1;
  } finally {
    await stack.close();
    await removeFolder(folder);
  }
}

const tell = (line: string) => void process.stdout.write(`${line}\n`);

/** How many scenarios end otherwise through the gateway. */
async function compare(stack: Stack, folder: string, round: Round): Promise<number> {
  const port = await freePort();
  const server = spawn(join(folder, 'everything-server'), [`-http=127.0.0.1:${port}`, ...round.server], {
    stdio: 'ignore',
  });
  try {
    const url = `http://127.0.0.1:${port}`;
    await eventually(async () => (await fetch(url).catch(() => undefined))?.status);
    const { servers } = await stack.issueMcp({ servers: [{ name: 'everything', url, transport: 'http' }] });
    const direct = await judge(round, url, join(folder, `${round.suite}-direct`));
    const relay = await startRelay(stack.gatewayUrls, new URL(servers.everything?.url ?? ''));
    const through = await judge(round, relay.url, join(folder, `${round.suite}-through`));
    relay.close();
    return tellBoth(round, direct, through);
  } finally {
    server.kill();
  }
}

/**
 * Some scenarios of the suite send to the path of the address that they are given, without its query, where ours has
 * server and token. So that no scenario fails for that alone, this puts the query back. It sends to all gateways in turn, and changes
 * nothing else.
 */
async function startRelay(
  gatewayUrls: readonly string[],
  { pathname, search }: URL,
): Promise<{ url: string; close: () => void }> {
  let turn = 0;
  const relay = createServer((incoming, outgoing) => {
    const { method = 'GET', headers } = incoming;
    const gatewayUrl = gatewayUrls[turn++ % gatewayUrls.length] ?? '';
    const call = request(gatewayUrl + pathname + search, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(outgoing);
    });
    call.on('error', () => outgoing.destroy());
    outgoing.on('close', () => call.destroy());
    incoming.pipe(call);
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  const address = relay.address();
  if (address === null || typeof address === 'string') throw new Error('the relay listens on no port');
  return { url: `http://127.0.0.1:${address.port}/`, close: () => relay.close().closeAllConnections() };
}

/** A scenario's checks in their order: what was checked, and how it ended. */
type Results = ReadonlyMap<string, readonly string[]>;

/** Runs the suite on an address and reads the results that it writes, one folder a scenario. */
async function judge(round: Round, url: string, folder: string): Promise<Results> {
  const old = Number(process.versions.node.split('.')[0]) < 22;
  const packages = [`@modelcontextprotocol/conformance@${round.suite}`, ...(old ? ['node@24'] : [])];
  const npx = ['-y', ...packages.flatMap((name) => ['-p', name]), 'conformance'];
  // It exits with a failure when a scenario fails, which is not what is asked here.
  await run('npx', [...npx, 'server', '--url', url, '-o', folder, ...round.scenarios], {
    maxBuffer: 1 << 28,
  }).catch(() => undefined);
  const results = new Map<string, string[]>();
  for (const name of readdirSync(folder).sort()) {
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT/.exec(name)?.[1] ?? name;
    const checks = JSON.parse(readFileSync(join(folder, name, 'checks.json'), 'utf8')) as Check[];
    results.set(
      scenario,
      checks.map(({ id, status }) => `${id}: ${status}`),
    );
  }
  if (results.size === 0) throw new Error(`the suite ${round.suite} wrote no results`);
  return results;
}

type Check = { readonly id: string; readonly status: string };

function tellBoth(round: Round, direct: Results, through: Results): number {
  tell(
    `| ${round.suite}: scenario | direct | through the gateway | checks that differ |\n| --- | --- | --- | --- |`,
  );
  let different = 0;
  for (const scenario of new Set([...direct.keys(), ...through.keys()])) {
    const [before, after] = [direct.get(scenario) ?? [], through.get(scenario) ?? []];
    const others = after.filter((check, i) => check !== before[i]);
    const why = EXPECTED.get(scenario);
    if (why === undefined && (others.length > 0 || before.length !== after.length)) different += 1;
    tell(
      `| ${scenario} | ${passed(before)} | ${passed(after)} | ${[...others, why].filter(Boolean).join(', ')} |`,
    );
  }
  tell('');
  return different;
}

/** How many of the checks passed, without those that only inform. */
function passed(checks: readonly string[]): string {
  const judged = checks.filter((check) => !/: (INFO|SKIPPED)$/.test(check));
  return `${judged.filter((check) => check.endsWith(': SUCCESS')).length}/${judged.length}`;
}

await main();
