import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readVariable, SECRETS, VARIABLES, type VariableName } from '@presign/service';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const INFRA = join(import.meta.dirname, '../../infra');
const text = readFileSync(join(INFRA, 'compose.yaml'), 'utf8');

type Service = {
  readonly depends_on?: readonly string[] | Readonly<Record<string, object>>;
  readonly networks?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly ports?: readonly string[];
  readonly image: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly healthcheck?: object;
  readonly mem_limit?: string;
  readonly stop_grace_period?: string;
  readonly logging?: { readonly driver: string; readonly options: Readonly<Record<string, string>> };
};
type Compose = Readonly<Record<'networks' | 'secrets' | 'volumes', object>> & {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
};
/** A file with its defaults, as if nothing were set. */
const read = (yaml: string) =>
  parse(
    yaml.replaceAll(/\$\{\w+:-([^}]*)\}/g, (_all, fallback: string) => fallback),
    { merge: true },
  ) as Compose;
const { services, secrets } = read(text);
const own = ['gateway-1', 'gateway-2', 'issuer', 'migrate'];

/** Secrets that are addresses, too, and rarely have a password. The Redis here has none. */
const ADDRESSES = ['HTTPS_PROXY', 'REDIS_URL'];
const isSecret = (name: string) => SECRETS.has(name as VariableName) && !ADDRESSES.includes(name);

/** Names that services refer to and the file does not declare. The loader that other tests run leaves that out. */
const missing = ({ services: all, ...declared }: Compose): string[] =>
  Object.values(all).flatMap(
    ({ depends_on: needs = [], networks = [], volumes = [], secrets: given = [] }) => {
      const named = volumes.map((each) => each.split(':')[0] ?? '').filter((each) => !/^[./]/.test(each));
      return [
        ...(Array.isArray(needs) ? needs : Object.keys(needs)).filter((each) => !(each in all)),
        ...networks.filter((each) => each !== 'default' && !(each in declared.networks)),
        ...named.filter((each) => !(each in declared.volumes)),
        ...given.filter((each) => !(each in declared.secrets)),
      ];
    },
  );

describe('the services of compose.yaml', () => {
  test('refer only to names in the file, and a wrong name is detected', () => {
    expect(missing(read(text))).toEqual([]);
    for (const [right, wrong] of [
      ['depends_on: [issuer,', 'depends_on: [isuer,'],
      ['secrets: [DATABASE_URL]', 'secrets: [DATABASE]'],
      ['networks: [stores]', 'networks: [store]'],
      ['- redis:/data', '- reddis:/data'],
    ] as const) {
      expect(text).toContain(right);
      expect(missing(read(text.replace(right, wrong))), wrong).toHaveLength(1);
    }
  });

  test.each(Object.entries(services))(
    '%s has bounded memory, bounded logs and a health check',
    (name, each) => {
      expect(each.mem_limit).toMatch(/^\d+[mg]$/);
      expect(each.logging).toEqual({ driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } });
      // The images of the services bring their own.
      const part = /gateway|issuer/.exec(each.image)?.[0];
      const dockerfile = part && readFileSync(join(INFRA, `docker/${part}.Dockerfile`), 'utf8');
      expect(each.healthcheck !== undefined || dockerfile?.includes('HEALTHCHECK'), name).toBe(true);
    },
  );

  test('give each part only its own secrets, as files: only the issuer gets the signing key', () => {
    const both = ['DATABASE_URL', 'TOKEN_PUBLIC_KEYS', 'ENCRYPTION_KEYS'];
    const archive = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'];
    expect(services['gateway-1']?.secrets).toEqual(both);
    expect(services['gateway-2']).toEqual({ ...services['gateway-1'], build: undefined });
    expect(services.issuer?.secrets?.toSorted()).toEqual(
      [...both, ...archive, 'TOKEN_SIGNING_KEY', 'BOOTSTRAP_API_KEY'].sort(),
    );
    expect(services.migrate?.secrets).toEqual(['DATABASE_URL']);
    for (const name of own) {
      const { environment = {}, secrets: given = [] } = services[name] ?? {};
      const files = Object.entries(environment).filter(([variable]) =>
        isSecret(variable.replace(/_FILE$/, '')),
      );
      expect(Object.fromEntries(files)).toEqual(
        Object.fromEntries(given.map((secret) => [`${secret}_FILE`, `/run/secrets/${secret}`])),
      );
    }
  });

  test('set only variables that the services read, and no secret in plain text', () => {
    for (const name of own)
      for (const variable of Object.keys(services[name]?.environment ?? {})) {
        const secret = variable.replace(/_FILE$/, '');
        const known = [...Object.keys(VARIABLES), ...Array.from(SECRETS, (each) => `${each}_FILE`)];
        expect([...known, 'NODE_EXTRA_CA_CERTS']).toContain(variable);
        if (isSecret(secret)) expect(variable).toMatch(/_FILE$/);
      }
  });

  test('are killed only after they had time to stop by themselves', () => {
    const grace = readVariable({}, 'SHUTDOWN_GRACE_SECONDS', 25);
    for (const name of [...own, 'proxy'])
      expect(Number.parseInt(services[name]?.stop_grace_period ?? '', 10)).toBeGreaterThan(grace);
  });

  test('have read-only file systems, and are reached only through the proxy on this machine', () => {
    for (const name of [...own, 'proxy']) expect(services[name]?.read_only).toBe(true);
    const ports = Object.entries(services).flatMap(([name, { ports: open = [] }]) =>
      open.map((each) => [name, each]),
    );
    expect(ports).toEqual([
      ['proxy', '127.0.0.1:8787:8787'],
      ['proxy', '127.0.0.1:8788:8788'],
    ]);
  });

  test('have the names and ports that the proxy uses', () => {
    const addresses = readFileSync(join(INFRA, 'haproxy.cfg'), 'utf8').matchAll(
      /presetenv \w+ ([\w-]+):(\d+)$/gm,
    );
    const asked = Array.from(addresses, ([, name = '', port]) => [name, port]);
    expect(asked.length).toBe(3);
    for (const [name = '', port] of asked) {
      const { GATEWAY_PORT, ISSUER_PORT } = services[name]?.environment ?? {};
      expect(GATEWAY_PORT ?? ISSUER_PORT).toBe(port);
    }
  });
});

describe('secrets.sh', () => {
  const keys = execFileSync(
    process.execPath,
    ['--import', 'tsx', join(INFRA, '../apps/issuer/src/keys.ts')],
    {
      encoding: 'utf8',
    },
  );
  const write = (folder: string, input: string) =>
    spawnSync('bash', [join(INFRA, 'secrets.sh'), folder], { input, encoding: 'utf8' });
  const folder = join(mkdtempSync(join(tmpdir(), 'presign-secrets-')), 'secrets');

  test("writes every secret of compose.yaml to a file that only the services' user can read", () => {
    const { status, stderr } = write(folder, `# A comment\nISSUER_URL=https://a.example\n${keys}`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(readdirSync(folder).sort()).toEqual(Object.keys(secrets).sort());
    const { uid: me } = statSync(folder);
    for (const [name, { file }] of Object.entries(secrets)) {
      expect(file).toBe(`./secrets/${name}`);
      const { mode, uid } = statSync(join(folder, name));
      expect({ name, mode: mode & 0o777, uid }).toEqual({ name, mode: 0o400, uid: me === 0 ? 1000 : me });
      expect(services.issuer?.user).toBe('1000:1000');
    }
  });

  test('writes values that the services accept', () => {
    const environment = (name: string) => ({ [`${name}_FILE`]: join(folder, name) });
    const password = /^POSTGRES_PASSWORD=(.*)$/m.exec(keys)?.[1];
    const {
      username,
      hostname,
      password: given,
      pathname,
    } = new URL(String(readVariable(environment('DATABASE_URL'), 'DATABASE_URL')));
    expect([hostname, pathname, given]).toEqual(['postgres', '/presign', password]);
    expect(username).toBe(services.postgres?.environment?.POSTGRES_USER);
    for (const name of [
      'TOKEN_SIGNING_KEY',
      'TOKEN_PUBLIC_KEYS',
      'ENCRYPTION_KEYS',
      'BOOTSTRAP_API_KEY',
    ] as const)
      expect(keys).toContain(`${name}=${readVariable(environment(name), name)}\n`);
    // They are empty without an archive in S3.
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const)
      expect(readVariable(environment(name), name, undefined)).toBeUndefined();
  });

  test("writes the bucket's access key from an older .env", () => {
    const withKey = `${folder}-with-key`;
    const input = `${keys}AWS_ACCESS_KEY_ID=AKIDMARKED\nAWS_SECRET_ACCESS_KEY=marked/secret+of=\n`;
    expect(write(withKey, input).status).toBe(0);
    expect(readFileSync(join(withKey, 'AWS_ACCESS_KEY_ID'), 'utf8')).toBe('AKIDMARKED\n');
    expect(readFileSync(join(withKey, 'AWS_SECRET_ACCESS_KEY'), 'utf8')).toBe('marked/secret+of=\n');
  });

  test('never overwrites a secret, and writes nothing if one is missing', () => {
    const { status, stderr } = write(folder, keys);
    expect([status, stderr]).toEqual([1, expect.stringContaining('TOKEN_SIGNING_KEY exists already')]);
    const other = `${folder}-other`;
    const partial = write(other, keys.replace(/^ENCRYPTION_KEYS=.*\n/m, ''));
    expect([partial.status, partial.stderr]).toEqual([1, 'secrets: no ENCRYPTION_KEYS in the input\n']);
    expect(() => readdirSync(other)).toThrow(/ENOENT/);
  });
});
