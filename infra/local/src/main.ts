import { existsSync } from 'node:fs';
import { causeOf } from '@presign/service';
import { startLog } from '@presign/service/log';
import { runProcess } from '@presign/service/start';
import { type LocalEnv, readLocalEnv } from './env.ts';
import { showRefusals } from './refusals-shown.ts';
import { type RunningLocal, runLocal } from './run.ts';

/** `pnpm start`: both services in one process, and a first call to paste. */
runProcess('start', portVariable, async () => {
  const env = readLocalEnv();
  const shown = showRefusals();
  const isShown = env.logLevel === 'warn';
  const log = isShown
    ? startLog({ level: 'info' }, undefined, shown.textOf)
    : startLog({ level: env.logLevel });
  const local = await runLocal(env, log);
  process.stdout.write(readyMessage(env, local));
  // In the background: the first call does not wait for it.
  local
    .writeSample?.(shown.hide)
    .catch((error: unknown) => log.warn(causeOf(error), 'the sample is not complete'));
  return async () => {
    process.stdout.write('\nDraining and closing…\n');
    await local.close();
    process.exit(0);
  };
});

/** The variable that sets this port. */
function portVariable(port: number): string {
  const { issuerPort, metricsPort } = readLocalEnv();
  if (port === metricsPort) return 'METRICS_PORT';
  return port === issuerPort ? 'ISSUER_PORT' : 'GATEWAY_PORT';
}

function readyMessage(env: LocalEnv, { keys, sandboxMcpUrl, writeSample }: RunningLocal): string {
  const apiKey = keys.apiKeyFile === undefined ? 'BOOTSTRAP_API_KEY' : keys.apiKeyFile;
  const lines = [
    'Presign is ready.',
    '',
    `  issuer         ${env.issuerUrl}`,
    `  gateway        ${env.gatewayUrl}`,
    `  console        ${env.issuerUrl}/console/`,
    `  clients        ${env.issuerUrl}/clients/`,
    `  admin API key  in ${apiKey}`,
  ];
  if (writeSample || existsSync(keys.sampleKeyFile))
    lines.push(`  sample data    sign in to the console with ${keys.sampleKeyFile}`);
  if (sandboxMcpUrl !== undefined) {
    lines.push('  sandbox        provider "sandbox" (offline)', `  sandbox MCP    ${sandboxMcpUrl}`);
    lines.push(
      '',
      'Issue a URL that may be called three times, and call it:',
      '',
      firstCall(env, keys.apiKeyFile),
    );
  }
  return `\n${lines.join('\n')}\n\n`;
}

/** One line to paste: the inner curl asks the issuer for a URL, the outer one calls it. */
function firstCall(env: LocalEnv, apiKeyFile: string | undefined): string {
  const key = apiKeyFile === undefined ? '$BOOTSTRAP_API_KEY' : `$(cat '${apiKeyFile}')`;
  const ask =
    '{"provider":"sandbox","path":"/v1/chat/completions","client_api_key":"sk-sandbox","max_uses":3}';
  const issue = `curl -s ${env.issuerUrl}/v1/presign -H "Authorization: Bearer ${key}" -H 'Content-Type: application/json' -d '${ask}'`;
  const body = '{"model":"sandbox-1","messages":[{"role":"user","content":"Hello"}]}';
  return `curl -s "$(${issue} | sed 's/.*"url":"\\([^"]*\\)".*/\\1/')" -H 'Content-Type: application/json' -d '${body}'`;
}
