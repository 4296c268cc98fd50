import { html } from 'hono/html';

export type Html = ReturnType<typeof html>;

/** Text as the document's descriptions have it: empty lines part paragraphs, backticks hold code. */
export const prose = (text: string): Html =>
  html`${text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}`;

/** Every second piece between backticks is code. */
export const inline = (text: string): Html =>
  html`${text.split('`').map((piece, i) => (i % 2 ? html`<code>${piece}</code>` : piece))}`;
