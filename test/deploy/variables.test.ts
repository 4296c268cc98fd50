import { readFileSync } from 'node:fs';
import { SECRETS, VARIABLES, type VariableName } from '@presign/service';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

/** The variables that each service reads. The page is generated from its source. */
const reads: Readonly<Record<'issuer' | 'gateway', readonly string[]>> = (() => {
  const rows = Array.from(
    read('docs/reference/configuration.md').matchAll(/^\| `([A-Z_0-9]+)` .*\| ([^|]*) \| ([^|]*) \|$/gm),
    ([, name = '', issuer = '', gateway = '']) => ({ name, issuer, gateway }),
  );
  const of = (service: 'issuer' | 'gateway') =>
    rows.filter((row) => row[service].trim() !== '').map(({ name }) => name);
  return { issuer: of('issuer'), gateway: of('gateway') };
})();

/** Node's own, for the certificates of upstreams. */
const OF_NODE = 'NODE_EXTRA_CA_CERTS';

test('the page says which service reads which variable', () => {
  expect([...reads.issuer, ...reads.gateway].filter((name) => !(name in VARIABLES))).toEqual([]);
  expect(reads.gateway).toContain('TRUSTED_PROXIES');
  expect(reads.issuer).toContain('API_REQUESTS_PER_MINUTE');
  expect(reads.issuer).not.toContain('TRUSTED_PROXIES');
});

describe('compose.yaml', () => {
  const text = read('infra/compose.yaml');
  const { services } = parse(text, { merge: true }) as {
    services: Record<string, { environment?: Record<string, string> }>;
  };
  /** Variables that are not to be changed there, each with the reason. */
  const FIXED: Readonly<Record<string, string>> = {
    HOST: 'a container listens on all of its addresses',
    ISSUER_PORT: 'the proxy publishes the port',
    GATEWAY_PORT: 'the proxy publishes the port',
    REDIS_URL: 'the file has its own Redis',
    DATABASE_PREPARE: 'the file has no pooler',
    AWS_SESSION_TOKEN: 'a temporary key ends, and the services read it at their start alone',
  };

  test.each([
    ['issuer', 'issuer'],
    ['gateway', 'gateway-1'],
  ] as const)('lets an operator set each variable of the %s', (service, name) => {
    const { environment = {} } = services[name] ?? {};
    const isSettable = (variable: string) =>
      String(environment[variable]).startsWith(`\${${variable}:-`) ||
      environment[`${variable}_FILE`] === `/run/secrets/${variable}`;
    const missing = [...reads[service], OF_NODE].filter((each) => !isSettable(each) && !(each in FIXED));
    expect(missing).toEqual([]);
  });

  test('gives reasons only for variables that cannot be set', () => {
    const settable = Object.keys(FIXED).filter((name) =>
      Object.values(services).some(({ environment = {} }) =>
        String(environment[name]).startsWith(`\${${name}:-`),
      ),
    );
    expect(settable).toEqual([]);
  });

  test('and .env.example have the same settings', () => {
    const used = new Set(Array.from(text.matchAll(/\$\{(\w+):-/g), ([, name = '']) => name));
    const shown = Array.from(read('infra/.env.example').matchAll(/^#(\w+)=/gm), ([, name = '']) => name);
    expect(shown.toSorted()).toEqual([...used].sort());
  });
});

describe('the Helm chart', () => {
  const helpers = read('infra/helm/presign/templates/_helpers.tpl');
  const template = read('infra/helm/presign/templates/services.yaml');
  const schema = JSON.parse(read('infra/helm/presign/values.schema.json')) as {
    definitions: { env: { propertyNames: { anyOf: [{ pattern: string }, { enum: readonly string[] }] } } };
  };
  /** The names that `env` of the values may have. */
  const [{ pattern }, { enum: free }] = schema.definitions.env.propertyNames.anyOf;
  const isFree = (name: string) => free.includes(name) || new RegExp(pattern).test(name);
  const isOwn = (name: string) =>
    template.includes(`- name: ${name}\n`) ||
    (name.endsWith('_PORT') && template.includes('- name: {{ upper $part }}_PORT')) ||
    (SECRETS.has(name as VariableName) && new RegExp(`"${name}(=%s)?"`).test(helpers));
  const FIXED: Readonly<Record<string, string>> = {
    ARCHIVE_FOLDER: 'a pod has no disk that it may write: set ARCHIVE_S3',
    AWS_SESSION_TOKEN: 'a temporary key ends, and the services read it at their start alone',
  };

  test('lets an operator set each variable of both services', () => {
    const all = [...reads.issuer, ...reads.gateway, OF_NODE];
    expect(all.filter((name) => !isFree(name) && !isOwn(name) && !(name in FIXED))).toEqual([]);
  });

  test('sets none twice, contains no plain-text secret and no unknown name', () => {
    expect(Object.keys(VARIABLES).filter((name) => isFree(name) && (isOwn(name) || name in FIXED))).toEqual(
      [],
    );
    expect([...SECRETS].filter(isFree)).toEqual([]);
    expect(free.filter((name) => !(name in VARIABLES))).toEqual([]);
  });
});
