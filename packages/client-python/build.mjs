// Writes the wheel and the sdist of this package into a folder: node build.mjs FOLDER [REPOSITORY]
// It needs Node alone. The same sources give the same bytes.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tarGz, zip } from './archives.mjs';

const HERE = import.meta.dirname;
const read = (path) => readFileSync(join(HERE, path));

/**
 * The files of the package for pip, by name.
 * @param repository the address of the repository that a release comes from
 */
export function pythonPackages(repository) {
  const toml = readToml(String(read('pyproject.toml')));
  const { name, version } = toml.project;
  const stem = `${name.replaceAll('-', '_')}-${version}`;
  const metadata = Buffer.from(metadataOf(toml, repository));
  const license = read('../../LICENSE');
  const modules = readdirSync(join(HERE, 'src/presign_client'))
    .filter((file) => /\.(py|typed)$/.test(file))
    .sort()
    .map((file) => [`presign_client/${file}`, read(`src/presign_client/${file}`)]);
  const info = `${stem}.dist-info`;
  const wheel = withRecord(info, [
    ...modules,
    [`${info}/METADATA`, metadata],
    [`${info}/WHEEL`, Buffer.from(WHEEL)],
    [`${info}/licenses/LICENSE`, license],
  ]);
  const sources = [
    ['LICENSE', license],
    ['PKG-INFO', metadata],
    ['README.md', read('README.md')],
    ['pyproject.toml', read('pyproject.toml')],
    ...modules.map(([path, bytes]) => [`src/${path}`, bytes]),
  ];
  return new Map([
    [`${stem}-py3-none-any.whl`, zip(wheel)],
    [`${stem}.tar.gz`, tarGz(sources.map(([path, bytes]) => [`${stem}/${path}`, bytes]))],
  ]);
}

const WHEEL = 'Wheel-Version: 1.0\nGenerator: presign\nRoot-Is-Purelib: true\nTag: py3-none-any\n';

/** The tables of pyproject.toml: its values are JSON, and it has no nested ones. */
function readToml(text) {
  const tables = {};
  let table = {};
  for (const [, header, key, value] of text.matchAll(
    /^\[([\w.-]+)\]$|^([\w-]+) = ("[^\n]*"|\[[^\]]*\])$/gm,
  )) {
    if (header === undefined) table[key] = JSON.parse(value);
    else table = tables[header] = {};
  }
  return tables;
}

/** https://packaging.python.org/en/latest/specifications/core-metadata */
function metadataOf({ project, 'project.optional-dependencies': extras }, repository) {
  const lines = [
    ['Metadata-Version', '2.4'],
    ['Name', project.name],
    ['Version', project.version],
    ['Summary', project.description],
    ['License-Expression', project.license],
    ['License-File', 'LICENSE'],
    ['Keywords', project.keywords.join(',')],
    ...(repository ? [['Project-URL', `Repository, ${repository}`]] : []),
    ...project.classifiers.map((each) => ['Classifier', each]),
    ['Requires-Python', project['requires-python']],
    ...project.dependencies.map((each) => ['Requires-Dist', each]),
    ...Object.entries(extras).flatMap(([extra, wanted]) => [
      ['Provides-Extra', extra],
      ...wanted.map((each) => ['Requires-Dist', `${each}; extra == '${extra}'`]),
    ]),
    ['Description-Content-Type', 'text/markdown'],
  ];
  return `${lines.map((line) => line.join(': ')).join('\n')}\n\n${read(project.readme)}`;
}

/** https://packaging.python.org/en/latest/specifications/recording-installed-packages/#the-record-file */
function withRecord(info, files) {
  const path = `${info}/RECORD`;
  const lines = files.map(([name, bytes]) => {
    const hash = createHash('sha256').update(bytes).digest('base64url');
    return `${name},sha256=${hash},${bytes.length}\n`;
  });
  return [...files, [path, Buffer.from(`${lines.join('')}${path},,\n`)]];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = resolve(process.argv[2] ?? 'dist');
  mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of pythonPackages(process.argv[3])) {
    writeFileSync(join(folder, name), bytes);
    console.log(join(folder, name));
  }
}
