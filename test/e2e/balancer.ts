import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import { expect } from 'vitest';
import { codeIn } from '../docs/fences.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';

/** Sockets outlive a worker's settings, so none waits for its end. */
type Staying = 'sockets stay';

/** A load balancer in a process of its own. */
export type Balancer = {
  readonly url: string;
  /** Takes the gateway at this port out before it stops, if the load balancer does not see that by itself. */
  readonly leaves: (port: string, stay?: Staying) => Promise<void>;
  /** Resolves when it sends requests to the gateway at this port again. */
  readonly sees: (port: string, stay?: Staying) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Where a program is. `TEST_NGINX` and `TEST_HAPROXY` choose others than those of the system. */
export const installed = (name: string) =>
  process.env[`TEST_${name.toUpperCase()}`] ??
  ['/usr/sbin', '/usr/bin', '/usr/local/sbin'].map((dir) => join(dir, name)).find(existsSync);

/** Load balancers and their programs. Undefined where it is not installed. */
export const balancers = ['haproxy', 'nginx'].map((name) => [name, installed(name)] as const);

/** Starts a load balancer before two gateways, with the settings that the operator guide gives. */
export async function startBalancer(
  name: string,
  program: string | undefined,
  gateways: readonly URL[],
): Promise<Balancer> {
  if (name === 'haproxy') return startProxy(gateways.map(({ host }) => host));
  const port = await freePort();
  const ports = gateways.map((gateway) => gateway.port);
  const url = `http://127.0.0.1:${port}`;
  const conf = (dir: string) => nginxConf(dir, port, ports);
  const nginx = await runBalancer(name, program, conf, `${url}/healthz`);
  const [, takeOut = '', putBack = ''] = codeInGuide();
  const run = (commands: string, gateway: string, stay?: Staying) =>
    reloadNginx(nginx, commands, gateway, stay);
  return {
    url,
    close: nginx.close,
    leaves: (gateway, stay) => run(takeOut, gateway, stay),
    sees: async (gateway, stay) => {
      await isReady(gateway);
      await run(putBack, gateway, stay);
    },
  };
}

/** Runs commands of the guide for a gateway, and waits until there is a worker with the new settings, and the old one has ended. */
async function reloadNginx(
  { file, dir, child }: Running,
  commands: string,
  port: string,
  stay?: Staying,
): Promise<void> {
  const [sed = '', reload] = commands.trim().split('\n');
  expect(reload).toBe('nginx -s reload');
  const own = sed.replace('10.0.0.1:8788', `127.0.0.1:${port}`).replace(GUIDE_FILE, file);
  const before = readFileSync(file, 'utf8');
  const logged = (text: RegExp) => readFileSync(join(dir, 'error.log'), 'utf8').match(text)?.length;
  const [begun, ended] = [logged(BEGUN), logged(ENDED)];
  execFileSync('sh', ['-c', own]);
  expect(readFileSync(file, 'utf8')).not.toBe(before);
  child.kill('SIGHUP');
  await eventually(async () => logged(BEGUN) !== begun);
  if (!stay) await eventually(async () => logged(ENDED) !== ended);
}

const BEGUN = /start worker process \d+/g;
const ENDED = /worker process \d+ exited/g;

export type ComposeProxy = Balancer & {
  /** Whether it uses each of the two gateways. */
  readonly uses: () => Promise<boolean[]>;
  readonly printed: () => string;
};

/**
 * Starts the proxy of `infra/compose.yaml` before two gateways.
 * @param gateways their addresses, `host:port`
 * @param resolver the name server that it asks, `host:port`
 */
export async function startProxy(
  [first = '', second = '']: readonly string[],
  resolver = '127.0.0.1:1',
): Promise<ComposeProxy> {
  const [port, status] = [await freePort(), await freePort()];
  const env = {
    GATEWAY_BIND: `127.0.0.1:${port}`,
    GATEWAY_1: first,
    GATEWAY_2: second,
    ISSUER_BIND: `127.0.0.1:${await freePort()}`,
    ISSUER: '127.0.0.1:1',
    STATUS_BIND: `127.0.0.1:${status}`,
    RESOLVER: resolver,
  };
  const file = fileURLToPath(new URL('../../infra/haproxy.cfg', import.meta.url));
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child = spawn(installed('haproxy') ?? 'haproxy', ['-f', file], { stdio: [...stdio], env });
  let printed = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    printed += String(chunk);
  });
  await answers(`http://127.0.0.1:${status}/healthz`);
  const uses = async () => {
    const { body } = await request(`http://127.0.0.1:${status}/servers;csv`);
    const rows = (await body.text()).split('\n').filter((row) => /^gateways,gateway-\d/.test(row));
    return rows.map((row) => row.split(',')[17] === 'UP');
  };
  return {
    url: `http://127.0.0.1:${port}`,
    uses,
    printed: () => printed,
    leaves: async () => {},
    // A gateway that has started is ready. The proxy takes it back at its next probe.
    sees: async (gateway) => {
      await isReady(gateway);
      await eventually(async () => (await uses()).every(Boolean));
    },
    close: () => stop(child),
  };
}

type Running = {
  readonly child: ChildProcess;
  /** Its settings. */
  readonly file: string;
  readonly dir: string;
  readonly close: () => Promise<void>;
};

/** Starts a load balancer with the settings that `conf` makes for a folder, and waits until `probe`, if any, is answered. */
export async function runBalancer(
  name: string,
  program: string | undefined,
  conf: (dir: string) => string,
  probe: string | undefined,
): Promise<Running> {
  const dir = mkdtempSync(join(tmpdir(), 'presign-balancer-'));
  const file = join(dir, `${name}.conf`);
  writeFileSync(file, conf(dir));
  const args = name === 'haproxy' ? ['-f', file] : ['-c', file, '-p', dir];
  const child = spawn(program ?? name, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (probe !== undefined) await answers(probe);
  return { child, file, dir, close: () => stop(child) };
}

async function stop(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

async function isReady(port: string): Promise<void> {
  await answers(`http://127.0.0.1:${port}/readyz`);
}

const answers = (url: string) =>
  eventually(() =>
    request(url).then(
      async ({ statusCode, body }) => {
        await body.dump();
        return statusCode === 200 || undefined;
      },
      () => undefined,
    ),
  );

const GUIDE = new URL('../../docs/guides/operate/load-balancers.md', import.meta.url);
/** The file of settings in the guide. */
const GUIDE_FILE = '/etc/nginx/conf.d/presign.conf';

/** The settings of nginx, and the commands that take a gateway out and put it back. */
const codeInGuide = () => {
  const text = readFileSync(GUIDE, 'utf8');
  return [...codeIn(text, ''), ...codeIn(text, 'sh').filter((code) => code.includes('nginx'))];
};

/** The line that the guide adds for newer versions, if this is one. An older nginx refuses it. */
export function lineForNewer(): string {
  const found = /From nginx ([\d.]+) on, add\s+`([^`]+)`/.exec(readFileSync(GUIDE, 'utf8'));
  const [, since = '', line = ''] = found ?? [];
  const { stderr } = spawnSync(installed('nginx') ?? 'nginx', ['-v'], { encoding: 'utf8' });
  const numbers = (version: string) =>
    version
      .split('.')
      .map((part) => part.padStart(4, '0'))
      .join('.');
  const has = /nginx\/([\d.]+)/.exec(stderr)?.[1] ?? '0';
  if (line === '') throw new Error('the guide has no line for a newer nginx');
  return numbers(has) >= numbers(since) ? line : '';
}

/** The settings of the operator guide, with other addresses and folders. */
export function nginxConf(dir: string, port: number, [first = '', second = '']: readonly string[]): string {
  const [settings = ''] = codeInGuide();
  const addresses = [
    ['10.0.0.1:8788', `127.0.0.1:${first}`],
    ['10.0.0.2:8788', `127.0.0.1:${second}`],
    ['listen 8080', `listen 127.0.0.1:${port}`],
    ['/var/log/nginx', dir],
  ] as const;
  for (const [shown] of addresses)
    if (!settings.includes(shown)) throw new Error(`the guide has no ${shown}`);
  const here = addresses
    .reduce((text, [shown, own]) => text.replace(shown, own), settings)
    .replace('server {\n', `server {\n  ${lineForNewer()}\n`);
  return `
daemon off; pid ${dir}/nginx.pid; error_log ${dir}/error.log notice; worker_processes 1;
events { worker_connections 1024; }
http {
  client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f;
  uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
${here}}
`;
}
