import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeIn, type Fence, fencesIn } from './fences.ts';
import { type Local, startLocalForDocs } from './local.ts';

const GUIDES = new URL('../../docs/guides/', import.meta.url);
const guides = readdirSync(GUIDES).map((name) => ({
  name,
  page: readFileSync(new URL(name, GUIDES), 'utf8'),
}));

let local: Local;
beforeAll(async () => {
  local = await startLocalForDocs();
});
afterAll(() => local.close());

// A `bash` fence is run; `sh` is for commands that change a reader's machine or need other services.
const runnable = guides.filter(({ page }) => codeIn(page, 'bash').length > 0);

test('most guides have commands that run', () => {
  expect(runnable.length).toBeGreaterThan(7);
});

describe.each(runnable)('$name', ({ page }) => {
  const steps = stepsOf(fencesIn(page));

  test('its commands run from top to bottom, and answer as the page shows', async () => {
    const script = steps.map(({ command }) => `${local.here(command)}\nprintf '${END}'`).join('\n');
    const printed = await local.run('bash', ['-euo', 'pipefail', '-c', script]);
    const outputs = printed.split(END);
    expect(outputs).toHaveLength(steps.length + 1);
    for (const [place, { shown }] of steps.entries()) expectAsShown(outputs[place] ?? '', shown);
  });
});

test('the MCP client of the guide runs a tool', async () => {
  const { page } = guides.find(({ name }) => name === 'mcp-bundle.md') ?? { page: '' };
  const [issue = ''] = codeIn(page, 'bash').filter((command) => command.includes('/v2/mcp-presign'));
  const [start = ''] = codeIn(page, 'bash');
  await local.run('bash', ['-euc', local.here(`${start}\n${issue}`)]);
  const [client = ''] = codeIn(page, 'ts');
  expect(await local.run(process.execPath, ['--input-type=module', '-e', client])).toContain("text: '42'");
});

const END = '\n--- end of a step ---\n';

/** A command, and the fence after it where that shows its output. */
type Step = { readonly command: string; readonly shown: Fence | undefined };

function stepsOf(fences: readonly Fence[]): readonly Step[] {
  return fences.flatMap(({ language, code }, place) => {
    if (language !== 'bash') return [];
    const next = fences[place + 1];
    return [{ command: code, shown: next && ['json', ''].includes(next.language) ? next : undefined }];
  });
}

/** JSON has the fields and types that the page shows; other output is the same text. */
function expectAsShown(output: string, shown: Fence | undefined): void {
  if (!shown) return;
  if (shown.language === 'json') expectSameShape(JSON.parse(output), JSON.parse(shown.code), '');
  else expect(output.trim()).toBe(shown.code.trim());
}

/** Values that do not differ from run to run. */
const EXACT = /\.(code|cost_limit|limit|limit_of|max_uses|needed|remaining|spent|status|type|used|version)$/;

/** The same fields everywhere, with values of the same type. Codes and small amounts are the same, too. */
function expectSameShape(actual: unknown, shown: unknown, path: string): void {
  if (Array.isArray(shown)) {
    expect(Array.isArray(actual), path).toBe(true);
    for (const item of actual as unknown[]) expectSameShape(item, shown[0], `${path}[]`);
  } else if (shown !== null && typeof shown === 'object') {
    expect(Object.keys(actual ?? {}), path).toEqual(Object.keys(shown));
    for (const [name, member] of Object.entries(shown))
      expectSameShape((actual as Record<string, unknown>)[name], member, `${path}.${name}`);
  } else if (EXACT.test(path)) expect(actual, path).toBe(shown);
  else expect(actual === null ? null : typeof actual, path).toBe(shown === null ? null : typeof shown);
}
