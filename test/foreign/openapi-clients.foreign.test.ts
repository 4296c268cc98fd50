import { execFile, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Local, startLocalForDocs } from '../docs/local.ts';

const { openapiLint, oapiCodegen, openapiJava, python } = inject('toolchains');
const HERE = import.meta.dirname;
const DOCUMENT = join(HERE, '../../docs/reference/openapi.json');
const at = (installed: typeof openapiLint) => ('at' in installed ? installed.at : '');

let folder: string;
let local: Local;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'presign-openapi-'));
  local = await startLocalForDocs();
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program while the services of this process answer it. */
async function calls(program: string, args: readonly string[], cwd: string): Promise<string> {
  const key = readFileSync(join(local.folder, '.presign/api-key'), 'utf8').trim();
  const service = [`http://127.0.0.1:${local.issuerPort}`, key];
  const { stdout } = await promisify(execFile)(program, [...args, ...service], { cwd }).catch(
    (error: { stdout: string; stderr: string }) => expect.fail(error.stdout + error.stderr),
  );
  return stdout;
}

/** An error with every optional part. */
const ERROR = JSON.stringify({
  error: {
    code: 'policy_forbids',
    message: 'A.',
    type: 'permission_error',
    param: 'models[0]',
    request_id: '0d9c8b7a-6f5e-4d3c-8b2a-190807060504',
    problems: [{ param: 'models[0]', message: 'A.' }],
    violations: ['one'],
  },
});

/** Names that a person would not choose. */
function madeUp(names: readonly string[]): string[] {
  expect(names.length).toBeGreaterThan(100);
  return names.filter((name) => name.length > 43 || /type_?\d|additional_?propert|_item$|Item$/i.test(name));
}

describe.skipIf('skipped' in oapiCodegen)('Go, by oapi-codegen', () => {
  let own: string;
  let code: string;
  beforeAll(() => {
    own = join(folder, 'go');
    cpSync(join(HERE, 'openapi/go'), own, { recursive: true });
    mkdirSync(join(own, 'api'));
    const options = ['-generate', 'types,client', '-package', 'api', DOCUMENT];
    const made = spawnSync(at(oapiCodegen), options, { encoding: 'utf8', maxBuffer: 2 ** 26 });
    expect(made.status, made.stderr).toBe(0);
    code = made.stdout;
    writeFileSync(join(own, 'api/api.go'), code);
    const built = spawnSync('go', ['build', '-o', 'client', '.'], { cwd: own, encoding: 'utf8' });
    expect(built.status, built.stderr).toBe(0);
  }, 120_000);

  test('has natural names', () => {
    expect(madeUp(Array.from(code.matchAll(/^type (\w+)/gm), ([, name = '']) => name))).toEqual([]);
  });

  test('reads every error as one type', () => {
    const structs = Array.from(code.matchAll(/^type (\w*Error\w*) struct/gm), ([, name]) => name);
    expect(structs).toEqual(['Error', 'ErrorDetails']);
    const run = spawnSync(join(own, 'client'), { encoding: 'utf8', input: ERROR });
    expect([run.stdout, run.stderr]).toEqual(['policy_forbids models[0] 1 [one]\n', '']);
  });

  test('issues a URL and lists it', async () => {
    expect(await calls(join(own, 'client'), [], own)).toBe('1 true\n');
  });
});

describe.skipIf('skipped' in python.openapi)('Python, by openapi-python-client', () => {
  let own: string;
  beforeAll(() => {
    own = join(folder, 'python');
    mkdirSync(own);
    const config = join(folder, 'config.yaml');
    writeFileSync(config, 'package_name_override: presign_api\npost_hooks: []\n');
    const generator = join(at(python.openapi), '../openapi-python-client');
    const target = ['--meta', 'none', '--output-path', join(own, 'presign_api')];
    const options = ['generate', '--path', DOCUMENT, '--config', config, ...target];
    const made = spawnSync(generator, options, { encoding: 'utf8' });
    expect([made.status, made.stdout], made.stderr).toEqual([0, expect.not.stringContaining('Warning')]);
  });

  test('has natural names', () => {
    const modules = readdirSync(join(own, 'presign_api/models')).map((file) => file.replace(/\.py$/, ''));
    expect(madeUp(modules)).toEqual([]);
  });

  test('reads every error as one type', () => {
    const script = [join(HERE, 'python/openapi_error.py'), own];
    const run = spawnSync(at(python.openapi), script, { encoding: 'utf8', input: ERROR });
    expect([run.stdout, run.stderr]).toEqual(["policy_forbids models[0] 1 ['one']\n", '']);
  });

  test('issues a URL and lists it', async () => {
    const script = join(HERE, 'python/openapi_call.py');
    expect(await calls(at(python.openapi), [script, own], own)).toBe('1 True\n');
  });
});

/** The types of Java have no unions of plain types, and no null. */
const JAVA_TYPES = [
  ...['--type-mappings', 'null=Object'],
  ...['--schema-mappings', 'PresignRequest_path=Object'],
];

describe.skipIf('skipped' in openapiJava)('Java, by openapi-generator', () => {
  let own: string;
  let classes: readonly string[];
  const java = (name: string, args: readonly string[], input?: string) =>
    spawnSync(name, args, { cwd: own, encoding: 'utf8', maxBuffer: 2 ** 26, ...(input ? { input } : {}) });
  beforeAll(() => {
    own = join(folder, 'java');
    cpSync(join(HERE, 'openapi/java'), own, { recursive: true });
    const generator = join(dirname(at(openapiJava)), 'openapi-generator-cli.jar');
    const packages = [
      '--invoker-package',
      'presign',
      '--api-package',
      'presign.api',
      '--model-package',
      'presign.model',
    ];
    const style = [
      '--library',
      'restclient',
      '--additional-properties',
      'useJakartaEe=true,openApiNullable=false',
    ];
    const target = ['-i', DOCUMENT, '-g', 'java', '-o', 'api', ...packages, ...style, ...JAVA_TYPES];
    const made = java('java', ['-jar', generator, 'generate', ...target]);
    expect(made.status, made.stderr).toBe(0);
    const sources = readdirSync(join(own, 'api/src/main/java'), { recursive: true, encoding: 'utf8' });
    const files = sources
      .filter((file) => file.endsWith('.java'))
      .map((file) => join('api/src/main/java', file));
    classes = ['-cp', `${readFileSync(at(openapiJava), 'utf8').trim()}:classes`];
    const compiled = java('javac', ['-nowarn', '-d', 'classes', ...classes, 'Main.java', ...files]);
    expect(compiled.status, compiled.stderr).toBe(0);
  }, 240_000);

  test('reads every error as one type', () => {
    const run = java('java', [...classes, 'Main'], ERROR);
    expect([run.stdout, run.stderr]).toEqual(['policy_forbids models[0] 1 [one]\n', '']);
  });

  test('issues a URL and lists it', async () => {
    expect(await calls('java', [...classes, 'Main'], own)).toBe('1 true\n');
  });
});

const CALL = `import { client } from './api/client.gen';
import { listSessions, presign } from './api/index';

const [url = '', key = ''] = process.argv.slice(2);
client.setConfig({ baseUrl: url, auth: key });
const path = '/v1/chat/completions';
const user = { external_user: 'typescript' };
const issued = await presign({
  body: { provider: 'openai', path, client_api_key: 'sk-any', max_uses: 3, ...user },
  throwOnError: true,
});
const listed = await listSessions({ query: user, throwOnError: true });
console.log(listed.data.data.length, listed.data.data[0]?.id === issued.data.session_id);
`;

const tool = (name: string) => join(at(openapiLint), 'node_modules/.bin', name);

describe.skipIf('skipped' in openapiLint)('TypeScript, by @hey-api/openapi-ts', () => {
  let own: string;
  beforeAll(() => {
    own = join(folder, 'typescript');
    mkdirSync(own);
    symlinkSync(join(at(openapiLint), 'node_modules'), join(own, 'node_modules'));
    writeFileSync(join(own, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(own, 'call.ts'), CALL);
    const options = ['-i', DOCUMENT, '-o', 'api', '-c', '@hey-api/client-fetch'];
    const made = spawnSync(tool('openapi-ts'), options, { cwd: own, encoding: 'utf8' });
    expect(made.status, made.stdout + made.stderr).toBe(0);
  }, 60_000);

  test('has natural names', () => {
    const code = readFileSync(join(own, 'api/types.gen.ts'), 'utf8');
    expect(madeUp(Array.from(code.matchAll(/^export type (\w+)/gm), ([, name = '']) => name))).toEqual([]);
  });

  test('compiles, issues a URL and lists it', async () => {
    const rules = '--strict --noEmit --skipLibCheck --types node --target es2022 --module esnext';
    const options = [...rules.split(' '), '--moduleResolution', 'bundler', 'call.ts'];
    const compiled = spawnSync(tool('tsc'), options, { cwd: own, encoding: 'utf8' });
    expect(compiled.stdout).toBe('');
    const tsx = join(HERE, '../node_modules/.bin/tsx');
    expect(await calls(tsx, ['call.ts'], own)).toBe('1 true\n');
  });
});
