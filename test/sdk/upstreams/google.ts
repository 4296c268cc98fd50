import { type PacedUpstream, startPacedUpstream } from './paced.ts';

/** The model's text, in the pieces that a stream sends. */
export const GEMINI_PIECES = ['Presigned ', 'URLs ', 'expire.'];

/** Gemini's shapes (https://ai.google.dev/api/generate-content): one answer, and a stream of such answers. */
export const startGoogleUpstream = (): Promise<PacedUpstream> =>
  startPacedUpstream(({ url }) => {
    if (url.includes(':streamGenerateContent')) return { events: GEMINI_PIECES.map(chunk) };
    if (url.includes(':countTokens')) return { json: { totalTokens: 5 } };
    return { json: answer(GEMINI_PIECES.join(''), 'STOP') };
  });

const answer = (text: string, finishReason: string | undefined) => ({
  candidates: [{ content: { parts: [{ text }], role: 'model' }, finishReason, index: 0 }],
  usageMetadata: {
    promptTokenCount: 5,
    candidatesTokenCount: 6,
    totalTokenCount: 11,
    promptTokensDetails: [{ modality: 'TEXT', tokenCount: 5 }],
  },
  modelVersion: 'gemini-2.5-flash',
  responseId: 'recorded',
});

/** With `alt=sse`: no event names, lines end in CRLF, no last word after the chunk with the finish reason. */
const chunk = (text: string, i: number) =>
  `data: ${JSON.stringify(answer(text, i === GEMINI_PIECES.length - 1 ? 'STOP' : undefined))}\r\n\r\n`;
