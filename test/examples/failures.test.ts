import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../harness/free-port.ts';
import { runProgram } from '../harness/run-program.ts';
import { thorough } from '../harness/thorough.ts';
import { startSpoilingIssuer } from './spoiling-issuer.ts';
import { commandOf, type Env, EXAMPLES, hasRequests, type Started, startForExamples } from './started.ts';

const NAMES = [
  ...['first-call', 'streaming', 'out-of-budget', 'mcp', 'mcp-agent', 'customer-life'],
  ...['web-app', 'socket-chat', 'voice-chat', 'python-backend'],
];

let started: Started;
const spoiling: Awaited<ReturnType<typeof startSpoilingIssuer>>[] = [];
/** The environment of each failure, and the line that names it. */
let cases: ReadonlyMap<string, { readonly env: Env; readonly line: RegExp }>;

beforeAll(async () => {
  started = await startForExamples();
  const { env, gatewayPort } = started;
  const issuing = async (wrong: 'expired' | 'no uses') => {
    const issuer = await startSpoilingIssuer(env, wrong);
    spoiling.push(issuer);
    return { ISSUER_URL: issuer.url };
  };
  const away = `http://127.0.0.1:${await freePort()}`;
  cases = new Map([
    // Another program may listen at the default address.
    [
      'no address of an issuer',
      { env: { ISSUER_URL: '' }, line: /^No issuer answers at http:\/\/127\.0\.0\.1:8787\.|unauthenticated/ },
    ],
    [
      'the address of a gateway',
      { env: { ISSUER_URL: `http://127.0.0.1:${gatewayPort}` }, line: /not_found|unexpected_answer|404/ },
    ],
    [
      'an issuer that is away',
      {
        env: { ISSUER_URL: away },
        line: new RegExp(`^No issuer answers at ${away}\\. Is \`npx -y pnpm@12 start\` running\\?`),
      },
    ],
    ['another API key', { env: { PRESIGN_API_KEY: 'wrong' }, line: /unauthenticated: / }],
    ['a URL that has expired', { env: await issuing('expired'), line: /expired/ }],
    [
      'a URL without uses',
      {
        env: await issuing('no uses'),
        line: /This URL has no uses left \(max_uses 0\)\.|The socket closed: uses_exhausted/,
      },
    ],
  ]);
});
afterAll(async () => {
  for (const issuer of spoiling) issuer.close();
  await started.close();
});

async function expectOneLine(name: string, env: Env, line: RegExp): Promise<void> {
  const WEB_APP_PORT = String(await freePort());
  const [program, ...args] = commandOf(name);
  const { code, note } = await runProgram(program, args, {
    cwd: EXAMPLES,
    env: { ...started.env, WEB_APP_PORT, ...env },
  });
  const [said = '', ...rest] = note.split('\n');
  expect([code, rest], note).toEqual([1, ['']]);
  expect(said).toMatch(line);
}

const CASES = [
  'no address of an issuer',
  'the address of a gateway',
  'an issuer that is away',
  'another API key',
];
const OF_URLS = ['a URL that has expired', 'a URL without uses'];
/** A bundle lasts a minute at least. */
const withBundle = (name: string) => name.startsWith('mcp');

describe.each(NAMES)('the example %s fails with one line', (name) => {
  const all = thorough || name === 'first-call' || name === 'python-backend';
  const wrongs = all ? [...CASES, ...OF_URLS.slice(withBundle(name) ? 1 : 0)] : OF_URLS.slice(1);
  test.skipIf(name === 'python-backend' && !hasRequests).each(wrongs)('for %s', async (wrong) => {
    const { env, line } = cases.get(wrong) ?? expect.fail(wrong);
    await expectOneLine(name, env, line);
  });
});

test.each(thorough ? ['mcp', 'mcp-agent'] : ['mcp'])(
  'the example %s says in one line how to set the address of an unreachable MCP server',
  async (name) => {
    const MCP_SERVER_URL = `http://127.0.0.1:${await freePort()}/mcp`;
    await expectOneLine(
      name,
      { MCP_SERVER_URL },
      new RegExp(`^No MCP server answers at ${MCP_SERVER_URL}\\. .*set MCP_SERVER_URL`),
    );
  },
);
