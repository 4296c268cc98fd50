// The package for npm: compiled code and its types, as `npm install` takes them from an address or a file.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
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

function compiled() {
  const folder = mkdtempSync(join(tmpdir(), 'presign-client-'));
  try {
    const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
    const args = [tsc, '-p', join(HERE, 'tsconfig.dist.json'), '--outDir', folder];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`the client does not compile: ${stdout}`);
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(js|d\.ts)$/.test(name))
      .sort()
      .map((name) => [`dist/${name.split(sep).join('/')}`, readFileSync(join(folder, name))]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
