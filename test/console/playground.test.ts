import { startSandboxMcp } from '@presign/local';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { type RealtimeProvider, startRealtimeProvider } from '../sockets/realtime-provider.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';
import { CHAT, type IssueScreen, openIssue } from './issue-screen.ts';

describe.skipIf(!hasChromium)('the playground', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let mcp: Awaited<ReturnType<typeof startSandboxMcp>>;
  let realtime: RealtimeProvider;
  let ui: IssueScreen;

  beforeAll(async () => {
    realtime = await startRealtimeProvider();
    [stack, browser, mcp] = await Promise.all([
      startConsole({ providers: { openai: { base_url: realtime.url } } }),
      openChromium(),
      startSandboxMcp(),
    ]);
    ui = await openIssue(browser, stack);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
    await mcp?.close();
    await realtime?.close();
  });

  const answer = () => ui.region('The answer');
  const explained = () => ui.page.getByRole('alert');
  /** Issues a URL with sockets. */
  const issueSocket = async (texts: Readonly<Record<string, string>>) => {
    await ui.form();
    await ui.fill(texts);
    const fold = ui.page.locator('details:not([open])', { has: ui.field('sockets') });
    if (await fold.count()) await fold.locator('summary').click();
    await ui.field('sockets').check();
    await ui.press('Issue');
    await ui.page.getByLabel('Way', { exact: true }).waitFor();
    await ui.page.getByLabel('Way', { exact: true }).selectOption('socket');
  };
  const expectGood = async () => {
    expect(await ui.violations()).toEqual([]);
    const own = [`request to ${stack.gatewayUrls[0]}`];
    expect(ui.problems.filter((each) => !own.includes(each))).toEqual([]);
  };

  test('a refused call shows its code, the reason and the next step', async () => {
    await ui.form();
    await ui.fill({ ...CHAT, max_uses: '1' });
    await ui.press('Issue');
    await ui.press('Call');
    await ui.page.getByText('The call has ended.').waitFor();
    await ui.press('Call');
    await explained()
      .getByText('Refused with uses_exhausted. This URL has no uses left (max_uses 1)')
      .waitFor();
    await explained().getByText('Raise the uses on the page of the URL').waitFor();
    await ui.page.evaluate('scrollTo(0, document.body.scrollHeight)');
    await ui.picture('playground', 560);
    await expectGood();
  });

  test('a Responses turn runs on a socket, and a refused one is explained', async () => {
    await issueSocket({ ...CHAT, path: '/v1/responses', max_uses: '1' });
    await ui.press('Call');
    await answer().getByText('Why is the sky blue?').waitFor();
    await ui.page.getByText('The call has ended.').waitFor();
    await ui.page.locator('dl > div', { hasText: 'Uses left' }).getByText('0', { exact: true }).waitFor();
    await ui.press('Call');
    await explained().getByText('Refused with uses_exhausted.').waitFor();
    await explained().getByText('Raise the uses on the page of the URL').waitFor();
    await expectGood();
  });

  test('a Realtime turn in text runs on a socket', async () => {
    await issueSocket({
      ...{ provider: 'openai', path: '/v1/realtime', client_api_key: 'sk-real-secret-key' },
      ...{ models: 'gpt-realtime', cost_limit: '5', max_uses: '1' },
    });
    await ui.press('Call');
    await answer().getByText('Hello.').waitFor();
    await ui.page.getByText('The call has ended.').waitFor();
    await ui.press('Call');
    await explained().getByText('Refused with uses_exhausted.').waitFor();
  });

  test('the tools of a bundle are listed, and a refusal is explained', async () => {
    await ui.form(true);
    await ui.fill({
      ...{ 'servers[0].name': 'tools', 'servers[0].url': mcp.url, 'servers[0].transport': 'http' },
      'servers[0].tools': 'add',
    });
    await ui.press('Issue');
    await ui.page.getByRole('button', { name: 'List the tools of tools' }).click();
    const tools = ui.page.getByRole('table', { name: 'Tools of tools' });
    await tools.getByRole('rowheader', { name: 'add' }).waitFor();
    expect(await tools.getByRole('rowheader').allInnerTexts()).toEqual(['add']);
    await expectGood();
    const id =
      (await ui.page
        .locator('dl > div', { hasText: 'URL' })
        .getByRole('link')
        .first()
        .getAttribute('href')) ?? '';
    const revoked = await fetch(`${stack.issuerUrl}/v1/grants/${id.split(/[/?]/)[3]}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    expect(revoked.status).toBe(204);
    await ui.page.getByRole('button', { name: 'List the tools of tools' }).click();
    await explained().getByText('Refused with grant_revoked.').waitFor();
    await explained().getByText('Issue another URL.').waitFor();
  });
});
