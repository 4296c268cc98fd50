import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readMcpPricesFile } from '@presign/gateway';
import { mcpPresignRequest } from '@presign/schema';
import { expect, test } from 'vitest';
import { codeIn } from './fences.ts';

const page = (path: string) => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8');
const request = codeIn(page('guides/mcp-bundle.md'), 'json').at(-1) ?? '';
const prices = codeIn(page('reference/mcp.md'), 'json').find((code) => code.includes('https://')) ?? '';

test('the issuer accepts the request of the guide', () => {
  const read = mcpPresignRequest.parse(JSON.parse(request));
  expect(read.servers.map(({ auth }) => auth.type)).toEqual(['bearer', 'api_key', 'oauth']);
  expect(read.servers.map(({ transport }) => transport)).toEqual(['http', 'sse', 'http']);
});

test('the MCP_PRICES_FILE of the reference can be read', () => {
  const folder = mkdtempSync(join(tmpdir(), 'presign-prices-'));
  writeFileSync(join(folder, 'prices.json'), prices);
  const read = readMcpPricesFile(join(folder, 'prices.json'));
  rmSync(folder, { recursive: true });
  expect(read.get('https://search.example.com/mcp')).toMatchObject({ tools: { deep_search: 20_000 } });
  expect(read.get('https://tickets.example.com')).toMatchObject({ default: 100 });
});
