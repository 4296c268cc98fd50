/** Packages that other packages may import; these import none themselves. */
const BASE = 'schema';

/** A rule that names the folder it is about with $1, the first group of `from`. */
const forbid = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });

/**
 * Who may import whom: apps → packages, in one direction and without circles. `pnpm check` runs it;
 * `test/boundaries.test.ts` shows that each rule catches what it is for.
 * @type {import('dependency-cruiser').IConfiguration}
 */
export default {
  forbidden: [
    forbid(
      'no-circle',
      'Two files that need each other are one file, or lack a third.',
      {},
      { circular: true },
    ),
    forbid(
      'no-app-in-an-app',
      'The services share packages and nothing else.',
      { path: '^apps/([^/]+)/' },
      { path: '^apps/', pathNot: '^apps/$1/' },
    ),
    forbid(
      'app-is-for-start',
      'Types that the folders of an app share are in deps.ts: app.ts imports the folders.',
      { path: '^apps/[^/]+/src/', pathNot: '^apps/[^/]+/src/(start|index)\\.ts$' },
      { path: '^apps/[^/]+/src/app\\.ts$' },
    ),
    forbid(
      'packages-know-no-app',
      'Apps import packages, never the other way.',
      { path: '^packages/' },
      { path: '^(apps|infra|test|bench|examples)/' },
    ),
    forbid(
      'source-knows-no-test',
      'Tests import the source, never the other way.',
      { path: '^(apps|packages|infra)/([^/]+)/src/' },
      { path: '^(test|bench|examples)/|^(apps|packages|infra)/[^/]+/test/' },
    ),
    forbid(
      'limits-and-providers-import-schema-alone',
      'Each stays usable, and testable, without the other.',
      { path: '^packages/(limits|providers)/src/' },
      { path: '^packages/', pathNot: `^packages/($1|${BASE})/` },
    ),
    forbid(
      'base-imports-no-package',
      'What all others stand on stands on nothing here.',
      { path: `^packages/(client|crypto|outbound|telemetry|${BASE})/src/` },
      { path: '^packages/', pathNot: '^packages/$1/' },
    ),
    forbid(
      'members-by-name',
      'Another member of the workspace is imported by the name and exports of its package.json.',
      { path: '^((?:apps|packages|infra)/[^/]+)/src/' },
      { path: '^(apps|packages|infra)/', pathNot: '^$1/', dependencyTypes: ['local'] },
    ),
    forbid(
      'declared-dependencies',
      'A source file imports only what the package.json of its package has under dependencies.',
      { path: '^(apps|packages|infra)/[^/]+/src/' },
      { dependencyTypes: ['npm-dev', 'npm-optional', 'npm-no-pkg', 'npm-unknown'] },
    ),
    // pnpm links what a package.json declares, and nothing else.
    forbid(
      'resolvable',
      'Every import leads to a file of a declared dependency.',
      {},
      { couldNotResolve: true },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(dist|node_modules/\\.cache)/' },
    // Imports of types count, too: those alone can tie two folders together.
    tsPreCompilationDeps: true,
    combinedDependencies: false,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'node', 'default'],
      mainFields: ['types', 'module', 'main'],
      extensions: ['.ts', '.mjs', '.js', '.d.ts', '.json'],
    },
  },
};
