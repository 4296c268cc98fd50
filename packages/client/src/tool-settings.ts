import { anthropicOptions, headerForm, type Issued, openaiOptions } from './sdk-options.ts';

/** A program that calls models, and how it is set up with an issued URL. */
export type Tool = {
  /** The provider whose API it calls, unless another is named. */
  readonly provider: string;
  /** The paths that it calls. The first ends the URL. */
  readonly paths: readonly string[];
  /** Where its settings belong. */
  readonly where: string;
  readonly needsModel?: boolean;
  /** The model that it calls unless its settings name one. Undefined: a person or a program chooses. */
  readonly usualModel?: string;
  /** The text to paste. */
  readonly settings: (issued: Issued, model: string | undefined) => string;
};

const CHAT = ['/v1/chat/completions', '/v1/responses', '/v1/embeddings'];
const MESSAGES = ['/v1/messages', '/v1/messages/count_tokens'];

/** JSON strings are strings of Python, TypeScript and TOML, too. */
const text = (value: string): string => JSON.stringify(value);
const json = (value: unknown): string => JSON.stringify(value, null, 2);

/** https://code.claude.com/docs/en/env-vars, and the `env` block of https://code.claude.com/docs/en/settings. */
const claudeCode = (issued: Issued, model: string | undefined): string => {
  const { base, token } = headerForm(issued);
  const names = { ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: token };
  return json({ env: model === undefined ? names : { ...names, ANTHROPIC_MODEL: model } });
};

/**
 * https://developers.openai.com/codex/config-advanced, "Custom model providers". TOML has the keys of the root first. Web
 * search is off, because Codex does not limit its searches, and a `cost_limit` refuses calls with unlimited searches. Codex prints
 * its address in errors, so the token is in a header.
 */
const codex = (issued: Issued, model: string | undefined): string => {
  const { base, token } = headerForm(issued);
  return [
    ...(model === undefined ? [] : [`model = ${text(model)}`]),
    'model_provider = "presign"',
    'web_search = "disabled"',
    '',
    '[model_providers.presign]',
    'name = "Presign"',
    `base_url = ${text(`${base}/v1`)}`,
    'wire_api = "responses"',
    `http_headers = { Authorization = ${text(`Bearer ${token}`)} }`,
  ].join('\n');
};

/** Cursor has no file for this: both fields are in its settings, under Models. */
const cursor = (issued: Issued): string => {
  const { baseURL, apiKey } = openaiOptions(issued);
  return `OpenAI API Key: ${apiKey}\nOverride OpenAI Base URL: ${baseURL}`;
};

/**
 * `chatLanguageModels.json` with the provider "Custom Endpoint"
 * (https://code.visualstudio.com/docs/agent-customization/language-models). It takes the address of the call itself.
 */
const vscode = ({ url }: Issued, model = ''): string => {
  const entry = { id: model, name: `${model} (Presign)`, url, toolCalling: true, vision: false };
  const models = [{ ...entry, maxInputTokens: 128_000, maxOutputTokens: 16_000 }];
  const apiKey = 'presigned';
  return json([{ name: 'Presign', vendor: 'customendpoint', apiKey, apiType: 'chat-completions', models }]);
};

const python = (from: string, name: string, { baseURL, apiKey }: { baseURL: string; apiKey: string }) =>
  `from ${from} import ${name}\n\nclient = ${name}(base_url=${text(baseURL)}, api_key=${text(apiKey)})`;

const typescript = (from: string, name: string, options: object) =>
  `import ${name} from '${from}';\n\nconst client = new ${name.replace(/\W/g, '')}(${json(options)});`;

const CODE = 'your program';

/** The tools by the name that `--for` takes. Their usual models are of Claude Code 2.1.332 and Codex 0.171, November 2026. */
export const TOOLS: ReadonlyMap<string, Tool> = new Map<string, Tool>([
  [
    'claude-code',
    {
      provider: 'anthropic',
      paths: MESSAGES,
      where: '~/.claude/settings.json',
      usualModel: 'claude-opus-5-5',
      settings: claudeCode,
    },
  ],
  [
    'codex',
    {
      provider: 'openai',
      paths: ['/v1/responses'],
      where: '~/.codex/config.toml',
      usualModel: 'gpt-6.2-sol',
      settings: codex,
    },
  ],
  ['cursor', { provider: 'openai', paths: CHAT, where: 'Cursor Settings, under Models', settings: cursor }],
  [
    'vscode',
    {
      provider: 'openai',
      paths: CHAT,
      where: 'chatLanguageModels.json (command "Chat: Manage Language Models")',
      needsModel: true,
      settings: vscode,
    },
  ],
  [
    'openai-python',
    {
      provider: 'openai',
      paths: CHAT,
      where: CODE,
      settings: (issued) => python('openai', 'OpenAI', openaiOptions(issued)),
    },
  ],
  [
    'openai-ts',
    {
      provider: 'openai',
      paths: CHAT,
      where: CODE,
      settings: (issued) => typescript('openai', 'OpenAI', openaiOptions(issued)),
    },
  ],
  [
    'anthropic-python',
    {
      provider: 'anthropic',
      paths: MESSAGES,
      where: CODE,
      settings: (issued) => python('anthropic', 'Anthropic', anthropicOptions(issued)),
    },
  ],
  [
    'anthropic-ts',
    {
      provider: 'anthropic',
      paths: MESSAGES,
      where: CODE,
      settings: (issued) => typescript('@anthropic-ai/sdk', 'Anthropic', anthropicOptions(issued)),
    },
  ],
]);

/** The clients of MCP servers that the gateway has a format for (`?format=` of `bundle_url`), and where it belongs. */
export const MCP_TOOLS: ReadonlyMap<string, string> = new Map([
  ['claude-code', '.mcp.json in your project'],
  ['claude-desktop', 'claude_desktop_config.json'],
  ['cursor', '~/.cursor/mcp.json'],
  ['vscode', '.vscode/mcp.json in your project'],
  ['windsurf', 'mcp_config.json'],
  ['cline', 'cline_mcp_settings.json'],
  ['gemini-cli', '.gemini/settings.json in your project'],
  ['opencode', 'opencode.json in your project'],
  ['pydantic-ai', 'the file that you pass to load_mcp_toolsets'],
  ['codex', '~/.codex/config.toml'],
]);
