import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { api } from '../harness/documented.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';
import { CHAT, type IssueScreen, KEY, openIssue } from './issue-screen.ts';

const PYTHON = process.env.PYTHON ?? 'python3';
const hasPython = spawnSync(PYTHON, ['--version']).status === 0;
const run = promisify(execFile);

describe.skipIf(!hasChromium)('the issuing form', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: IssueScreen;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    ui = await openIssue(browser, stack);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  type Json = { [name: string]: Json } & { required?: string[]; minimum?: number; maximum?: number };
  const schemaOf = (name: string) => api.components.schemas[name] as unknown as Json;

  test.each([
    ['PresignRequest', false, ['bind'], ['bind.origins', 'bind.ip_ranges']],
    ['McpPresignRequest', true, ['bind', 'servers'], ['bind.origins', 'bind.ip_ranges']],
  ] as const)(
    'for %s has every field of the schema, with its limits',
    async (name, bundle, groups, inside) => {
      await ui.form(bundle);
      const { properties = {} as Json, required } = schemaOf(name);
      const names = Object.keys(properties).filter((each) => !(groups as readonly string[]).includes(each));
      const server = bundle ? Object.keys(schemaOf('McpServerRequest').properties ?? {}) : [];
      const ofServer = server
        .filter((each) => !['auth_config', 'pricing'].includes(each))
        .concat(bundle ? ['pricing.default', 'pricing.tools'] : [])
        .map((each) => `servers[0].${each}`);
      const shown = (await ui.page.evaluate(
        "Array.from(document.querySelectorAll('form [name]'), (each) => each.name)",
      )) as string[];
      expect(shown.sort()).toEqual([...names, ...inside, ...ofServer].sort());
      for (const each of names) {
        const forms = [properties[each] as Json, ...((properties[each]?.anyOf ?? []) as unknown as Json[])];
        const { minimum, maximum } = forms.find((form) => form.minimum !== undefined) ?? {};
        const control = ui.field(each);
        if (each === 'cost_limit') {
          // It is typed in dollars.
          expect(await control.getAttribute('inputmode')).toBe('decimal');
          expect(await ui.of(each, "each.closest('p').textContent")).toContain('Dollars that may be spent');
          continue;
        }
        expect(await control.getAttribute('min'), each).toBe(minimum === undefined ? null : String(minimum));
        expect(await control.getAttribute('max'), each).toBe(maximum === undefined ? null : String(maximum));
        expect(await ui.of(each, 'each.required'), each).toBe(required?.includes(each) ?? false);
        const hint = await ui.of(each, "each.closest('p').querySelector('small').textContent");
        expect(hint, each).toContain(properties[each]?.description);
      }
    },
  );

  test('hides secrets while they are typed, in the form and in the code', async () => {
    await ui.form();
    await ui.fill(CHAT);
    expect(await ui.field('client_api_key').getAttribute('type')).toBe('password');
    for (const language of ['curl', 'TypeScript', 'Python']) {
      await ui.press(language);
      const code = await ui.region(`The request in ${language}`).innerText();
      expect(code).toContain('CLIENT_API_KEY');
      expect(code).toContain('sandbox');
      for (const secret of [KEY, KEY.slice(0, 12), stack.apiKey]) expect(code).not.toContain(secret);
    }
  });

  const METADATA = `{"it's": "a \\"quote\\" and a \\\\", "flag": true, "none": null, "list": [1, "ü"], "__proto__": {"x": 1}}`;
  test.each([
    ['curl', 'bash', ['-c']],
    ['TypeScript', process.execPath, ['--import', 'tsx', '--input-type=module', '-e']],
    ...(hasPython ? ([['Python', PYTHON, ['-c']]] as const) : []),
  ] as const)('shows a %s that issues what the form issues', async (language, program, args) => {
    await ui.form();
    await ui.fill({
      ...CHAT,
      metadata: METADATA,
      models: 'sandbox-1\nsandbox-mini',
      method: 'POST',
      external_session: language,
    });
    await ui.press(language);
    const code = await ui.region(`The request in ${language}`).innerText();
    // A shell writes this variable into JSON as it is.
    const key = language === 'curl' ? 'sk-sandbox-$HOME`' : KEY;
    const env = { ...process.env, PRESIGN_API_KEY: stack.apiKey, CLIENT_API_KEY: key };
    const { stdout } = await run(program, [...args, code], {
      env,
      cwd: fileURLToPath(new URL('..', import.meta.url)),
    });
    const url = language === 'curl' ? (JSON.parse(stdout) as { url: string }).url : stdout.trim();
    const body = JSON.stringify({
      model: 'sandbox-1',
      max_tokens: 5,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    expect(answer.status, await answer.text()).toBe(200);
    expect(answer.headers.get('x-presign-uses-remaining')).toBe('1');
    const headers = { authorization: `Bearer ${stack.apiKey}` };
    const list = await fetch(`${stack.issuerUrl}/v1/sessions?external_session=${language}`, { headers });
    const { data } = (await list.json()) as { data: { id: string }[] };
    const session = await fetch(`${stack.issuerUrl}/v1/sessions/${data[0]?.id}`, { headers });
    const { grants } = (await session.json()) as { grants: { metadata: object }[] };
    const { metadata } = grants[0] ?? {};
    expect({ ...metadata }).toMatchObject({
      "it's": 'a "quote" and a \\',
      flag: true,
      none: null,
      list: [1, 'ü'],
    });
    expect(JSON.stringify(metadata)).toContain('"__proto__":{"x":1}');
  });

  test('explains a value out of range before it is sent, even in a folded field', async () => {
    await ui.form();
    await ui.fill({ ...CHAT, calls_per_day: '0' });
    await ui.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = false");
    await ui.press('Issue');
    expect(await ui.page.evaluate('document.activeElement.name')).toBe('calls_per_day');
    expect(await ui.page.getByRole('heading', { name: 'Issued' }).count()).toBe(0);
    await ui.fill({ calls_per_day: '5', metadata: '{' });
    await ui.press('Issue');
    expect(await ui.page.evaluate('document.activeElement.validationMessage')).toBe('Expected JSON.');
  });

  test("shows the issuer's refusal, and focuses the field that it names", async () => {
    await ui.form();
    await ui.fill({ ...CHAT, path: 'v1/chat' });
    await ui.press('Issue');
    await ui.page.getByRole('alert').getByText('path').waitFor();
    expect(await ui.page.evaluate('document.activeElement.name')).toBe('path');
  });
});
