import { BUNDLED_PRICES, dialectOf, loadProviders } from '@presign/providers';
import { type JsonObject, readWithout, textPlaces } from '@presign/schema';
import { describe, expect, test } from 'vitest';
import { compileRules, NO_RULES, type RulesSource } from '../src/grant/call-rules.ts';
import { MODEST, scanBody } from '../src/llm/body.ts';
import { type Asked, planCall } from '../src/llm/plan.ts';
import { planLight, planRead, planWhole, scanToPlan } from '../src/llm/plan-read.ts';

const providers = loadProviders(undefined);
const AT = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-30T12:00:00Z') };
const LIMITED = { costLimited: true, tokenLimited: false };
const WORDS = 'A few words that fill a body. '.repeat(20);
const LONG = `{"role":"user","content":"${WORDS}"}`;

describe('a body with long texts is refused as it is when it is read whole', () => {
  const chat = '/v1/chat/completions';
  const claude = 'claude-sonnet-4-5';
  const bodyWith = (more: string, model = 'gpt-4o-mini') =>
    `{"model":"${model}","messages":[${LONG}]${more}}`;
  const message = (more: string) => bodyWith('').replace(/\]\}$/, `,{"role":"user",${more}}]}`);
  const refusedOf = (
    body: string | Buffer,
    { id = 'openai', path = chat, source = {}, limited = LIMITED }: Refused = {},
  ) => {
    const provider = providers.get(id);
    if (!provider) throw new Error(id);
    const rules = compileRules({ config: undefined, ...source }, dialectOf(provider, path));
    const asked = {
      grant: { provider, method: 'POST' },
      target: { path, query: '' },
      rules,
      limited,
      at: AT,
    };
    const raw = Buffer.from(body);
    const scan = scanToPlan(raw, 'must', asked, MODEST);
    const whole = planWhole(raw, 'must', asked, scanBody(raw, 'must', rules.names, MODEST));
    expect(planLight(raw, asked, scan)).toBeUndefined();
    expect(planRead(raw, 'must', asked, scan)).toEqual(whole);
    return { texts: 'excess' in scan ? 0 : scan.texts.length, refusal: 'refusal' in whole && whole.refusal };
  };

  test.each<[reason: string, body: string, refusal: object, of?: Refused]>([
    [
      'a field whose cost has no bound',
      bodyWith(',"prediction":{"type":"content"}'),
      { code: 'cost_unbounded', param: 'prediction' },
    ],
    ['an unknown field', bodyWith(',"later":1'), { code: 'cost_unbounded', param: 'later' }],
    [
      'an unknown field of a message',
      message('"later":1'),
      { code: 'cost_unbounded', param: 'messages[1].later' },
    ],
    [
      'content of an unknown kind',
      message('"content":[{"type":"later","text":"x"}]'),
      {
        code: 'cost_unbounded',
        param: 'messages[1].content[0].type',
        message: expect.stringContaining('(later)'),
      },
    ],
    [
      'a text as the bound of the output',
      bodyWith(',"max_tokens":"9"'),
      { code: 'cost_unbounded', param: 'max_tokens' },
    ],
    ['too many choices', bodyWith(',"n":129'), { code: 'cost_unbounded', param: 'n' }],
    [
      'nesting that is too deep',
      bodyWith(`,"metadata":${'['.repeat(101)}${']'.repeat(101)}`),
      { code: 'cost_unbounded', param: 'body' },
    ],
    [
      'the same under a limit of tokens',
      bodyWith(',"later":1'),
      { code: 'tokens_unbounded', param: 'later' },
      { limited: { costLimited: false, tokenLimited: true } },
    ],
    ['a model without a price', bodyWith('', 'model-x'), { code: 'price_unknown', param: 'model' }],
    [
      'a model for which the URL was not issued',
      bodyWith(''),
      { code: 'model_not_allowed', param: 'model' },
      { source: { models: ['gpt-4o'] } },
    ],
    [
      'a field for which the URL was not issued',
      bodyWith(',"user":"u"'),
      { code: 'field_not_allowed', param: 'user' },
      { source: { conditions: { allowed_fields: ['model', 'messages'] } } },
    ],
    [
      'a name that stands twice',
      message('"content":"a","content":"b"'),
      { code: 'invalid_request', param: 'messages[1].content' },
    ],
    ['text that is no JSON', `${bodyWith('')}}`, { code: 'invalid_json' }],
    [
      'an item of an unknown kind',
      `{"model":"gpt-4o-mini","input":[${LONG},{"type":"later","output":"${WORDS}"}]}`,
      { code: 'cost_unbounded', param: 'input[1].type' },
      { path: '/v1/responses' },
    ],
    [
      'a block of an unknown kind',
      `{"model":"${claude}","messages":[${LONG},{"role":"user","content":[{"type":"later","text":"${WORDS}"}]}]}`,
      { code: 'cost_unbounded', param: 'messages[1].content[0].type' },
      { id: 'anthropic', path: '/v1/messages' },
    ],
    [
      'a call of a tool that has a long text, before a field that has no bound',
      `{"model":"${claude}","messages":[${LONG},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{},"text":"${WORDS}"}]}],"container":"c"}`,
      { code: 'cost_unbounded', param: 'container' },
      { id: 'anthropic', path: '/v1/messages' },
    ],
  ])('for %s', (_, body, expected, of) => {
    const { texts, refusal } = refusedOf(body, of);
    expect(texts).toBeGreaterThan(0);
    expect(refusal).toMatchObject(expected);
  });

  test('for bytes that are no UTF-8', () => {
    const body = Buffer.concat([Buffer.from(bodyWith(',"user":"')), Buffer.from([0xff]), Buffer.from('"}')]);
    expect(refusedOf(body)).toMatchObject({ texts: 1, refusal: { code: 'invalid_json' } });
  });

  test('where a rule reads a text that was left out', () => {
    const openai = providers.get('openai');
    const route = openai?.routes.find(({ path }) => path === chat);
    if (!openai || !route?.dialect.spend) throw new Error('openai');
    const unreadTexts = textPlaces(['model'], { onlyAscii: false });
    const dialect = { ...route.dialect, spend: { ...route.dialect.spend, unreadTexts } };
    const provider = { ...openai, routes: [{ ...route, dialect }] };
    const grant = { provider, method: 'POST' };
    const asked = { grant, target: { path: chat, query: '' }, rules: NO_RULES, limited: LIMITED, at: AT };
    const raw = Buffer.from(`{"model":"${'m'.repeat(600)}","messages":[]}`);
    const scan = scanToPlan(raw, 'must', asked, MODEST);
    if ('excess' in scan) throw new Error('it has bounds');
    const json = readWithout(raw, scan)?.value as JsonObject;
    expect(planCall({ ...asked, content: { raw, json, scan, leftOut: scan.texts } })).toMatchObject({
      refusal: { code: 'cost_unbounded' },
    });
    expect(planRead(raw, 'must', asked, scan)).toMatchObject({ refusal: { code: 'price_unknown' } });
  });
});

type Refused = {
  readonly id?: string;
  readonly path?: string;
  readonly source?: Partial<RulesSource>;
  readonly limited?: Asked['limited'];
};
