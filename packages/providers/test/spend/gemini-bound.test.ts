import { describe, expect, it } from 'vitest';
import { boundOf, endpoint, FACTS, refusedField } from './native-call.ts';

const GENERATE = endpoint('google', '/v1beta/models/gemini-2.5-flash:generateContent');
const SAID = { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] };
const input = (body: object) => boundOf(GENERATE, { ...body }).inputTokens;
const output = (generationConfig: object, facts = FACTS) =>
  boundOf(GENERATE, { ...SAID, generationConfig }, facts).output;
const parts = (...all: object[]) => ({ contents: [{ role: 'user', parts: all }] });
const PICTURE = { mimeType: 'image/png', data: 'A'.repeat(500_000) };

describe('the bound of Gemini', () => {
  it('is at most a token for each byte, and the context window', () => {
    expect(input(SAID)).toBeGreaterThanOrEqual(JSON.stringify(SAID).length);
    expect(input(SAID)).toBeLessThan(200);
    expect(input(parts({ text: 'x'.repeat(1_000_000) }))).toBe(200_000);
  });

  it('holds an image at its published maximum, under either spelling, in answers of functions too', () => {
    const { data, mimeType } = PICTURE;
    for (const part of [
      { inlineData: PICTURE },
      { inline_data: { mime_type: mimeType, data } },
      { functionResponse: { name: 'f', response: {}, parts: [{ inlineData: PICTURE }] } },
    ]) {
      expect(input(parts(part))).toBeGreaterThan(4_128);
      expect(input(parts(part))).toBeLessThan(4_600);
    }
  });

  it.each([
    ['sound', parts({ inlineData: { mimeType: 'audio/mp3', data: 'AAAA' } })],
    ['a PDF', parts({ inlineData: { mimeType: 'application/pdf', data: 'AAAA' } })],
    ['a stored file', parts({ fileData: { fileUri: 'https://x.example/f', mimeType: 'image/png' } })],
    ['an image with a length of its own', parts({ inlineData: PICTURE, mediaResolution: { numTokens: 9 } })],
    ['stored content', { ...SAID, cachedContent: 'cachedContents/1' }],
    ['computer use', { ...SAID, tools: [{ computerUse: { environment: 'ENVIRONMENT_BROWSER' } }] }],
  ])('counts %s as the whole window', (_what, body) => {
    expect(input(body)).toBe(200_000);
    expect(refusedField(GENERATE, body, { ...FACTS, contextWindow: undefined })).toBe('model');
  });

  it.each([
    ['tools[0].googleSearch', { tools: [{ google_search: {} }] }],
    ['tools.googleSearch', { tools: { googleSearch: {} } }],
    ['tools[0].urlContext', { tools: [{ urlContext: {} }] }],
    ['tools[0].codeExecution', { tools: [{ functionDeclarations: [], codeExecution: {} }] }],
    ['tools[0].fileSearch', { tools: [{ fileSearch: {} }] }],
    ['tools[0].mcpServers', { tools: [{ mcpServers: [] }] }],
    ['continuationToken', { continuationToken: 'x' }],
    ['generationConfig.responseModalities', { generationConfig: { responseModalities: ['AUDIO'] } }],
    ['generationConfig.responseModalities', { generation_config: { response_modalities: [2] } }],
    ['generationConfig.imageConfig', { generationConfig: { imageConfig: {} } }],
    ['generationConfig.speechConfig', { generationConfig: { speechConfig: {} } }],
    ['generationConfig.maxOutputTokens', { generationConfig: { maxOutputTokens: '100' } }],
    ['generationConfig.candidateCount', { generationConfig: { candidateCount: '8' } }],
    [
      'generationConfig.thinkingConfig.thinkingBudget',
      { generationConfig: { thinkingConfig: { thinkingBudget: 1.5 } } },
    ],
    ['contents[0].parts[0].hologram', parts({ hologram: {} })],
    ['contents[0].parts[0].mediaProcessing', parts({ inlineData: PICTURE, mediaProcessing: 'AGENTIC' })],
    ['model', { model: 'models/gemini-2.5-pro' }],
    ['maxOutputTokens', { maxOutputTokens: 5 }],
  ])('has no bound with this %s, and names it', (param, fields) => {
    expect(refusedField(GENERATE, { ...SAID, ...fields })).toBe(param);
  });

  it('refuses a field under two names at any depth', () => {
    const generationConfig = { maxOutputTokens: 5, max_output_tokens: 5_000 };
    expect(refusedField(GENERATE, { ...SAID, generationConfig })).toBe('maxOutputTokens');
    expect(refusedField(GENERATE, { ...SAID, tools: [], Tools: [] })).toBe('Tools');
    expect(refusedField(GENERATE, { ...SAID, safety_settings: [], safetySettings: [] })).toBe(
      'safetySettings',
    );
  });

  it("lets a schema's names be the caller's own", () => {
    const properties = { first_name: {}, firstName: {} };
    const body = { ...SAID, generationConfig: { responseSchema: { type: 'OBJECT', properties } } };
    expect(refusedField(GENERATE, body)).toBeUndefined();
  });

  it('is not known for models that answer in images or sound, unless the call asks for text', () => {
    const image = endpoint('google', '/v1beta/models/gemini-2.5-flash-image:generateContent');
    expect(refusedField(image, SAID)).toBe('model');
    expect(refusedField(image, { ...SAID, generationConfig: { responseModalities: [] } })).toBe('model');
    expect(
      refusedField(image, { ...SAID, generationConfig: { responseModalities: ['TEXT'] } }),
    ).toBeUndefined();
  });
});

describe('the output of Gemini', () => {
  it('is the requested bound, thoughts included, for each candidate', () => {
    const thinkingConfig = { thinkingBudget: 2_000 };
    expect(output({ maxOutputTokens: 3_000, candidateCount: 4, thinkingConfig })).toEqual({
      asked: 3_000,
      least: 2_001,
      times: 4,
      coversReasoning: true,
    });
    expect(output({ max_output_tokens: 3_000, thinking_config: { thinking_budget: -1 } })).toMatchObject({
      asked: 3_000,
      least: 256,
      times: 1,
    });
  });

  it('has a default when omitted', () => {
    expect(output({})).toMatchObject({ asked: 4_096 });
    expect(output({ maxOutputTokens: null }, { ...FACTS, reasoning: true })).toMatchObject({ asked: 32_768 });
  });

  it('is bounded by one field: its other spellings are removed and its neighbours stay', () => {
    const body = {
      ...SAID,
      generation_config: { max_output_tokens: 9, topK: 1 },
      generationConfig: { maxOutputTokens: 8 },
    };
    expect(GENERATE.spend.withOutputBound?.(body, 7)).toEqual({
      ...SAID,
      generationConfig: { topK: 1, maxOutputTokens: 7 },
    });
  });

  it('is written at the standard tier', () => {
    const body = { ...SAID, service_tier: 'priority', serviceTier: 'flex' };
    expect(GENERATE.spend.atStandardPrice?.(body)).toEqual(SAID);
  });
});

it.each([
  ['/v1beta/models/gemini-2.5-flash:generateContent', 'gemini-2.5-flash', false],
  ['/v1/models/gemini-3.1-pro-preview:streamGenerateContent', 'gemini-3.1-pro-preview', true],
  ['/v1beta/models/gemini-2.5-pro;x=gemini-2.5-flash:generateContent', undefined, false],
  ['/v1beta/models/a%2fb:generateContent', undefined, false],
  ['/v1beta/tunedModels/gemini-2.5-flash-1:generateContent', undefined, false],
])('the path %s names the model and whether it streams', (path, model, streams) => {
  expect(GENERATE.spend.model({}, path)).toBe(model);
  expect(GENERATE.spend.streams({}, path, '')).toBe(streams);
});

describe('the bound of Gemini embeddings', () => {
  const batch = endpoint('google', '/v1beta/models/gemini-embedding-001:batchEmbedContents');
  const request = (part: object) => ({ model: 'models/gemini-embedding-001', content: { parts: [part] } });

  it('is a token for each byte, and no output', () => {
    const body = { requests: [request({ text: 'one' }), request({ text: 'two' })] };
    expect(boundOf(batch, body)).toEqual({
      inputTokens: JSON.stringify(body).length,
      fees: {},
      output: undefined,
    });
  });

  it('is a window for each request if one contains media', () => {
    const body = {
      requests: [request({ text: 'one' }), request({ inlineData: { mimeType: 'video/mp4', data: 'A' } })],
    };
    expect(boundOf(batch, body).inputTokens).toBe(2 * 200_000);
  });

  it('is not known with other fields or another model', () => {
    expect(refusedField(batch, { requests: [{ ...request({ text: 'x' }), x: 1 }] })).toBe('requests[0].x');
    const other = { requests: [{ ...request({ text: 'x' }), model: 'models/gemini-embedding-2' }] };
    expect(refusedField(batch, other)).toBe('requests[0].model');
  });
});
