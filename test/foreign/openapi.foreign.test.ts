import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Local, startLocalForDocs } from '../docs/local.ts';

const { openapiLint, python } = inject('toolchains');
const HERE = import.meta.dirname;
const DOCUMENT = join(HERE, '../../docs/reference/openapi.json');
const at = (installed: typeof openapiLint) => ('at' in installed ? installed.at : '');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'presign-openapi-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf('skipped' in openapiLint)('the OpenAPI document', () => {
  const lint = (tool: string, args: readonly string[], document = DOCUMENT) =>
    spawnSync(join(at(openapiLint), 'node_modules/.bin', tool), ['lint', ...args, document], {
      encoding: 'utf8',
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    });
  const LINTERS = [
    ['Redocly', 'redocly', ['--config', join(HERE, 'openapi/redocly.yaml')]],
    ['Spectral', 'spectral', ['-r', join(HERE, 'openapi/spectral.yaml'), '--fail-severity', 'hint']],
  ] as const;

  test.each(LINTERS)('passes every rule of %s', (_name, tool, args) => {
    const { status, stdout, stderr } = lint(tool, args);
    expect(status, stdout + stderr).toBe(0);
  });

  test.each(LINTERS)('with a fault does not pass %s', (_name, tool, args) => {
    const text = readFileSync(DOCUMENT, 'utf8');
    const wrong = join(folder, `${tool}.json`);
    // Two operations of one name, and a reference to nothing.
    writeFileSync(
      wrong,
      text
        .replace('"operationId": "getLimits"', '"operationId": "listModels"')
        .replace('#/components/schemas/Limits"', '#/components/schemas/Limit"'),
    );
    expect(lint(tool, args, wrong).status).not.toBe(0);
  });
});

describe.skipIf('skipped' in python.schemathesis)('schemathesis', () => {
  let local: Local;
  beforeAll(async () => {
    local = await startLocalForDocs();
  });
  afterAll(() => local.close());

  test('finds no failing request, and no undocumented answer', async () => {
    const url = `http://127.0.0.1:${local.issuerPort}`;
    const key = readFileSync(join(local.folder, '.presign/api-key'), 'utf8').trim();
    const asked = await fetch(`${url}/v1/limits`, { headers: { authorization: `Bearer ${key}` } });
    const { api_key: own } = (await asked.json()) as { api_key: { id: string } };
    const run = await promisify(execFile)(
      join(at(python.schemathesis), '../schemathesis'),
      [
        ...['--config-file', join(HERE, 'openapi/schemathesis.toml'), 'run', `${url}/openapi.json`],
        ...['-H', `Authorization: Bearer ${key}`, '--phases', 'examples,fuzzing,stateful'],
        ...[
          '--max-examples',
          '25',
          '--request-timeout',
          '120',
          '--seed',
          '1',
          '--continue-on-failure',
          '--suppress-health-check',
          'all',
          '--no-color',
        ],
      ],
      {
        // It keeps what it finds in a folder of its own there.
        cwd: folder,
        env: {
          ...process.env,
          OWN_API_KEY_ID: own.id,
          SCHEMATHESIS_HOOKS: join(HERE, 'python/schemathesis_hooks.py'),
        },
        maxBuffer: 2 ** 26,
      },
    ).catch((error: { stdout: string; stderr: string }) => expect.fail(error.stdout + error.stderr));
    expect(run.stdout).toContain('Stateful');
    const generated = Number(/(\d+) generated/.exec(run.stdout)?.[1]);
    expect(generated).toBeGreaterThan(500);
  }, 1_200_000);
});
