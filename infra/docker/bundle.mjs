// Bundles the app whose folder this runs in into dist/, or into the folder that is its argument: one file for each entry
// point, and what it reads at run time.
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { build } from 'esbuild';

const app = process.cwd();
const dist = resolve(app, process.argv[2] ?? 'dist');
const packages = resolve(import.meta.dirname, '../../packages');

/** The entry points that an app may have: what a container of it may run. */
const ENTRY_POINTS = ['main', 'migrate', 'keys', 'cli'];

/** CommonJS packages call `require` for Node's own modules and look for files beside them; an ES module has neither. */
const REQUIRE = `import { createRequire as createRequireOfBundle } from 'node:module';
const require = createRequireOfBundle(import.meta.url);
const __dirname = import.meta.dirname;`;

/** In the bundle the migrations lie beside the code, not one folder above it. */
const migrationsBesideCode = {
  name: 'migrations-beside-code',
  setup({ onLoad }) {
    onLoad({ filter: /packages[/\\]schema[/\\]src[/\\]migrations\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const contents = source.replace("new URL('../migrations', ", "new URL('./migrations', ");
      if (contents === source) throw new Error(`${path} no longer says where the migrations lie`);
      return { contents, loader: 'ts' };
    });
  },
};

/** What the pages at /docs are made of. `.dockerignore` lets these into the image. */
const DOCS = [
  ...['README.md', 'SECURITY.md', 'CHANGELOG.md', 'packages/providers/README.md'],
  ...['README.md', 'performance.svg', 'adr', 'guides', 'images', 'reference'].map((name) => `docs/${name}`),
];

const { scripts } = JSON.parse(await readFile(resolve(app, 'package.json'), 'utf8'));
const entryPoints = ENTRY_POINTS.filter((name) => name === 'main' || name in scripts).map((name) =>
  resolve(app, `src/${name}.ts`),
);

/** The gateway's worker threads: ours, and the file of piscina that loads it, which piscina looks for beside itself. */
const workers = app.endsWith('gateway')
  ? [
      { in: resolve(app, 'src/limits/lease-thread.ts'), out: 'lease-thread' },
      { in: resolve(app, 'src/workers/worker.ts'), out: 'body-worker' },
      { in: resolve(app, 'node_modules/piscina/dist/worker.js'), out: 'worker' },
    ]
  : [];

await rm(dist, { recursive: true, force: true });
await build({
  entryPoints: [...entryPoints.map((file) => ({ in: file, out: basename(file, '.ts') })), ...workers],
  outdir: dist,
  bundle: true,
  // The worker's two files must share one copy of piscina, by whose symbols they know what to transfer.
  splitting: workers.length > 0,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  banner: { js: REQUIRE },
  sourcemap: true,
  legalComments: 'eof',
  // piscina uses it only where a priority is set for its threads.
  external: ['@napi-rs/nice'],
  logLevel: 'warning',
  plugins: [migrationsBesideCode],
});
// V8 keeps a source with one character beyond Latin-1 in two bytes for each. esbuild escapes none in comments and regular expressions.
for (const name of (await readdir(dist)).filter((each) => each.endsWith('.js'))) {
  const file = resolve(dist, name);
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  await writeFile(file, (await readFile(file, 'utf8')).replace(/[^\0-\x7f]/g, escaped));
}
await cp(resolve(packages, 'limits/src/lua'), resolve(dist, 'lua'), { recursive: true });
if (workers.length > 0) {
  // Workers of the gateway count tokens by these.
  for (const encoding of ['o200k_base', 'cl100k_base']) {
    const name = `${encoding}.tiktoken`;
    await cp(resolve(app, 'node_modules/gpt-tokenizer/data', name), resolve(dist, name));
  }
}
if (app.endsWith('issuer')) {
  // The pages at /docs are made of these.
  const files = resolve(dist, 'docs-files');
  const scalar = 'node_modules/@scalar/api-reference/dist/browser/standalone.js';
  await cp(resolve(app, scalar), resolve(files, 'scalar.js'));
  await cp(resolve(app, 'src/docs/assets'), resolve(files, 'assets'), { recursive: true });
  for (const name of DOCS) await cp(resolve(app, '../..', name), resolve(files, name), { recursive: true });
}
await cp(resolve(packages, 'schema/migrations'), resolve(dist, 'migrations'), { recursive: true });
// The code is ES modules wherever dist/ is copied to.
await writeFile(resolve(dist, 'package.json'), '{ "type": "module" }\n');
