import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { codeIn } from '../docs/fences.ts';
import { type Local, startLocalForDocs } from '../docs/local.ts';
import { expectProgramAsShown, tabbed } from '../docs/tabs.ts';

const { uv, python, openapiLint } = inject('toolchains');
const at = (installed: typeof uv) => ('at' in installed ? installed.at : '');
const HERE = import.meta.dirname;
/** The versions that the client promises. */
const PYTHONS = ['3.10', '3.11', '3.12', '3.13'];
const PACKAGE = join(HERE, '../../packages/client-python');
const [WHEEL, SDIST] = ['presign_client-0.1.0-py3-none-any.whl', 'presign_client-0.1.0.tar.gz'];
const script = (name: string) => join(HERE, 'python', `presign_client_${name}.py`);

let folder: string;
/** The interpreter of a fresh environment with the wheel. */
let fresh: string;
let local: Local;

const build = (into: string) =>
  execFileSync(process.execPath, [join(PACKAGE, 'build.mjs'), join(folder, into)], { encoding: 'utf8' });

/** A program's output. It fails with everything that the program printed. */
async function run(program: string, args: readonly string[], given = ''): Promise<string> {
  const env = { ...process.env, PRESIGN_API_KEY: local.keys.apiKey };
  const running = promisify(execFile)(program, [...args], { cwd: folder, env });
  running.child.stdin?.end(given);
  const { stdout } = await running.catch((error: { stdout: string; stderr: string }) =>
    expect.fail(error.stdout + error.stderr),
  );
  return stdout;
}

/** The packages that the issuer serves. */
const served = () => `http://127.0.0.1:${local.issuerPort}/clients`;

const installed = (interpreter: string, ...args: string[]) =>
  run(at(uv), ['pip', 'install', '--quiet', '--python', interpreter, ...args]);

const metadataIn = (wheel: string) =>
  run(fresh, ['-m', 'zipfile', '-l', wheel]).then((list) => list.match(/^presign_client\S+/gm)?.sort());

test('CI has each version of Python that the client promises', () => {
  const workflow = readFileSync(join(HERE, '../../.github/workflows/ci.yml'), 'utf8');
  const [, set = ''] = /python-version: \|\n((?: +3\.\d+\n)+)/.exec(workflow) ?? [];
  expect(set.trim().split(/\s+/).sort()).toEqual(PYTHONS);
  const classifiers = readFileSync(join(PACKAGE, 'pyproject.toml'), 'utf8').matchAll(
    /:: Python :: (3\.\d+)/g,
  );
  expect(Array.from(classifiers, ([, version]) => version)).toEqual(PYTHONS);
});

describe.skipIf('skipped' in python.client)('the Python client', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'presign-python-'));
    local = await startLocalForDocs({ ALLOW_PRIVATE_UPSTREAMS: 'true' });
    build('dist');
    const guide = readFileSync(join(HERE, '../../docs/guides/python-client.md'), 'utf8');
    writeFileSync(join(folder, 'page.py'), local.here(codeIn(guide, 'python').join('\n')));
    await run('python3', ['-m', 'venv', 'fresh']);
    fresh = join(folder, 'fresh/bin/python');
    const others = await run(at(uv), ['pip', 'freeze', '--quiet', '--python', at(python.client)]);
    writeFileSync(join(folder, 'others.txt'), others);
    await installed(fresh, '-r', 'others.txt');
    await run(fresh, ['-m', 'pip', 'install', '--no-deps', '-r', `${served()}/requirements.txt`]);
  });
  afterAll(async () => {
    await local.close();
    rmSync(folder, { recursive: true });
  });

  test.each([
    ['its guide', (line: string) => local.here(line)],
    ['the index', () => `presign-client --index-url ${served()}/simple/`],
    ['the list', () => `presign-client --no-index --find-links ${served()}/`],
  ])('installs from the issuer with the line of %s', async (_what, argumentsOf) => {
    const guide = readFileSync(join(HERE, '../../docs/guides/python-client.md'), 'utf8');
    const [, requirement = ''] = /pip install "(presign-client.*)"/.exec(guide) ?? [];
    const [wanted = '', ...more] = argumentsOf(requirement).split(' --');
    const options = more.flatMap((each) => `--${each}`.split(' '));
    const again = ['--no-deps', '--force-reinstall', '--no-cache-dir', ...options];
    const said = await run(fresh, ['-m', 'pip', 'install', ...again, wanted]);
    expect(said).toContain('Successfully installed presign-client-0.1.0');
  });

  test('is built by Node alone, with the same bytes each time, and pip finds it complete', async () => {
    build('again');
    for (const name of [WHEEL, SDIST])
      expect(readFileSync(join(folder, 'again', name))).toEqual(readFileSync(join(folder, 'dist', name)));
    expect(await run(fresh, ['-m', 'pip', 'check'])).toContain('No broken requirements');
    const files = await run(fresh, ['-m', 'pip', 'show', '--files', 'presign-client']);
    expect(files).toContain('presign_client/py.typed');
    expect(files).toContain('licenses/LICENSE');
  });

  test('hatchling builds the same wheel from the sdist', async () => {
    const options = ['--quiet', '--no-build-isolation', '--no-deps', '--no-index', '-w', 'hatchling'];
    await run(fresh, ['-m', 'pip', 'wheel', ...options, join('dist', SDIST)]);
    const [ours, theirs] = [join('dist', WHEEL), join('hatchling', WHEEL)];
    expect(await metadataIn(ours)).toEqual(await metadataIn(theirs));
    expect(await run(fresh, ['-c', COMPARE, ours, theirs])).toBe('True True\n');
  });

  test('issues in dollars, and URLs are called, refused, listed, retried and verified: sync and async', async () => {
    const service = [`http://127.0.0.1:${local.issuerPort}`, local.keys.apiKey];
    const vectors = ['{"type":"grant.ended"}', '{"type":"grant.ended","data":{"note":"ü 🙂"}}'].map(
      (payload) => {
        const [secret, sentAt] = [
          `whsec_${Buffer.alloc(32, payload).toString('base64')}`,
          new Date(Date.now() - 301_000),
        ];
        const signature = new Webhook(secret).sign('msg_1', sentAt, payload);
        const stamp = String(Math.floor(sentAt.getTime() / 1000));
        return [
          payload,
          { 'webhook-id': 'msg_1', 'webhook-timestamp': stamp, 'webhook-signature': signature },
          secret,
        ];
      },
    );
    expect(await run(fresh, [script('life'), ...service], JSON.stringify(vectors))).toBe(
      'Presign\nAsyncPresign\n',
    );
  });

  test('does what its guide says, run as one program', async () => {
    const stdout = await run(fresh, ['page.py']);
    expect(
      stdout.split('\n').filter((line) => !/^\S+, sandbox-1: \d calls, \d+ microdollars$/.test(line)),
    ).toEqual([
      expect.stringMatching(/^http:.*\/llm\/t\/.*\/v1\/chat\/completions$/),
      '50000',
      expect.stringContaining('You said: Hello'),
      "['sandbox']",
      expect.stringMatching(/^[\da-f-]{36} 3$/),
      expect.stringMatching(/^[01] calls$/),
      expect.stringMatching(/^400 invalid_request max_uses [\da-f-]{36}$/),
      expect.stringContaining('You said: Hello again'),
      '1',
      '',
    ]);
  });

  // Their TypeScript: test/docs/guides.test.ts.
  test.each(tabbed)('prints in $name what its curl prints', async (tabs) => {
    writeFileSync(join(folder, 'program.py'), local.here(tabs.python));
    await expectProgramAsShown(local, tabs, `cd ${folder} && ${fresh} program.py`);
  });

  describe.each([
    ['mypy', mypy, false],
    ['pyright', pyright, 'skipped' in openapiLint],
  ] as const)('has types, and %s in strict mode', (_checker, check, isMissing) => {
    const options = { skip: isMissing, timeout: 600_000 };
    test('accepts right code and rejects wrong code', options, async () => {
      cpSync(join(PACKAGE, 'src'), join(folder, 'src'), { recursive: true });
      const code = readFileSync(script('types'), 'utf8');
      writeFileSync(join(folder, 'right.py'), code);
      await check('src', 'right.py');
      writeFileSync(join(folder, 'wrong.py'), code.replaceAll(/ {2}# type: ignore.*/g, ''));
      await expect(check('wrong.py')).rejects.toThrow(/\b[78] errors/);
    });
  });

  describe.each(PYTHONS)('on Python %s', (version) => {
    const options = ['venv', '--quiet', '--no-python-downloads', '--python', version];
    const found = spawnSync(at(uv), ['python', 'find', '--no-python-downloads', version]).status === 0;
    // CI sets them all up.
    test.skipIf(!found && !process.env.GITHUB_ACTIONS)(
      'imports, has its types, and its doctests pass',
      async () => {
        await run(at(uv), [...options, version]);
        const interpreter = join(folder, version, 'bin/python');
        await installed(interpreter, '-c', 'others.txt', join('dist', WHEEL));
        expect(await run(interpreter, [script('modules')])).toBe('True True\n');
      },
    );
  });
});

/** Checks files of the folder in strict mode. */
const mypy = (...files: string[]) => run(fresh, ['-m', 'mypy', '--strict', ...files]);

/** The same. It fails if this machine does not have it. */
function pyright(...files: string[]): Promise<string> {
  const rules = { typeCheckingMode: 'strict', reportUnnecessaryTypeIgnoreComment: true };
  const config = { ...rules, include: files, venvPath: '.', venv: 'fresh' };
  writeFileSync(join(folder, 'pyrightconfig.json'), JSON.stringify(config));
  return run(process.execPath, [join(at(openapiLint), 'node_modules/pyright/index.js'), '-p', folder]);
}

/** Whether two wheels have the same metadata, which packaging finds valid, and the same code. */
const COMPARE = `
import sys, zipfile
from packaging.metadata import Metadata
def read(path):
    wheel = zipfile.ZipFile(path)
    return {name: wheel.read(name) for name in wheel.namelist()}
def metadata(files):
    [text] = [text for name, text in files.items() if name.endswith("/METADATA")]
    parsed = Metadata.from_email(text, validate=True)
    fields = {name: getattr(parsed, name) for name in dir(Metadata) if not name.startswith(("_", "from_", "as_"))}
    del fields["metadata_version"]
    fields["requires_dist"] = sorted(map(str, fields["requires_dist"]))
    return {**fields, "keywords": sorted(fields["keywords"]), "provides_extra": sorted(fields["provides_extra"])}
def code(files):
    return {name: text for name, text in files.items() if name.startswith("presign_client/")}
ours, theirs = map(read, sys.argv[1:])
if metadata(ours) != metadata(theirs):
    sys.exit(f"{metadata(ours)}\\n{metadata(theirs)}")
print(code(ours) == code(theirs), len(code(ours)) > 5)
`;
