import { html } from 'hono/html';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import { liveFacts } from './live-facts.ts';
import { code, fact, type Html } from './page.ts';
import type { Live } from './read-live.ts';
import { sdkExamples } from './sdk-examples.ts';

/** The page of an LLM URL: the same facts as its JSON, the models and conditions that a refusal would name, and how to call it. */
export const llmPage = (grant: LlmGrant, policy: Policy, live: Live): Html =>
  html`<p>It calls ${grant.provider.id} for you, without a key. The address of this page is a secret: whoever has it can use it.</p>
${liveFacts(live)}
<h2>What it allows</h2>
<dl>${allowed(grant, policy)}</dl>
<h2>How to use it</h2>
<p>Set the environment variable <code>PRESIGN_URL</code> to the address of this page, without a slash at its end. Answers have the headers of the limits, and refusals say why.</p>
${sdkExamples(exampleOf(grant, policy)).map((each) => code(each.name, each.code))}`;

function allowed({ provider, method, paths }: LlmGrant, { models, conditions }: Policy): Html[] {
  const { max_body_bytes: bytes, allowed_fields: fields } = conditions ?? {};
  return [
    fact('Provider', provider.id),
    fact(paths.length === 1 ? 'Path' : 'Paths', `${method} ${paths.join(', ')}`),
    fact('Models', models ? models.join(', ') : 'all'),
    ...(bytes === undefined ? [] : [fact('Body', `at most ${bytes.toLocaleString('en-US')} bytes`)]),
    ...(fields ? [fact('Fields of the body', fields.join(', '))] : []),
  ];
}

/** The first path of a URL has no `*`. */
const exampleOf = ({ method, paths, model }: LlmGrant, { models }: Policy) => ({
  method,
  path: paths[0] ?? '',
  model: models?.find((name) => !name.includes('*')) ?? model ?? 'MODEL',
});
