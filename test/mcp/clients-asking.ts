import { eventually } from '../harness/eventually.ts';
import { callTool, codeOf, type Scenario, textOf } from './clients-scenario.ts';

const RESOURCE = 'demo://resource/dynamic/text/1';
const sum = (a: unknown, b: unknown) => ({ a, b });

/** The requests of a client to a server. */
export const ASKING: readonly Scenario[] = [
  {
    feature: 'handshake, ping',
    uses: 0,
    run: async ({ client }) => {
      await client.ping();
      const { name } = client.getServerVersion() ?? {};
      return { name, features: Object.keys(client.getServerCapabilities() ?? {}).sort() };
    },
    outcome: {
      name: 'mcp-servers/everything',
      features: ['logging', 'prompts', 'resources', 'tasks', 'tools', 'completions'].sort(),
    },
  },
  {
    feature: 'tools: list, call',
    uses: 3,
    run: async (driven) => {
      const { tools } = await driven.client.listTools();
      const long = 'Grüße 🌍 '.repeat(20_000);
      const echoed = textOf(await callTool(driven, 'echo', { message: long }));
      const weather = await callTool(driven, 'get-structured-content', { location: 'Chicago' });
      return {
        lists: ['echo', 'get-sum'].every((name) => tools.some((tool) => tool.name === name)),
        sum: textOf(await callTool(driven, 'get-sum', sum(2, 3))),
        isEchoed: echoed === `Echo: ${long}`,
        structured: typeof weather.structuredContent,
      };
    },
    outcome: { lists: true, sum: 'The sum of 2 and 3 is 5.', isEchoed: true, structured: 'object' },
  },
  {
    feature: 'tools: a failing call',
    // A tool that fails with a result has worked.
    uses: 2,
    run: async (driven) => ({
      badArguments: (await callTool(driven, 'get-sum', sum('two', 3))).isError,
      unknownTool: (await callTool(driven, 'no-such-tool')).isError,
    }),
    outcome: { badArguments: true, unknownTool: true },
  },
  {
    feature: 'resources: list, templates, read',
    // The read of an unknown resource counts: its error is -32602.
    uses: 2,
    run: async ({ client }) => {
      const { resources } = await client.listResources();
      const { resourceTemplates } = await client.listResourceTemplates();
      const { contents } = await client.readResource({ uri: RESOURCE });
      return {
        some: resources.length > 0,
        templates: resourceTemplates.map(({ uriTemplate }) => uriTemplate).sort(),
        read: contents.map(({ uri, mimeType }) => ({ uri, mimeType })),
        unknown: await codeOf(client.readResource({ uri: 'demo://no/such' })),
      };
    },
    outcome: {
      some: true,
      templates: ['demo://resource/dynamic/blob/{resourceId}', 'demo://resource/dynamic/text/{resourceId}'],
      read: [{ uri: RESOURCE, mimeType: 'text/plain' }],
      unknown: -32602,
    },
  },
  {
    feature: 'resources: subscribe, updated',
    uses: 1,
    run: async (driven) => {
      const { client, heard } = driven;
      await client.subscribeResource({ uri: RESOURCE });
      await callTool(driven, 'toggle-subscriber-updates');
      const updated = await eventually(async () => heard.find(({ method }) => method.endsWith('/updated')));
      await client.unsubscribeResource({ uri: RESOURCE });
      return updated;
    },
    outcome: { method: 'notifications/resources/updated', params: { uri: RESOURCE } },
  },
  {
    feature: 'prompts: list, get',
    uses: 3,
    run: async ({ client }) => {
      const { prompts } = await client.listPrompts();
      const simple = await client.getPrompt({ name: 'simple-prompt' });
      const asked = await client.getPrompt({ name: 'args-prompt', arguments: { city: 'Ulm' } });
      return {
        lists: prompts.some(({ name }) => name === 'args-prompt'),
        messages: [simple.messages.length, asked.messages.length],
        namesCity: JSON.stringify(asked.messages).includes('Ulm'),
        unknown: await codeOf(client.getPrompt({ name: 'no-such-prompt' })),
      };
    },
    outcome: { lists: true, messages: [1, 1], namesCity: true, unknown: -32602 },
  },
  {
    feature: 'completion',
    uses: 0,
    run: async ({ client }) => {
      const ref = { type: 'ref/prompt' as const, name: 'completable-prompt' };
      const context = { arguments: { department: 'Sales' } };
      const departments = await client.complete({ ref, argument: { name: 'department', value: 'S' } });
      const names = await client.complete({ ref, argument: { name: 'name', value: 'E' }, context });
      return [departments.completion.values, names.completion.values];
    },
    outcome: [['Sales', 'Support'], ['Eve']],
  },
];
