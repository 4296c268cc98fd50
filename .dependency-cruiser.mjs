/** Apps and packages where files directly under src stand both above and below the folders. */
const NO_GROUND_YET = ['apps/gateway', 'packages/providers'];

const allBut = (members) => `(?!(?:${members.join('|')})/)(?:apps|packages|infra)/[^/]+`;
const ONE_WAY = '(?:apps|packages|infra)/[^/]+';
const GROUNDED = allBut(NO_GROUND_YET);

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
      'limits-and-providers-import-schema-and-service-alone',
      'Each stays usable, and testable, without the other.',
      { path: '^packages/(limits|providers)/src/' },
      { path: '^packages/', pathNot: '^packages/($1|schema|service)/' },
    ),
    forbid(
      'base-imports-no-package',
      'What all others stand on stands on nothing here.',
      { path: '^packages/(client|crypto|outbound|schema)/src/' },
      { path: '^packages/', pathNot: '^packages/$1/' },
    ),
    forbid(
      'service-imports-schema-alone',
      'Every service is made of it, whatever the service does.',
      { path: '^packages/service/src/' },
      { path: '^packages/', pathNot: '^packages/(service|schema)/' },
    ),
    // Of a folder's imports, dependency-cruiser leaves out those below it, and so sees no circle through them or through a file at
    // the root. The three rules after this one forbid these.
    {
      ...forbid(
        'folders-one-way',
        'Two folders that need each other are one folder, or lack a third. `pnpm arrows` names the files.',
        { path: `^${ONE_WAY}/src/` },
        { circular: true },
      ),
      scope: 'folder',
    },
    forbid(
      'folder-below-its-folder',
      'A folder imports what is in the folders inside it, never the other way.',
      { path: `^(${GROUNDED})/src/(.+)/[^/]+/[^/]+$` },
      { path: '^$1/src/$2/[^/]+$' },
    ),
    forbid(
      'root-of-an-app-composes',
      'Files directly under src put the folders together. What a folder needs is in a folder.',
      { path: `^((?!packages)${GROUNDED})/src/.+/` },
      { path: '^$1/src/[^/]+$' },
    ),
    forbid(
      'root-of-a-package-is-its-ground',
      'Files directly under src stand below the folders; index.ts alone exports from them.',
      { path: `^((?=packages)${GROUNDED})/src/[^/]+$`, pathNot: '/index\\.ts$' },
      { path: '^$1/src/.+/' },
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
