// Writes the wheel and the sdist of this package into a folder: node build.mjs FOLDER
// It needs Node alone. The same sources give the same bytes, so a version never changes once it is served.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32, gzipSync } from 'node:zlib';

const HERE = import.meta.dirname;
const read = (path) => readFileSync(join(HERE, path));

/** The files of the package for pip, by name. */
export function pythonPackages() {
  const toml = readToml(String(read('pyproject.toml')));
  const { name, version } = toml.project;
  const stem = `${name.replaceAll('-', '_')}-${version}`;
  const metadata = Buffer.from(metadataOf(toml));
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
function metadataOf({ project, 'project.optional-dependencies': extras }) {
  const lines = [
    ['Metadata-Version', '2.4'],
    ['Name', project.name],
    ['Version', project.version],
    ['Summary', project.description],
    ['License-Expression', project.license],
    ['License-File', 'LICENSE'],
    ['Keywords', project.keywords.join(',')],
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

/** Stored, because the bytes that zlib writes differ between versions and machines. */
function zip(files) {
  const locals = [];
  const central = [];
  let offset = 0;
  for (const [path, bytes] of files) {
    const name = Buffer.from(path);
    const [flags, stored, time, day] = [0x0800, 0, 0, 0x21];
    const common = [u16(20), u16(flags), u16(stored), u16(time), u16(day), u32(crc32(bytes))];
    const sizes = [u32(bytes.length), u32(bytes.length), u16(name.length), u16(0)];
    const local = Buffer.concat([u32(0x04034b50), ...common, ...sizes, name, bytes]);
    // Made on Unix: a file that all may read.
    const rest = [u16(0), u16(0), u16(0), u32(0o100644 * 0x10000), u32(offset), name];
    central.push(u32(0x02014b50), u16(0x0314), ...common, ...sizes, ...rest);
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const count = u16(files.length);
  const end = [u32(0x06054b50), u16(0), u16(0), count, count, u32(directory.length), u32(offset), u16(0)];
  return Buffer.concat([...locals, directory, ...end]);
}

const u16 = (number) => Buffer.from(Uint16Array.of(number).buffer);
const u32 = (number) => Buffer.from(Uint32Array.of(number).buffer);

function tarGz(files) {
  const blocks = files.flatMap(([path, bytes]) => [
    tarHeader(path, bytes.length),
    bytes,
    Buffer.alloc(-bytes.length & 511),
  ]);
  const archive = gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]), { level: 0 });
  // The operating system: unknown.
  archive[9] = 255;
  return archive;
}

/** POSIX ustar. */
function tarHeader(path, size) {
  const header = Buffer.alloc(512);
  const octal = (number, digits) => number.toString(8).padStart(digits, '0');
  header.write(path, 0);
  header.write(octal(0o644, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(315_532_800, 11), 136);
  header.write('        0', 148);
  header.write('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return header;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = resolve(process.argv[2] ?? 'dist');
  mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of pythonPackages()) {
    writeFileSync(join(folder, name), bytes);
    console.log(join(folder, name));
  }
}
