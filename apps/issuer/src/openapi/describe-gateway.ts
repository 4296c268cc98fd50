import type { OpenApi } from './describe-api.ts';

/** The tags of the gateway's routes. Links are relative to the page at `/docs/api`. */
const GATEWAY_TAGS = {
  'LLM calls':
    'Calls of a provider through an issued URL. [LLM calls](reference/calls) has their checks, changes and charges.',
  'MCP calls':
    'Calls of an MCP server through a bundle. [MCP calls](reference/mcp) has transports, charges and refusals.',
} as const;

type Tag = keyof typeof GATEWAY_TAGS;

/** The document of `/docs/api`: the issuer's own, and the routes of the gateway. */
export const describeBoth = (api: OpenApi, gatewayUrl: string): object => ({
  ...api,
  tags: [...api.tags, ...Object.entries(GATEWAY_TAGS).map(([name, description]) => ({ name, description }))],
  paths: { ...api.paths, ...describeGateway(gatewayUrl) },
  'x-tagGroups': [
    { name: 'Issuer', tags: api.tags.map(({ name }) => name) },
    { name: 'Gateway', tags: Object.keys(GATEWAY_TAGS) },
  ],
});

/** The routes of the gateway as OpenAPI has them. Providers and MCP servers choose their own bodies. */
const describeGateway = (gatewayUrl: string): Record<string, object> => {
  const servers = [{ url: gatewayUrl, description: 'The gateway.' }];
  return {
    '/llm/t/{token}/{path}': {
      servers,
      post: operation('LLM calls', 'callProvider', 'Call the provider', {
        description:
          'The issued URL. Other methods pass if the URL was issued for them. `path` may have several segments.',
        parameters: [TOKEN, { ...PATH_PARAMETER, name: 'path', example: 'v1/chat/completions' }],
        requestBody: json("The provider's own request.", {
          model: 'gpt-4o-mini',
          messages: [{ role: 'user', content: 'Hello' }],
        }),
        answer: 'The answer of the provider, or a refusal.',
      }),
    },
    '/llm/t/{token}': {
      servers,
      get: operation('LLM calls', 'askWhatIsLeft', 'Ask what is left', {
        description: 'The URL without its path. A browser gets a page, every other client JSON.',
        parameters: [TOKEN],
        answer: 'The limits of the URL, and its use so far.',
      }),
    },
    '/mcp/mcp': {
      servers,
      post: operation('MCP calls', 'callServer', 'Send a message to the MCP server', {
        description: 'A URL of a bundle. `/mcp/sse` is the same address.',
        parameters: [SERVER, TOKEN_IN_QUERY],
        requestBody: json('A JSON-RPC message.', {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'search', arguments: { query: 'weather' } },
        }),
        answer: 'The answer of the server, as JSON or as a stream of events.',
      }),
      get: operation('MCP calls', 'listenToServer', 'Open a stream of the MCP server', {
        description: 'Streamable HTTP, or the stream of the older transport.',
        parameters: [SERVER, TOKEN_IN_QUERY],
        answer: 'A stream of events.',
      }),
      delete: operation('MCP calls', 'endServerSession', 'End a session at the MCP server', {
        description: 'The session is that of the header `Mcp-Session-Id`.',
        parameters: [SERVER, TOKEN_IN_QUERY],
        answer: 'The answer of the server.',
      }),
    },
    '/mcp/bundle/{token}': {
      servers,
      get: operation('MCP calls', 'getBundle', 'Read a bundle', {
        description: '`bundle_url`. It costs no use.',
        parameters: [
          TOKEN,
          {
            name: 'format',
            in: 'query',
            required: false,
            description: 'The client that reads it.',
            schema: { type: 'string', examples: ['cursor'] },
          },
        ],
        answer: "The servers' URLs, in the form of the client.",
      }),
    },
  };
};

type Parts = {
  readonly description: string;
  readonly parameters: readonly object[];
  readonly requestBody?: object;
  readonly answer: string;
};

/** The token in the address is the permission, so there is no other. */
const operation = (tag: Tag, operationId: string, summary: string, { answer, ...parts }: Parts): object => ({
  operationId,
  tags: [tag],
  summary,
  security: [],
  ...parts,
  responses: { default: { description: answer } },
});

const json = (description: string, example: object) => ({
  required: true,
  description,
  content: { 'application/json': { schema: { type: 'object' }, example } },
});

const PATH_PARAMETER = { in: 'path', required: true, schema: { type: 'string' } };
const TOKEN = { ...PATH_PARAMETER, name: 'token', description: 'The token of the URL.' };
const TOKEN_IN_QUERY = { ...TOKEN, in: 'query' };
const SERVER = {
  ...PATH_PARAMETER,
  in: 'query',
  name: 'url',
  description: 'The address of the MCP server, as issued.',
};
