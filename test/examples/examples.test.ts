import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tone } from '@presign/local';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { audit, takePicture } from '../console/console-page.ts';
import { hasChromium, leaveChromium, openChromium, openListeningChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { runProgram } from '../harness/run-program.ts';
import {
  type Command,
  commandOf,
  type Env,
  EXAMPLES,
  hasRequests,
  type Started,
  startForExamples,
} from './started.ts';

let started: Started;
let env: Env;

beforeAll(async () => {
  started = await startForExamples();
  env = started.env;
});
afterAll(() => started.close());

/** The exit code and everything that it prints. */
async function run([program, ...args]: Command, more: Env = {}) {
  const { code, out, note } = await runProgram(program, args, { cwd: EXAMPLES, env: { ...env, ...more } });
  return { code, output: out + note };
}

const typescript = (name: string, more?: Env) => run(commandOf(name), more);

describe.each([
  ['first-call', ['You said: Hello', 'Uses left: 2', 'not /v1/embeddings']],
  ['streaming', ['Tell me a story', 'pieces']],
  ['mcp', ['One address for all servers:', '2 + 40 = 42']],
  [
    'mcp-agent',
    [
      'Tools: echo, add',
      '2 + 40 = 42',
      'This URL has no uses left (max_uses 3). Issue a new URL.',
      'revoked: grant_revoked',
    ],
  ],
  [
    'out-of-budget',
    [
      'Ten calls at once',
      'uses_exhausted: This URL has no uses left (max_uses 2). Issue a new URL.',
      'And then: cost_limit_too_low: ',
    ],
  ],
  ['customer-life', ['without ALLOW_PRIVATE_UPSTREAMS', '403 grant_revoked', '401 unauthenticated']],
] as const)('the example %s', (name, shown) => {
  test('runs to its end and shows its purpose', async () => {
    const { code, output } = await typescript(name);
    for (const text of shown) expect(output).toContain(text);
    expect(code).toBe(0);
    // An agent sees a budget that its grants share once.
    if (name === 'mcp-agent') expect(output.match(/mcp \d+ used/g)).toEqual(['mcp 3 used']);
  });
});

test('the example customer-life receives and verifies events where `start` allows an endpoint on this machine', async () => {
  const open = await startForExamples({ ALLOW_PRIVATE_UPSTREAMS: 'true' });
  const { code, output } = await typescript('customer-life', open.env).finally(open.close);
  expect(output).toContain('Events, signed and verified, have the same costs.');
  expect(output).toContain('An event announced it.');
  expect(code).toBe(0);
});

describe.skipIf(!hasRequests)('the example python-backend', () => {
  test('runs to its end and shows its purpose', async () => {
    const { code, output } = await run(commandOf('python-backend'));
    expect(output).toContain('Asked again with the same Idempotency-Key: the same URL.');
    expect(output).toContain(
      'A third call: 403 uses_exhausted: This URL has no uses left (max_uses 2). Issue a new URL.',
    );
    expect(code).toBe(0);
  });
});

/** A program that goes on until it is ended, and where its page is. */
async function serve(name: string) {
  const address = `http://127.0.0.1:${await freePort()}`;
  const [program, ...args] = commandOf(name);
  const child = spawn(program, args, { cwd: EXAMPLES, env: { ...env, WEB_APP_PORT: new URL(address).port } });
  let output = '';
  const note = (chunk: Buffer) => {
    output += chunk.toString();
  };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', note);
  const ended = once(child, 'close');
  const close = async () => {
    child.kill();
    await ended;
  };
  await eventually(async () => output.includes('Try it at') || child.exitCode !== null || undefined);
  return { address, child, ended, output: () => output, close };
}

/** Everything that a page has asked for, with its headers. */
function watch(page: Page) {
  const asked: { url: string; headers: Record<string, string> }[] = [];
  page.on('request', (request) => asked.push({ url: request.url(), headers: request.headers() }));
  return asked;
}

describe('the example web-app', () => {
  let served: Awaited<ReturnType<typeof serve>>;
  beforeAll(async () => {
    served = await serve('web-app');
  });
  afterAll(() => served.close());

  test('has called the model, as its page does, before it prints its address', () => {
    const { address, output } = served;
    expect(output()).toMatch(/The model said, in \d+ pieces: .*You said: Is anybody there\?/);
    expect(output()).toContain(`Try it at ${address}/`);
  });

  test.skipIf(!hasChromium)(
    'streams to its page in a browser, which calls the gateway and has no key',
    async () => {
      const { address } = served;
      const browser = await openChromium();
      onTestFinished(leaveChromium);
      const page = await browser.newPage();
      const asked = watch(page);
      await page.goto(address);
      for (const content of ['Hello', 'And again', 'Once more', 'Still there?', 'The fifth']) {
        expect(await say(page, content)).toMatch(new RegExp(`You said: ${content.replace('?', '\\?')}`));
      }
      expect(await say(page, 'The sixth')).toBe(
        'uses_exhausted: This URL has no uses left (max_uses 5). Issue a new URL.',
      );

      const toGateway = asked.filter(({ url }) => url.includes('/llm/t/'));
      expect(toGateway).toHaveLength(6);
      for (const { url, headers } of toGateway) {
        expect(new URL(url).origin).toBe(`http://127.0.0.1:${started.gatewayPort}`);
        expect(headers).not.toHaveProperty('authorization');
      }
      expect(JSON.stringify(asked)).not.toContain('sk-sandbox');
      expect(asked.filter(({ url }) => url === `${address}/chat-url`)).toHaveLength(1);
    },
  );
});

describe('the example socket-chat', () => {
  let served: Awaited<ReturnType<typeof serve>>;
  beforeAll(async () => {
    served = await serve('socket-chat');
  });
  afterAll(() => served.close());

  test('has run turns and reached its cap, as its page does, before it prints its address', () => {
    const { address, output } = served;
    expect(output().match(/The model said, in \d+ pieces: /g)).toHaveLength(3);
    expect(output()).toMatch(/Used 3 turns, spent \d+ microdollars\./);
    expect(output()).toContain(`Try it at ${address}/`);
  });

  test.skipIf(!hasChromium)(
    'runs turns on one socket of its page in a browser, and explains what is left and why a turn is refused',
    async () => {
      const browser = await openChromium();
      onTestFinished(leaveChromium);
      const page = await browser.newPage();
      const asked = watch(page);
      const sockets: { url: string; sent: string[] }[] = [];
      page.on('websocket', (socket) => {
        const sent: string[] = [];
        sockets.push({ url: socket.url(), sent });
        socket.on('framesent', ({ payload }) => sent.push(String(payload)));
      });
      await page.goto(served.address);
      const send = async (content: string) => {
        await page.fill('input', content);
        await page.click('button');
        await page.waitForSelector('button:enabled');
        return [await page.textContent('#chat li:last-child'), await page.textContent('#left')];
      };
      const [first, left] = await send('Hello');
      expect(first).toMatch(/You said: Hello$/);
      expect(left).toMatch(/^2 of 3 turns left\. Spent \$0\.0000\d\d of \$0\.030000\.$/);
      expect((await send('Do you remember?'))[0]).toMatch(/You said: Do you remember\?$/);
      expect(sockets).toHaveLength(1);
      // A turn sends what is new, and continues the response before it.
      expect(sockets[0]?.sent[1]).toMatch(/"input":"Do you remember\?","previous_response_id":"resp_/);
      await send('The third turn');
      expect(await send('The fourth')).toEqual([
        'uses_exhausted: This URL has no uses left (max_uses 3). Issue a new URL.',
        expect.stringMatching(/^0 of 3 turns left\. Spent \$0\.0000\d\d of \$0\.030000\.$/),
      ]);
      expect(await audit(page)).toEqual([]);
      await takePicture(page, 'socket-chat', 640);
      // The gateway has closed that socket, and refuses the next one.
      await eventually(async () => (await send('The fifth'))[0]?.startsWith('uses_exhausted: '));
      for (const { url } of sockets) expect(new URL(url).host).toBe(`127.0.0.1:${started.gatewayPort}`);
      expect(JSON.stringify([asked, sockets])).not.toContain('sk-sandbox');
      expect(asked.filter(({ url }) => url === `${served.address}/chat-url`)).toHaveLength(1);
    },
  );
});

describe('the example voice-chat', () => {
  let served: Awaited<ReturnType<typeof serve>>;
  beforeAll(async () => {
    served = await serve('voice-chat');
  });
  afterAll(() => served.close());

  test('has got audio answers and reached its cap, as its page does, before it prints its address', () => {
    const { address, output } = served;
    expect(
      output().match(/The model said: .*You spoke for 1\.0 seconds\. \(2\.6 s of sound\)/g),
    ).toHaveLength(3);
    expect(output()).toMatch(/Used 3 turns, spent \d+ microdollars\./);
    expect(output()).toContain(`Try it at ${address}/`);
  });

  test.skipIf(!hasChromium)(
    'hears a microphone in a browser, plays its answers, and explains what is left and why it stops',
    async () => {
      const browser = await openListeningChromium(someoneSpeaks());
      onTestFinished(() => browser.close());
      const page = await browser.newPage();
      const asked = watch(page);
      const sockets: { url: string; sent: string[]; got: string[] }[] = [];
      page.on('websocket', (socket) => {
        const own = { url: socket.url(), sent: [] as string[], got: [] as string[] };
        sockets.push(own);
        socket.on('framesent', ({ payload }) => own.sent.push(String(payload)));
        socket.on('framereceived', ({ payload }) => own.got.push(String(payload)));
      });
      // Sound that is played cannot be heard here, so each piece is counted where it is handed to the loudspeaker.
      await page.addInitScript(`{
        globalThis.played = 0;
        const { start } = AudioBufferSourceNode.prototype;
        AudioBufferSourceNode.prototype.start = function (when) {
          globalThis.played += this.buffer.duration;
          return start.call(this, when);
        };
      }`);
      await page.goto(served.address);
      await page.click('button');
      await page.waitForSelector('li.refused', { timeout: 120_000 });
      expect(await page.textContent('li.refused')).toBe(
        'uses_exhausted: This URL has no uses left (max_uses 3). Issue a new URL.',
      );
      await page.waitForSelector('button:text("Talk")');
      expect(await page.textContent('#left')).toMatch(
        /^0 of 3 answers left\. Spent \$0\.0\d{5} of \$2\.000000\.$/,
      );
      const answers = await page.locator('li.answer').allTextContents();
      expect(answers).toContainEqual(expect.stringMatching(/You spoke for \d\.\d seconds\.$/));
      expect(Number(await page.evaluate('played'))).toBeGreaterThan(2);
      expect(await audit(page)).toEqual([]);
      await takePicture(page, 'voice-chat', 640);

      // The page sends sound and nothing else: the gateway begins each answer.
      expect(sockets).toHaveLength(1);
      for (const sent of sockets[0]?.sent ?? [])
        expect(sent).toMatch(/^\{"type":"input_audio_buffer\.append"/);
      expect(sockets[0]?.got.filter((got) => got.includes('"response.done"'))).toHaveLength(3);
      expect(new URL(sockets[0]?.url ?? '').host).toBe(`127.0.0.1:${started.gatewayPort}`);
      expect(JSON.stringify([asked, sockets])).not.toContain('sk-sandbox');
    },
  );
});

/** A file in which someone says three syllables, and is silent for two seconds. */
function someoneSpeaks(): string {
  const syllable = Buffer.concat([tone(250, 4), Buffer.alloc(48 * 100)]);
  const sound = Buffer.concat([syllable, syllable, syllable, Buffer.alloc(48 * 2_000)]);
  const head = Buffer.alloc(44);
  head.write('RIFF    WAVEfmt ');
  head.writeUInt32LE(36 + sound.length, 4);
  // The length of what follows, PCM, one channel, 24,000 samples of 2 bytes a second.
  for (const [at, value] of [
    [16, 16],
    [24, 24_000],
    [28, 48_000],
  ] as const)
    head.writeUInt32LE(value, at);
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [32, 2],
    [34, 16],
  ] as const)
    head.writeUInt16LE(value, at);
  head.write('data', 36);
  head.writeUInt32LE(sound.length, 40);
  const folder = mkdtempSync(join(tmpdir(), 'presign-voice-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'speech.wav'), Buffer.concat([head, sound]));
  return join(folder, 'speech.wav');
}

/** Sends a message from the page, and waits for the whole answer. */
async function say(page: Page, content: string): Promise<string | null> {
  await page.fill('input', content);
  await page.click('button');
  await page.waitForSelector('#answer.done');
  return page.textContent('#answer');
}
