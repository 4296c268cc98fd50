import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';

/** Where Debian, Alpine, Chrome's own package and macOS put it. */
const PLACES = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const executablePath = PLACES.find((place) => place !== undefined && existsSync(place));

/** Whether this machine has one; nothing installs it. */
export const hasChromium = executablePath !== undefined;

/** This worker's browser. To start one takes a second of CPU, and each file opens pages of its own. */
let shared: Promise<Browser> | undefined;

/** The browser of this worker. A file that is done with it leaves it by `leaveChromium`. */
export function openChromium(): Promise<Browser> {
  shared ??= launch();
  return shared;
}

/** A browser of its own whose microphone hears a WAV file again and again, and whose pages may listen to it. The caller closes it. */
export const openListeningChromium = (wav: string): Promise<Browser> =>
  launch([
    ...['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'],
    `--use-file-for-fake-audio-capture=${wav}`,
  ]);

/** A browser whose cookies are kept in a folder, and which another program may open tabs in by a port. The caller closes it. */
export const openKeptChromium = (folder: string, port: number): Promise<BrowserContext> =>
  chromium.launchPersistentContext(folder, optionsOf([`--remote-debugging-port=${port}`]));

const launch = (more: readonly string[] = []): Promise<Browser> => chromium.launch(optionsOf(more));

const optionsOf = (more: readonly string[]) => ({
  executablePath: executablePath ?? '',
  // As root in a container Chromium has neither a sandbox nor much shared memory.
  args: [
    ...['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--disable-background-networking'],
    ...more,
  ],
});

/** Closes all pages, with their cookies and storage. A worker runs one file at a time, so no other file has any. */
export async function leaveChromium(): Promise<void> {
  const browser = await shared;
  await Promise.all(browser?.contexts().map((context) => context.close()) ?? []);
}
