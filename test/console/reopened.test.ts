import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';

// A dialog closes at once, and its event `close` comes in a later task. A user who opens it again in between must find it whole.
describe.skipIf(!hasChromium)('a dialog that is opened again before the event of its closing', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;
  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  /** Closes the open dialog, opens it again in the same task, and waits until its event `close` has been handled. */
  const reopen = (open: string) =>
    ui.page.evaluate(`(async () => {
      const dialog = document.querySelector('dialog[open]');
      const handled = new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
      dialog.close();
      ${open};
      await handled;
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 100)));
    })()`);

  test('the search takes a text, and its field is empty before', async () => {
    await ui.page.keyboard.press('Control+K');
    const field = ui.page.getByRole('combobox', { name: /^Search/ });
    await field.fill('earlier');
    await reopen(`window.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }))`);
    expect(await field.inputValue()).toBe('');
    await ui.page.keyboard.type('adam');
    await eventually(async () =>
      (await ui.page.getByRole('option').allInnerTexts()).some((each) => each.startsWith('adam')),
    );
    await ui.page.keyboard.press('Escape');
    await ui.page.keyboard.press('Escape');
    await ui.page.getByRole('dialog').waitFor({ state: 'hidden' });
  });

  test('a form makes its change', async () => {
    await ui.page.goto(`${stack.consoleUrl}#/keys`);
    await settled(ui.page);
    const create = ui.page.getByRole('button', { name: 'Create an API key' });
    await create.click();
    await reopen(
      `[...document.querySelectorAll('button')].find((each) => each.innerText === 'Create an API key').click()`,
    );
    const dialog = ui.page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('made after all');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.getByText('Close').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await ui.page.getByText('made after all').first().waitFor();
  });
});
