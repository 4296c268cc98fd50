import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apply } from './apply.ts';

const GEMINI = '/v1beta/models/gemini-2.5-flash:generateContent';

describe('config.model in a path', () => {
  it.each([
    ['gemini-x', GEMINI, '/v1beta/models/gemini-x:generateContent'],
    ['models/gemini-x', GEMINI, '/v1beta/models/gemini-x:generateContent'],
    ['tunedModels/mine', '/v1/models/a:streamGenerateContent', '/v1/tunedModels/mine:streamGenerateContent'],
    ['a/../b:c', GEMINI, '/v1beta/models/a%2F..%2Fb%3Ac:generateContent'],
    ['small', '/v1beta/Models;a=b/big:generateContent', '/v1beta/models/small:generateContent'],
    ['a?key=1', GEMINI, '/v1beta/models/a%3Fkey%3D1:generateContent'],
  ])('writes %s into %s', (model, path, written) => {
    expect(apply('google', path, { model }, {}).path).toBe(written);
  });

  it('replaces the model wherever a Gemini body repeats it, and adds no field', () => {
    const model = 'small';
    expect(apply('google', GEMINI, { model }, { model: 'models/big', contents: [] }).body).toEqual({
      model: 'models/small',
      contents: [],
    });
    expect(
      apply(
        'google',
        '/v1/models/a:batchEmbedContents',
        { model },
        { requests: [{ model: 'models/big' }, {}, 1] },
      ).body,
    ).toEqual({ requests: [{ model: 'models/small' }, {}, 1] });
    expect(
      apply(
        'google',
        '/v1/models/a:countTokens',
        { model },
        { generate_content_request: { model: 'models/big' } },
      ).body,
    ).toEqual({ generate_content_request: { model: 'models/small' } });
  });

  it('writes an Azure deployment into a path of any case', () => {
    const { path, body } = apply(
      'azure-openai',
      '/openai/Deployments/big/chat/completions',
      { model: 'small', max_tokens: 9 },
      { model: 'big' },
    );
    expect(path).toBe('/openai/Deployments/small/chat/completions'.replace('Deployments', 'deployments'));
    expect(body).toEqual({ model: 'small', max_completion_tokens: 9 });
  });

  it('throws for no model', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, cut) => {
        expect(() => apply('google', GEMINI, { model: cut ? `${text}\ud800` : text }, {})).not.toThrow();
      }),
    );
  });
});
