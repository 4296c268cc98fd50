import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  parseVariable,
  readVariable,
  SECRETS,
  VARIABLES,
  VariableError,
  type VariableName,
} from '../src/index.ts';

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
  test.each(NAMES)('%s: if missing or empty, one line names it and shows an example', (name) => {
    for (const environment of [{}, { [name]: '' }]) {
      const problem = problemOf(() => readVariable(environment, name));
      expect(problem).toMatch(new RegExp(`^${name} is missing: .+, for example ${name}=.+$`));
    }
  });

  test.each(NAMES)('%s: if missing or empty, its default is used', (name) => {
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
    [
      'GATEWAY_URL',
      [
        ...['gateway', 'https://a.example#x', 'https://a.example/a b', 'javascript:alert(1)'],
        ...['https://a.example//b', 'https://a.example/b//c', 'https://a.example/\\b'],
      ],
    ],
    ['DATABASE_URL', ['mysql://a/b', 'a:5432', 'postgres://a:port/b']],
    ['REDIS_URL', ['http://a', 'redis:a', 'a:6379']],
    ['DATABASE_POOL_SIZE', ['0', '1001']],
    ['DATABASE_CONNECT_TIMEOUT_SECONDS', ['0', '61']],
    ['DATABASE_STATEMENT_TIMEOUT_SECONDS', ['-1', '61']],
    ['DATABASE_PREPARE', ['no', 'FALSE']],
    ['REDIS_CONNECT_TIMEOUT_SECONDS', ['0', '61']],
    ['REDIS_COMMAND_TIMEOUT_SECONDS', ['0', '61', '0.5']],
    ['BOOTSTRAP_API_KEY', ['short', 'has a space in it', 'é'.repeat(20), 'k'.repeat(256)]],
    ['TOKEN_SIGNING_KEY', ['k4.public.AAAA', 'secret']],
    ['TOKEN_PUBLIC_KEYS', ['k4.secret.AAAA', 'k3.public.AAAA']],
    ['ENCRYPTION_KEYS', ['AAAA', ':AAAA']],
    ['ALLOW_PRIVATE_UPSTREAMS', ['yes', '1', 'TRUE']],
    ['SANDBOX', ['0', 'off']],
    [
      'PRICES_URL',
      [
        'prices',
        'http://prices.example.com/a',
        'https://u:p@prices.example.com/',
        'https://a/#b',
        'ftp://a/b',
      ],
    ],
    ['KNOWLEDGE_URL', ['knowledge', 'http://knowledge.example.com/a', 'https://u:p@a/', 'https://a/#b']],
    ['HTTPS_PROXY', ['proxy:3128', 'socks5://proxy:1080', 'http://proxy:3128/path']],
    ['NO_PROXY', ['a;b', 'http://a', '"a"']],
    ['HOLD_LEASE_SECONDS', ['0', '86401', '1.5', '-1', 'a']],
    ['UPSTREAM_TIMEOUT_SECONDS', ['0', '86401']],
    ['LEDGER_KEPT_DAYS', ['1', '31', '36501', '-1']],
    ['GRANTS_KEPT_DAYS', ['1', '1.5']],
    ['USAGE_KEPT_DAYS', ['1', '31', '36501']],
    ['REFUSALS_KEPT_DAYS', ['-1', '36501']],
    ['USAGE_METADATA', [',', 'a,', 'a b', 'a,b,c,d,e', 'a.b', '__proto__', 'a,__proto__', 'x'.repeat(51)]],
    [
      'ARCHIVE_S3',
      ['bucket', 's3://', 's3://Bucket', 's3://bucket//a', 's3://bucket/a b', 's3://bucket/a?b'],
    ],
    ['AWS_REGION', ['EU', 'eu central']],
    ['AWS_ENDPOINT_URL_S3', ['minio:9000', 'https://u:p@minio', 's3://bucket']],
    ['AWS_ACCESS_KEY_ID', ['two words', 'é']],
    ['AWS_SECRET_ACCESS_KEY', ['line\nbreak']],
    ['AWS_SESSION_TOKEN', [' ']],
    ['MAX_BODY_BYTES', ['0', '1048575', '33554433', '16MiB']],
    ['MAX_SOCKETS', ['0', '1000001', 'x']],
    ['MAX_SOCKETS_PER_ACCOUNT', ['0', '1000001', 'x']],
    ['MAX_SOCKETS_PER_URL', ['0', '1000001', 'x']],
    ['MAX_SOCKET_MESSAGE_BYTES', ['1023', '16777217', '1MiB']],
    ['MAX_SOCKET_ANSWER_BYTES', ['1023', '67108865', '1MiB']],
    ['MAX_HELD_BODY_BYTES', ['0', '41943039', '512MiB', '-1']],
    ['LOG_LEVEL', ['verbose', 'INFO']],
  ];
  test.each(bad)('%s: if malformed, one line names it and never its value', (name, texts) => {
    for (const text of texts) {
      const problem = problemOf(() => readVariable({ [name]: text }, name, undefined));
      const { meaning, example } = VARIABLES[name];
      expect(problem).toBe(`${name} is malformed: ${meaning}, for example ${name}=${example}`);
    }
  });

  describe('that is a secret', () => {
    const folder = mkdtempSync(join(tmpdir(), 'presign-'));
    const file = join(folder, 'marked');
    test.each([...SECRETS])('%s: is read from its file, without the last line break', (name) => {
      const example = VARIABLES[name].example.replaceAll('…', '0123456789');
      for (const end of ['', '\n', '\r\n']) {
        writeFileSync(file, example + end);
        const environment = { [`${name}_FILE`]: file };
        expect(readVariable(environment, name)).toBe(example);
        expect(readVariable({ ...environment, [name]: '' }, name)).toBe(example);
      }
    });

    test.each([...SECRETS])('%s: one line says why its file cannot be used, and quotes nothing', (name) => {
      const { meaning, example } = VARIABLES[name];
      const about = `: ${meaning}, for example ${name}=${example}`;
      writeFileSync(file, 'marked secret');
      const both = { [name]: example, [`${name}_FILE`]: file };
      expect(problemOf(() => readVariable(both, name))).toBe(`${name} and ${name}_FILE are both set${about}`);
      const malformed = { [`${name}_FILE`]: file };
      expect(problemOf(() => readVariable(malformed, name))).toBe(`${name} is malformed${about}`);
      const missing = { [`${name}_FILE`]: `${file}-missing` };
      expect(problemOf(() => readVariable(missing, name, undefined))).toBe(
        `${name} cannot be read (ENOENT)${about}`,
      );
    });

    test('is the only kind that can be read from a file', () => {
      writeFileSync(file, '8080');
      expect(readVariable({ ISSUER_PORT_FILE: file }, 'ISSUER_PORT', undefined)).toBeUndefined();
    });
  });

  test('PRICES_URL may have an @ in its path', () => {
    const url = 'https://prices.example.com/list@1.2/data.json';
    expect(readVariable({ PRICES_URL: url }, 'PRICES_URL')).toBe(url);
  });

  test('addresses lose their trailing slashes, so that both spellings are one audience', () => {
    expect(readVariable({ GATEWAY_URL: 'https://a.example/x//' }, 'GATEWAY_URL')).toBe('https://a.example/x');
  });

  test('ports and flags are parsed to numbers and booleans', () => {
    expect(readVariable({ ISSUER_PORT: '0' }, 'ISSUER_PORT')).toBe(0);
    expect(readVariable({ ISSUER_PORT: '65535' }, 'ISSUER_PORT')).toBe(65_535);
    expect(readVariable({ SANDBOX: 'false' }, 'SANDBOX')).toBe(false);
  });

  test('an error of its parser is reported in the same one line', () => {
    const read = () => {
      throw new Error('expected 32 bytes');
    };
    expect(problemOf(() => parseVariable('ENCRYPTION_KEYS', read))).toMatch(
      /^ENCRYPTION_KEYS is malformed \(expected 32 bytes\): .+, for example ENCRYPTION_KEYS=.+$/,
    );
    expect(parseVariable('ENCRYPTION_KEYS', () => 7)).toBe(7);
  });
});
