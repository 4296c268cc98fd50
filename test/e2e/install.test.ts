import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepareDataFolder } from '../harness/embedded-template.ts';
import { freePort } from '../harness/free-port.ts';
import { until } from '../harness/gateway-process.ts';
import { removeFolder } from '../harness/remove-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Folders that tools write, which a clone does not have. */
const WRITTEN = new Set(['node_modules', 'dist', '.git', '.presign', '.turbo']);

/** A folder like a fresh clone. */
let clone: string;
let scripts: Record<string, string>;

beforeAll(() => {
  clone = join(mkdtempSync(join(tmpdir(), 'presign-')), 'clone');
  cpSync(ROOT, clone, { recursive: true, filter: (path) => !WRITTEN.has(basename(path)) });
  scripts = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: typeof scripts })
    .scripts;
});
afterAll(() => removeFolder(clone));

/** Runs a script as pnpm does, without its name for the program that is run. */
const install = (script: string, more: NodeJS.ProcessEnv = {}) => {
  const env = { ...process.env, PNPM_CONFIG_OFFLINE: 'true', ...more };
  const { status, stderr } = spawnSync('sh', ['-c', scripts[script] ?? 'false'], { cwd: clone, env });
  expect(status, String(stderr)).toBe(0);
};

/** An install would fail. Where nothing is missing there is none, so that a restart needs no network. */
const WITHOUT_PNPM = { npm_execpath: '/nowhere/pnpm.cjs' };

const installed = () => readdirSync(join(clone, 'node_modules/.pnpm'));

test('`start` installs what it needs, without the tools for tests and builds, and runs with it', async () => {
  install('prestart');
  const names = installed();
  expect(names.length).toBeGreaterThan(100);
  expect(names.length).toBeLessThan(250);
  expect(
    names.filter((name) =>
      /^(vitest|typescript|@typescript|turbo|tiktoken|@aws-sdk|@biomejs|openai)/.test(name),
    ),
  ).toEqual([]);
  // The clients are built with the compiler that the console has.
  expect(names.filter((name) => /^rolldown@/.test(name))).toHaveLength(1);
  install('prestart', WITHOUT_PNPM);
  const dataDir = join(clone, '.presign');
  await prepareDataFolder(dataDir);
  const [issuerPort, gatewayPort] = [await freePort(), await freePort()];
  const running = spawn('sh', ['-c', `exec ${scripts.start}`], {
    cwd: clone,
    env: {
      PATH: process.env.PATH,
      SAMPLE_DATA: 'false',
      ISSUER_PORT: String(issuerPort),
      GATEWAY_PORT: String(gatewayPort),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(running, 'exit');
  await until(running, 'Presign is ready.');
  running.kill('SIGINT');
  expect(await exited).toEqual([0, null]);
});

test('the other scripts install the rest, and a later start removes nothing', () => {
  const others = Object.keys(scripts).filter((name) => name.startsWith('pre') && name !== 'presign');
  for (const name of Object.keys(scripts)) if (!others.includes(name)) expect(others).toContain(`pre${name}`);
  install('pretest');
  const names = installed();
  install('prestart', WITHOUT_PNPM);
  install('pretest', WITHOUT_PNPM);
  writeFileSync(join(clone, 'package.json'), readFileSync(join(clone, 'package.json')));
  expect(() => install('prestart', WITHOUT_PNPM)).toThrow();
  install('prestart');
  expect(installed()).toEqual(names);
  expect(existsSync(join(clone, 'node_modules/vitest'))).toBe(true);
});
