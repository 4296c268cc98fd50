import { describe, expect, it } from 'vitest';
import { applyConfig, compileConfig, dialectOf } from '../src/index.ts';
import { apply, known } from './apply.ts';

describe('config laid over a call', () => {
  it('keeps its names if the endpoint is unknown', () => {
    expect(apply('openai', '/v1/moderations', { model: 'm', max_tokens: 1 }, { voice: 'x' }).body).toEqual({
      voice: 'x',
      model: 'm',
      max_tokens: 1,
    });
  });

  it('adds no body to a call without one', () => {
    const path = '/v1/models/x:generateContent';
    expect(
      applyConfig(compileConfig(dialectOf(known('google'), path), { model: 'y', n: 1 }), {
        path,
        body: undefined,
      }),
    ).toEqual({
      path: '/v1/models/y:generateContent',
      body: undefined,
    });
  });

  it('applies to every spelling of a path that a grant with wildcards allows', () => {
    for (const path of ['/v1/chat/completions/', '/V1/Chat/Completions', '/v1;a=b/chat/completions']) {
      expect(apply('openai', path, { max_tokens: 9 }, { max_completion_tokens: 99 }).body).toEqual({
        max_completion_tokens: 9,
      });
    }
    const encoded = '/v1beta/models/big%3AgenerateContent';
    expect(apply('google', encoded, { model: 'small' }, {}).path).toBe(
      '/v1beta/models/small%3AgenerateContent',
    );
  });
});
