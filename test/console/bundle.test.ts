import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildConsole } from '@presign/console/build';
import { beforeAll, describe, expect, test } from 'vitest';

const MOST_BYTES = 250_000;

describe('the built console', () => {
  let files: { name: string; bytes: Buffer }[];
  beforeAll(async () => {
    const dir = await buildConsole();
    const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.\w+$/.test(name),
    );
    files = names.map((name) => ({ name, bytes: readFileSync(join(dir, name)) }));
  });

  test(`is smaller than ${MOST_BYTES} bytes in total, with gzip`, () => {
    const bytes = files.reduce((sum, file) => sum + gzipSync(file.bytes).length, 0);
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(MOST_BYTES);
  });

  test("contains no other server's name", () => {
    const hosts = files.flatMap(({ bytes }) => bytes.toString().match(/https?:\/\/[\w.-]+/g) ?? []);
    // Namespaces of XML, and the page that a message of TanStack Query names: addresses that are never requested.
    const others = hosts.filter((host) => !/^(http:\/\/www\.w3\.org|https:\/\/tanstack\.com)$/.test(host));
    expect([...new Set(others)]).toEqual([]);
  });

  test('contains no file path of the build machine', () => {
    const root = join(import.meta.dirname, '../..');
    expect(files.filter(({ bytes }) => bytes.includes(root)).map(({ name }) => name)).toEqual([]);
  });

  test('is built only once for the same sources', async () => {
    expect(await buildConsole()).toBe(await buildConsole());
  });
});
