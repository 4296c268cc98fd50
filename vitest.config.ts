import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = import.meta.dirname;

const PACKAGES = [
  'apps/console',
  'apps/gateway',
  'apps/issuer',
  'infra/local',
  'packages/client',
  'packages/crypto',
  'packages/limits',
  'packages/outbound',
  'packages/providers',
  'packages/schema',
  'packages/service',
  'test',
];

/** In a package's own folder, `vitest run` runs that package's tests. */
const here = PACKAGES.filter((folder) => `${process.cwd()}/`.startsWith(`${join(root, folder)}/`));

/** Soak, fuzz, chaos, every split point: `pnpm test:all` runs them. Each has a short version in `pnpm test`. */
const LONG = '**/*.long.test.ts';
const all = Boolean(process.env.TEST_ALL);

/** Clients in other languages, which these tests install first: `pnpm test:foreign` runs them, and them alone. */
const FOREIGN = '**/*.foreign.test.ts';
const foreign = Boolean(process.env.TEST_FOREIGN);

/** Proves the same on every engine. `.ci/run` has just run it on the embedded ones when it comes to the servers. */
const ANY_ENGINE = [
  '{browser,console,deploy,docs,knowledge,prices,sdk}/**/!(*.long|operate).test.ts',
  'attacks/!(endless-answers|issuer|replays).test.ts',
  'client/{give,mcp-config,read-commands,retries,sdk-options}.test.ts',
  'e2e/{ipv6,proxy-logs,public-path,sample,traces}.test.ts',
  'gateway/!(close|last-call|leases|models.security|redis-full|redis-outage|role-switch|seeds|slow-clock|uses).test.ts',
  'issuer/{authority.security,openapi}.test.ts',
  'mcp/!(after-expiry|clients-places|limits|oauth|places|redis-outage|refunds|rounds|sticky|tasks.security).test.ts',
  'spend/{answers,betas.security,counted,declared-harmless,evasion.security,images-speech,narrowed,rerank}.test.ts',
];
const STORES = ['packages/limits', 'test'];
const storesAlone = Boolean(process.env.TEST_STORES_ALONE);

/** The files of a package without stores that have larger counts under TEST_ALL: the others have just run. */
function largerCounts(folder: string): string[] {
  return readdirSync(join(root, folder), { encoding: 'utf8', recursive: true })
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'))
    .filter((file) => readFileSync(join(root, folder, file), 'utf8').includes('TEST_ALL'));
}

const globalSetup = [
  join(root, 'test/harness/prepare.ts'),
  ...(foreign ? [join(root, 'test/foreign/install.ts')] : []),
];

/** Keeps a package's files together, because a worker serves one package and then ends. */
class ByPackage extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => b.project.name.localeCompare(a.project.name));
  }
}

export default defineConfig({
  test: {
    projects: (here.length > 0 ? here : PACKAGES).map((folder) => ({
      extends: true,
      test: {
        name: folder,
        root: join(root, folder),
        ...(folder === 'test' ? { globalSetup } : {}),
        ...(foreign ? { include: [FOREIGN] } : {}),
        ...(storesAlone && !STORES.includes(folder) ? { include: largerCounts(folder) } : {}),
      },
    })),
    exclude: [
      '**/node_modules/**',
      '**/dist/**',
      ...(all ? [] : [LONG]),
      ...(foreign ? [] : [FOREIGN]),
      ...(storesAlone ? ANY_ENGINE : []),
    ],
    // A worker keeps its modules and its engines for all files of a package that it runs.
    isolate: false,
    // Many tests wait more than they compute. `test/harness/stores.ts` keeps three apart on shared servers.
    maxWorkers: process.env.TEST_REDIS_URL ? 3 : 4,
    sequence: { sequencer: ByPackage },
    // Only a test that hangs meets these: no machine is so busy.
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
});
