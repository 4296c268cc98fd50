import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ToolCall } from './provider.ts';

export type Environment = 'aider' | 'agent-sdk';

/** A coding agent that answers one prompt without a person. */
export type Agent = {
  readonly name: string;
  /** Its package, whose version `package.json` pins. */
  readonly package: string;
  /** The environment of Python that it runs in. */
  readonly environment?: Environment;
  readonly provider: 'anthropic' | 'openai' | 'google';
  readonly paths: readonly string[];
  readonly model: string;
  /** A body that costs one use of its URL. */
  readonly least: object;
  /** The tool that reads `note.txt` of the project. */
  readonly reads?: (project: string) => ToolCall;
  /** The format of a bundle's document that it reads. */
  readonly format?: string;
  /** How many calls it makes at once. Each holds its own money. Undefined: one. */
  readonly callsAtOnce?: number;
  /** How often it makes a call that is refused with 402 or 403. Undefined: the test does not say. */
  readonly attempts?: number;
  /** Whether it asks for whole answers instead of streams. */
  readonly isWhole?: boolean;
  readonly start: (at: Place, url: string, prompt: string) => Started;
};

/** Where an agent's program is, and the folders that it may write. */
export type Place = {
  readonly packages: string;
  readonly node: string;
  /** The interpreters that have the agents of Python. */
  readonly python: Readonly<Record<Environment, string>>;
  readonly home: string;
  readonly project: string;
  /** A bundle's document in the agent's format. */
  readonly bundle: string | undefined;
};

export type Started = {
  readonly command: readonly [program: string, ...args: string[]];
  readonly env?: Readonly<Record<string, string>>;
};

const write = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};
const writeJson = (path: string, value: object): void => write(path, JSON.stringify(value));

/** The address and the token of a URL, which is in a header then: an agent may print its address. */
function split(url: string): { base: string; token: string } {
  const [, base = '', token = ''] = /^(.*\/llm)\/t\/([^/]+)/.exec(url) ?? [];
  return { base, token };
}

const NO_SERVERS = '{"mcpServers":{}}';

/** The URL up to the part that the agent adds. */
const upTo = (url: string, part: string): string => url.slice(0, url.indexOf(part));

const CLAUDE = {
  provider: 'anthropic',
  paths: ['/v1/messages', '/v1/messages/count_tokens'],
  model: 'claude-opus-5-5',
  least: { model: 'claude-haiku-4-5', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] },
  reads: (project: string) => ({ name: 'Read', input: { file_path: join(project, 'note.txt') } }),
  format: 'claude-code',
  attempts: 1,
} as const;
/** The tools that Claude Code may use unasked. */
const ALLOWED = ['Read', 'mcp__sums__get-sum'];

const claudeCode: Agent = {
  ...CLAUDE,
  name: 'Claude Code',
  package: '@anthropic-ai/claude-code',
  start: ({ packages, home, bundle = NO_SERVERS }, url, prompt) => {
    const { base, token } = split(url);
    const env = { ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: token };
    writeJson(join(home, '.claude/settings.json'), { env });
    const servers = join(home, '.mcp.json');
    write(servers, bundle);
    const program = join(packages, '@anthropic-ai/claude-code-linux-x64/claude');
    return {
      command: [program, '-p', prompt, '--mcp-config', servers, '--allowedTools', ALLOWED.join()],
      env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    };
  },
};

const claudeAgentSdk: Agent = {
  ...CLAUDE,
  name: 'Claude Agent SDK (TypeScript)',
  package: '@anthropic-ai/claude-agent-sdk',
  start: ({ packages, node, bundle = NO_SERVERS }, url, prompt) => {
    const { base, token } = split(url);
    return {
      command: [node, join(packages, '../claude-agent-sdk.mjs'), prompt, bundle, ALLOWED.join()],
      env: {
        ...{ ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: token, ANTHROPIC_MODEL: CLAUDE.model },
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
    };
  },
};

const { format: _, ...WITHOUT_SERVERS } = CLAUDE;

const claudeAgentSdkOfPython: Agent = {
  ...WITHOUT_SERVERS,
  name: 'Claude Agent SDK (Python)',
  package: 'claude-agent-sdk',
  environment: 'agent-sdk',
  start: ({ python }, url, prompt) => {
    const { base, token } = split(url);
    const program = join(import.meta.dirname, '../python/claude_agent_sdk_client.py');
    return {
      command: [python['agent-sdk'], program, prompt],
      env: {
        ...{ ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: token },
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
    };
  },
};

const codex: Agent = {
  name: 'Codex',
  package: '@openai/codex',
  provider: 'openai',
  paths: ['/v1/responses'],
  model: 'gpt-6.1-sol',
  least: { model: 'gpt-4o-mini', input: 'x', max_output_tokens: 16 },
  reads: () => ({ name: 'exec_command', input: { cmd: 'cat note.txt' } }),
  format: 'codex',
  start: ({ packages, node, home, bundle = '' }, url, prompt) => {
    const { base, token } = split(url);
    const settings = [
      `model = "${codex.model}"`,
      'model_provider = "presign"',
      'web_search = "disabled"',
      '[model_providers.presign]',
      'name = "Presign"',
      `base_url = "${base}/v1"`,
      'wire_api = "responses"',
      `http_headers = { Authorization = "Bearer ${token}" }`,
      // By default it does not wait for a program that npx has to fetch first.
      bundle.replace(/^command = .*/m, '$&\nrequired = true\nstartup_timeout_sec = 60'),
    ];
    write(join(home, '.codex/config.toml'), settings.join('\n'));
    const program = join(packages, '@openai/codex/bin/codex.js');
    const unasked = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
    return { command: [node, program, 'exec', ...unasked, prompt] };
  },
};

const geminiCli: Agent = {
  name: 'Gemini CLI',
  package: '@google/gemini-cli',
  provider: 'google',
  paths: [
    '/v1beta/models/gemini-2.5-flash:generateContent',
    '/v1beta/models/*:generateContent',
    '/v1beta/models/*:streamGenerateContent',
    '/v1beta/models/*:countTokens',
  ],
  model: 'gemini-2.5-flash',
  least: { contents: [{ parts: [{ text: 'x' }] }], generationConfig: { maxOutputTokens: 1 } },
  reads: (project) => ({ name: 'read_file', input: { file_path: join(project, 'note.txt') } }),
  format: 'gemini-cli',
  start: ({ packages, node, home, bundle = NO_SERVERS }, url, prompt) => {
    const settings = {
      ...(JSON.parse(bundle) as object),
      security: { auth: { selectedType: 'gemini-api-key' } },
      telemetry: { enabled: false },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
    };
    writeJson(join(home, '.gemini/settings.json'), settings);
    const program = join(packages, '@google/gemini-cli/bundle/gemini.js');
    return {
      command: [node, program, '-m', geminiCli.model, '--skip-trust', '-y', '-p', prompt],
      env: { GOOGLE_GEMINI_BASE_URL: upTo(url, '/v1beta/'), GEMINI_API_KEY: 'presigned' },
    };
  },
};

const OPENAI = {
  provider: 'openai',
  paths: ['/v1/chat/completions'],
  model: 'gpt-5.1',
  least: { model: 'gpt-4o-mini', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] },
} as const;

const opencode: Agent = {
  ...OPENAI,
  name: 'opencode',
  package: 'opencode-ai',
  // The second one asks for a title.
  callsAtOnce: 2,
  reads: (project) => ({ name: 'read', input: { filePath: join(project, 'note.txt') } }),
  format: 'opencode',
  start: ({ packages, home, bundle = '{}' }, url, prompt) => {
    const { base, token } = split(url);
    const models = { [opencode.model]: {} };
    const options = { baseURL: `${base}/v1`, apiKey: token };
    writeJson(join(home, '.config/opencode/opencode.json'), {
      ...(JSON.parse(bundle) as object),
      autoupdate: false,
      share: 'disabled',
      provider: { presign: { npm: '@ai-sdk/openai-compatible', name: 'Presign', options, models } },
      model: `presign/${opencode.model}`,
      small_model: `presign/${opencode.model}`,
    });
    const program = join(packages, 'opencode-linux-x64/bin/opencode');
    return { command: [program, 'run', prompt], env: { OPENCODE_DISABLE_MODELS_FETCH: '1' } };
  },
};

const continueCli: Agent = {
  ...OPENAI,
  name: 'Continue',
  // It chooses between them by the name of the model.
  paths: ['/v1/responses', '/v1/chat/completions'],
  least: { model: 'gpt-4o-mini', input: 'x', max_output_tokens: 16 },
  package: '@continuedev/cli',
  format: '',
  start: ({ packages, node, home, bundle = NO_SERVERS }, url, prompt) => {
    const { base, token } = split(url);
    const model = {
      name: 'presign',
      provider: 'openai',
      model: opencode.model,
      apiBase: `${base}/v1`,
      apiKey: token,
    };
    const config = join(home, 'continue.yaml');
    writeJson(config, {
      name: 'Presign',
      version: '1.0.0',
      schema: 'v1',
      models: [{ ...model, roles: ['chat'] }],
      mcpServers: continueServers(bundle),
    });
    const program = join(packages, '@continuedev/cli/dist/cn.js');
    return {
      command: [node, program, '--config', config, '--auto', '-p', prompt],
      env: { CONTINUE_TELEMETRY_ENABLED: '0', CONTINUE_CLI_ENABLE_TELEMETRY: '0' },
    };
  },
};

/** https://docs.continue.dev/customize/deep-dives/mcp: a list of servers, each with its name. */
function continueServers(bundle: string): readonly object[] {
  const { mcpServers } = JSON.parse(bundle) as {
    mcpServers: Record<string, { url: string; transport: string }>;
  };
  return Object.entries(mcpServers).map(([name, { url, transport }]) => ({
    ...{ name, url, type: transport === 'http' ? 'streamable-http' : 'sse' },
  }));
}

/** A program that starts aider with the options that follow. */
const startAider = (
  { python }: Place,
  program: readonly string[],
  url: string,
  more: readonly string[],
): Started => {
  const { base, token } = split(url);
  const quiet = ['--yes-always', '--no-git', '--no-auto-commits', '--no-check-update', '--no-pretty'];
  const alone = ['--analytics-disable', '--no-show-release-notes', '--no-show-model-warnings'];
  const model = ['--model', `openai/${AIDER.model}`, '--no-detect-urls'];
  return {
    command: [python.aider, ...program, ...model, ...quiet, ...alone, ...more],
    env: { OPENAI_API_BASE: `${base}/v1`, OPENAI_API_KEY: token, LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
  };
};

const AIDER = { ...OPENAI, package: 'aider-chat', environment: 'aider', model: 'gpt-4o-mini' } as const;

/** It has no tools of the API, and repeats a refusal until it would wait for over a minute. */
const aider: Agent = {
  ...AIDER,
  name: 'aider',
  attempts: 9,
  start: (at, url, prompt) => startAider(at, ['-m', 'aider'], url, ['--message', prompt]),
};

/** As docs/guides/clients/coding-agents.md turns its retries off. */
const ONCE =
  'from aider.coders import base_coder; base_coder.RETRY_TIMEOUT = 0; from aider.main import main; main()';

const aiderOnce: Agent = {
  ...AIDER,
  name: 'aider without retries or streams',
  attempts: 1,
  isWhole: true,
  start: (at, url, prompt) => startAider(at, ['-c', ONCE], url, ['--no-stream', '--message', prompt]),
};

export const AGENTS: readonly Agent[] = [
  ...[claudeCode, claudeAgentSdk, claudeAgentSdkOfPython, codex, geminiCli, opencode, continueCli],
  ...[aider, aiderOnce],
];
