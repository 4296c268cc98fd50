import { describe, expect, test } from 'vitest';
import { parseVariable, readVariable, VARIABLES, VariableError, type VariableName } from '../src/index.ts';

const NAMES = Object.keys(VARIABLES) as VariableName[];
const problemOf = (read: () => unknown): string => {
  try {
    return `read ${JSON.stringify(read())}`;
  } catch (error) {
    if (!(error instanceof VariableError)) throw error;
    return error.message;
  }
};

describe('a variable', () => {
  test.each(NAMES)('%s: missing or empty, one line names it and shows an example', (name) => {
    for (const environment of [{}, { [name]: '' }]) {
      const problem = problemOf(() => readVariable(environment, name));
      expect(problem).toMatch(new RegExp(`^${name} is missing: .+, for example ${name}=.+$`));
    }
  });

  test.each(NAMES)('%s: missing or empty, a default takes its place', (name) => {
    expect(readVariable({}, name, undefined)).toBeUndefined();
    expect(readVariable({ [name]: '' }, name, undefined)).toBeUndefined();
  });

  const bad: [VariableName, string[]][] = [
    ['ISSUER_PORT', ['-1', '65536', '80.5', 'http', ' ', '0x50', '1e3', '٣']],
    ['GATEWAY_PORT', ['-1', '65536', ' 80']],
    [
      'ISSUER_URL',
      ['issuer.example.com', 'ftp://a.example', 'https://a.example?x=1', 'https://u:p@a.example', '/'],
    ],
    ['GATEWAY_URL', ['gateway', 'https://a.example#x', 'https://a.example/a b', 'javascript:alert(1)']],
    ['DATABASE_URL', ['mysql://a/b', 'a:5432', 'postgres://a:port/b']],
    ['REDIS_URL', ['http://a', 'redis:a', 'a:6379']],
    ['BOOTSTRAP_API_KEY', ['short', 'has a space in it', 'é'.repeat(20), 'k'.repeat(256)]],
    ['TOKEN_SIGNING_KEY', ['k4.public.AAAA', 'secret']],
    ['TOKEN_PUBLIC_KEYS', ['k4.secret.AAAA', 'k3.public.AAAA']],
    ['ENCRYPTION_KEYS', ['AAAA', ':AAAA']],
    ['ALLOW_PRIVATE_UPSTREAMS', ['yes', '1', 'TRUE']],
    ['SANDBOX', ['0', 'off']],
    ['HOLD_LEASE_SECONDS', ['0', '86401', '1.5', '-1', 'a']],
    ['UPSTREAM_TIMEOUT_SECONDS', ['0', '86401']],
    ['LEDGER_KEPT_DAYS', ['1', '31', '36501', '-1']],
    ['GRANTS_KEPT_DAYS', ['1', '1.5']],
    ['MAX_BODY_BYTES', ['0', '1048575', '33554433', '16MiB']],
    ['MAX_HELD_BODY_BYTES', ['0', '41943039', '512MiB', '-1']],
    ['LOG_LEVEL', ['verbose', 'INFO']],
  ];
  test.each(bad)('%s: malformed, one line names it and never its value', (name, texts) => {
    for (const text of texts) {
      const problem = problemOf(() => readVariable({ [name]: text }, name, undefined));
      const { meaning, example } = VARIABLES[name];
      expect(problem).toBe(`${name} is malformed: ${meaning}, for example ${name}=${example}`);
    }
  });

  test('addresses lose their last slashes, so that two spellings are one audience', () => {
    expect(readVariable({ GATEWAY_URL: 'https://a.example/x//' }, 'GATEWAY_URL')).toBe('https://a.example/x');
  });

  test('ports and flags are read as what they are', () => {
    expect(readVariable({ ISSUER_PORT: '0' }, 'ISSUER_PORT')).toBe(0);
    expect(readVariable({ ISSUER_PORT: '65535' }, 'ISSUER_PORT')).toBe(65_535);
    expect(readVariable({ SANDBOX: 'false' }, 'SANDBOX')).toBe(false);
  });

  test('what its reader throws is said in the same one line', () => {
    const read = () => {
      throw new Error('expected 32 bytes');
    };
    expect(problemOf(() => parseVariable('ENCRYPTION_KEYS', read))).toMatch(
      /^ENCRYPTION_KEYS is malformed \(expected 32 bytes\): .+, for example ENCRYPTION_KEYS=.+$/,
    );
    expect(parseVariable('ENCRYPTION_KEYS', () => 7)).toBe(7);
  });
});
