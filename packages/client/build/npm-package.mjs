// The package for npm: compiled code and its types, as `npm install` takes them from an address or a file.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'rolldown/utils';
import { tarGz } from '../../client-python/archives.mjs';

const HERE = join(import.meta.dirname, '..');
const read = (path) => readFileSync(join(HERE, path));

/**
 * The file of the package and its name. The same sources give the same bytes.
 * @param repository the address of the repository that a release comes from
 */
export function npmPackage(repository) {
  const manifest = manifestOf(JSON.parse(String(read('package.json'))), repository);
  const files = [
    ['LICENSE', read('../../LICENSE')],
    ['README.md', read('README.md')],
    ['bin/presign.js', read('bin/presign.js'), 0o755],
    ...compiled(),
    ['package.json', Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)],
  ];
  const archive = tarGz(files.map(([path, ...rest]) => [`package/${path}`, ...rest]));
  return [`presign-client-${manifest.version}.tgz`, archive];
}

/** The fields that a registry and npm read. What the repository needs to develop it stays there. */
function manifestOf({ name, version, description, keywords, license, type, engines, bin }, repository) {
  const address = repository && {
    repository: { type: 'git', url: `git+${repository}.git`, directory: 'packages/client' },
    homepage: `${repository}#readme`,
    bugs: `${repository}/issues`,
  };
  const entry = { types: './dist/src/index.d.ts', default: './dist/src/index.js' };
  return {
    ...{ name, version, description, keywords, license, ...address, type, sideEffects: false, engines, bin },
    exports: { '.': entry, './package.json': './package.json' },
    publishConfig: { access: 'public' },
  };
}

/** The sources as JavaScript with its types. Each file is compiled by itself, so `tsc` checks it with `isolatedDeclarations`. */
function compiled() {
  return ['generated', 'src'].flatMap((folder) =>
    readdirSync(join(HERE, folder))
      .sort()
      .flatMap((name) => compile(`${folder}/${name}`)),
  );
}

function compile(path) {
  const typescript = { declaration: {}, onlyRemoveTypeImports: true, rewriteImportExtensions: 'rewrite' };
  const options = { target: 'es2023', tsconfig: false, typescript };
  const { code, declaration, errors } = transformSync(path, String(read(path)), options);
  if (errors.length > 0) throw new Error(`the client does not compile: ${errors.join('\n')}`);
  const written = `dist/${path.replace(/\.ts$/, '')}`;
  return [
    [`${written}.d.ts`, Buffer.from(declaration)],
    [`${written}.js`, Buffer.from(code)],
  ];
}
