import { type ChildProcess, spawn } from 'node:child_process';
import { runCli } from '@presign/issuer';
import { entryPoint } from '../harness/service-bundles.ts';

/** The result of a command: its exit code and its output. */
export type Left = { readonly code: number | null; readonly out: string; readonly err: string };

type Env = Readonly<Record<string, string | undefined>>;

/** `presign …` in this process, with these variables alone; `input` is its standard input. */
export async function presign(args: readonly string[], env: Env = {}, input = ''): Promise<Left> {
  let [out, err] = ['', ''];
  const code = await runCli(args, {
    env,
    input: async () => input,
    localKey: () => undefined,
    out: (line) => {
      out += `${line}\n`;
    },
    note: (line) => {
      err += `${line}\n`;
    },
  });
  return { code, out, err };
}

/** `presign …` in a process of its own. */
export function spawnPresign(args: readonly string[], env: Env, input = ''): ChildProcess {
  const child = spawn(process.execPath, [...entryPoint('issuer', 'cli'), ...args], {
    stdio: 'pipe',
    env: { PATH: process.env.PATH, ...env },
  });
  child.stdin?.end(input);
  return child;
}

/** Waits for the end of a process. */
export async function endOf(child: ChildProcess): Promise<Left> {
  let [out, err] = ['', ''];
  child.stdout?.on('data', (chunk) => {
    out += String(chunk);
  });
  child.stderr?.on('data', (chunk) => {
    err += String(chunk);
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, err };
}
