import type { Page } from 'playwright-core';

/** A way to use a page: the keyboard alone, or a finger alone. */
export type Hand = {
  /** Activates a link or a button by its whole name. */
  readonly activate: (role: 'link' | 'button', name: string) => Promise<void>;
  /** Writes a text in a field in place of its text. */
  readonly write: (label: string, text: string) => Promise<void>;
};

/** Every element of a screen is reached with fewer presses of Tab. */
const MOST_TABS = 150;

export type Keyboard = Hand & {
  /** The text of the focused element, or the label of a field. */
  readonly focused: () => Promise<string>;
  /** Presses Tab until the element with this text has the focus. */
  readonly tabTo: (name: string | RegExp) => Promise<void>;
};

export function keyboardOf(page: Page): Keyboard {
  const { keyboard } = page;
  const focused = async () =>
    String(
      await page.evaluate(
        '(document.activeElement.labels?.[0] ?? document.activeElement).textContent.replace(/\\s+/g, " ").trim()',
      ),
    );
  const tabTo = async (name: string | RegExp) => {
    for (let step = 0; step < MOST_TABS; step++) {
      await keyboard.press('Tab');
      const text = await focused();
      if (typeof name === 'string' ? text === name : name.test(text)) return;
    }
    throw new Error(`Tab does not reach ${name}`);
  };
  return {
    focused,
    tabTo,
    activate: async (_role, name) => {
      await tabTo(name);
      await keyboard.press('Enter');
    },
    write: async (label, text) => {
      await tabTo(label);
      await keyboard.press('Control+A');
      await keyboard.type(text);
    },
  };
}

/** A finger on a page that was opened with `hasTouch`. */
export const fingerOf = (page: Page): Hand => ({
  activate: (role, name) =>
    page.getByRole(role, { name, exact: true }).filter({ visible: true }).first().tap(),
  write: async (label, text) => {
    const field = page.getByLabel(label, { exact: true }).filter({ visible: true });
    await field.tap();
    await field.fill(text);
  },
});
