import type { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { eventually } from '../harness/eventually.ts';
import type { Driven } from './clients-drive.ts';
import { type Called, callTool, codeOf, type Scenario, textOf } from './clients-scenario.ts';

const OF_TASKS = {
  kinds: ['taskCreated', 'result'],
  asked: ['elicitation/create'],
  isReport: true,
  isListed: true,
  cancelled: 'cancelled',
  afterwards: 'cancelled',
  unknown: -32602,
};

/** The requests and notifications of a server while it works. */
export const TELLING: readonly Scenario[] = [
  {
    feature: 'sampling',
    uses: 1,
    run: async (driven) => {
      const text = textOf(await callTool(driven, 'trigger-sampling-request', { prompt: 'hi', maxTokens: 5 }));
      return { asked: withoutRoots(driven), isSampled: text.includes('"sampled"') };
    },
    outcome: { asked: ['sampling/createMessage'], isSampled: true },
  },
  {
    feature: 'elicitation: form, URL',
    uses: 2,
    run: async (driven) => {
      const form = textOf(await callTool(driven, 'trigger-elicitation-request'));
      const url = { url: 'https://example.com/', errorPath: true };
      return {
        isFilled: form.includes('Name: Ada'),
        asked: withoutRoots(driven),
        url: await codeOf(callTool(driven, 'trigger-url-elicitation', url)),
      };
    },
    outcome: { isFilled: true, asked: ['elicitation/create'], url: -32042 },
  },
  {
    feature: 'roots',
    uses: 2,
    run: async (driven) => {
      const before = textOf(await callTool(driven, 'get-roots-list'));
      driven.roots.push({ uri: 'file:///second', name: 'second' });
      await driven.client.sendRootsListChanged();
      await eventually(async () => toldOf(driven, '2 root(s)'));
      const after = textOf(await callTool(driven, 'get-roots-list'));
      return [before, after].map((text) => /\((\d+) total\)/.exec(text)?.[1]);
    },
    outcome: ['1', '2'],
  },
  {
    feature: 'progress',
    uses: 1,
    run: async (driven) => {
      let heard = 0;
      const onprogress = () => {
        heard += 1;
      };
      // Long enough that a busy machine hands the first step on before the result.
      const work = { duration: 2, steps: 4 };
      const done = await callTool(driven, 'trigger-long-running-operation', work, { onprogress });
      // A client that is handed the last steps together with the result does not hear of them.
      const came = await eventually(async () => {
        const steps = wire(driven).match(/"notifications\/progress"/g) ?? [];
        return steps.length >= 4 ? steps.length : undefined;
      });
      return {
        came,
        isHeard: heard > 0,
        isDone: textOf(done).startsWith('Long running operation completed'),
      };
    },
    outcome: { came: 4, isHeard: true, isDone: true },
  },
  {
    feature: 'logging: level, messages',
    uses: 0,
    run: async (driven) => {
      const { client } = driven;
      await client.setLoggingLevel('error');
      await client.subscribeResource({ uri: 'demo://quiet' });
      await client.setLoggingLevel('info');
      await client.subscribeResource({ uri: 'demo://loud' });
      const loud = await eventually(async () => toldOf(driven, 'URI: demo://loud'));
      return { quiet: toldOf(driven, 'URI: demo://quiet'), method: loud.method, level: loud.params?.level };
    },
    outcome: { quiet: undefined, method: 'notifications/message', level: 'info' },
  },
  {
    feature: 'cancellation',
    // A call that was begun and cancelled has run.
    uses: 3,
    run: async (driven) => {
      const { road } = driven;
      const abort = new AbortController();
      // Long enough that the cancellation reaches the server in time on a busy machine.
      const work = { duration: 6, steps: 10 };
      const onprogress = () => abort.abort('called off');
      const called = callTool(driven, 'trigger-long-running-operation', work, {
        signal: abort.signal,
        onprogress,
      });
      const isRejected = await called.then(
        () => false,
        () => true,
      );
      const told = await eventually(async () =>
        road.exchanges.find(({ method, status }) => method === 'notifications/cancelled' && status),
      );
      // By the time this one ends, the one called off would have.
      await callTool(driven, 'trigger-long-running-operation', { duration: 6.5, steps: 1 });
      return {
        isRejected,
        status: told.status,
        isAnswered: /operation completed[^}]*Steps: 10/.test(wire(driven)),
        next: textOf(await callTool(driven, 'get-sum', { a: 1, b: 1 })),
      };
    },
    outcome: { isRejected: true, status: 202, isAnswered: false, next: 'The sum of 1 and 1 is 2.' },
  },
  {
    feature: 'task mode',
    generation: 'v1',
    // Both calls that became tasks; to ask after them is free.
    uses: 2,
    run: async (driven) => {
      const { tasks } = (driven.client as ClientV1).experimental;
      const call = (args: object) =>
        tasks.callToolStream(
          { name: 'simulate-research-query', arguments: { ...args } },
          CallToolResultSchema,
          {
            task: { ttl: 60_000 },
          },
        );
      const seen: string[] = [];
      let report = '';
      for await (const message of call({ topic: 'bees', ambiguous: true })) {
        if (message.type !== seen.at(-1)) seen.push(message.type);
        if (message.type === 'result') report = textOf(message.result as Called);
      }
      const begun = (await call({ topic: 'ants' }).next()).value;
      const id = begun && begun.type === 'taskCreated' ? begun.task.taskId : '';
      return {
        kinds: [seen[0], seen.at(-1)],
        asked: withoutRoots(driven),
        isReport: report.startsWith('# Research Report: bees (technical)'),
        isListed: (await tasks.listTasks()).tasks.some(({ taskId }) => taskId === id),
        cancelled: (await tasks.cancelTask(id)).status,
        afterwards: (await tasks.getTask(id)).status,
        unknown: await codeOf(tasks.getTask('no-such-task')),
      };
    },
    outcome: OF_TASKS,
    // The list may have the tasks of other holders.
    through: { ...OF_TASKS, isListed: false },
  },
  {
    feature: "task mode: the client's own tasks",
    generation: 'v1',
    uses: 1,
    run: async (driven) => {
      const called = await callTool(driven, 'trigger-sampling-request-async', { prompt: 'hi', maxTokens: 5 });
      const text = textOf(called);
      return {
        asked: withoutRoots(driven),
        isTask: text.includes('Task created'),
        isSampled: text.includes('sampled'),
      };
    },
    outcome: { asked: ['sampling/createMessage'], isTask: true, isSampled: true },
  },
];

/** The server may ask for the roots at any time. */
const withoutRoots = ({ asked }: Driven) => asked.filter((method) => method !== 'roots/list');

const toldOf = ({ heard }: Driven, text: string) =>
  heard.find(({ params }) => JSON.stringify(params ?? {}).includes(text));

/** All that the server has sent. */
const wire = ({ road }: Driven) => road.exchanges.map(({ text }) => text).join('');
