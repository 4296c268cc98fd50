// Bundles the app whose folder this runs in into dist/: one file for each entry point, and what it reads at run time.
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { build } from 'esbuild';

const app = process.cwd();
const dist = resolve(app, 'dist');
const packages = resolve(import.meta.dirname, '../../packages');

/** The entry points that an app may have: what a container of it may run. */
const ENTRY_POINTS = ['main', 'migrate', 'keys', 'cli'];

/** CommonJS packages call `require` for Node's own modules; an ES module has none. */
const REQUIRE = `import { createRequire as createRequireOfBundle } from 'node:module';
const require = createRequireOfBundle(import.meta.url);`;

/** In the bundle the migrations lie beside the code, not one folder above it. */
const migrationsBesideCode = {
  name: 'migrations-beside-code',
  setup({ onLoad }) {
    onLoad({ filter: /packages[/\\]schema[/\\]src[/\\]database\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const contents = source.replace("new URL('../migrations', ", "new URL('./migrations', ");
      if (contents === source) throw new Error(`${path} no longer says where the migrations lie`);
      return { contents, loader: 'ts' };
    });
  },
};

const { scripts } = JSON.parse(await readFile(resolve(app, 'package.json'), 'utf8'));
const entryPoints = ENTRY_POINTS.filter((name) => name === 'main' || name in scripts).map((name) =>
  resolve(app, `src/${name}.ts`),
);

await rm(dist, { recursive: true, force: true });
await build({
  entryPoints,
  outdir: dist,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  banner: { js: REQUIRE },
  sourcemap: true,
  legalComments: 'eof',
  logLevel: 'warning',
  plugins: [migrationsBesideCode],
});
await cp(resolve(packages, 'limits/src/lua'), resolve(dist, 'lua'), { recursive: true });
await cp(resolve(packages, 'schema/migrations'), resolve(dist, 'migrations'), { recursive: true });
// The code is ES modules wherever dist/ is copied to.
await writeFile(resolve(dist, 'package.json'), '{ "type": "module" }\n');
