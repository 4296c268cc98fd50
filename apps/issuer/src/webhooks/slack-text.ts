import { type WebhookEvent, webhookEvent } from '@presign/schema';

/**
 * The body of a request to an incoming webhook of Slack.
 * @param payload an event as it is stored
 * @see https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks (2026-11-29): a POST of `{"text": "…"}`
 */
export function slackBody(payload: string): string {
  const stored: unknown = JSON.parse(payload);
  const { data: event } = webhookEvent.safeParse(stored);
  // An unknown event from another version. Its type is a sufficient message.
  const text = event ? textOf(event) : typeOf(stored);
  return JSON.stringify({ text: escaped(text.replace(BREAKS, ' ')) });
}

const typeOf = (stored: unknown) =>
  typeof stored === 'object' && stored !== null && 'type' in stored ? String(stored.type) : 'An event.';

/** Removes line breaks and control characters, so that no name adds lines that look like other messages. */
const BREAKS = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;

/**
 * Replaces the control characters of Slack, so that no name becomes a link or a mention of the whole channel.
 * @see https://docs.slack.dev/messaging/formatting-message-text (2026-11-29): exactly these three
 */
const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

type AlertEvent = Extract<WebhookEvent, { type: 'alert.fired' | 'alert.resolved' }>;

function textOf(event: WebhookEvent): string {
  if (event.type === 'alert.fired') {
    const verb = event.data.test ? 'Test of' : 'Fired:';
    return `${verb} ${event.data.name}. ${figuresOf(event)}`;
  }
  if (event.type === 'alert.resolved') return `Resolved: ${event.data.name}. ${figuresOf(event)}`;
  if (event.type === 'webhook.test') return 'A test message of Presign.';
  return event.type;
}

/** The figure of an alert against its threshold: "Spend of the day: $61.20 (alert at $50.00)." */
function figuresOf({ data: { condition, value, threshold } }: AlertEvent): string {
  const { budget, spend, spend_jump: jump, errors } = condition;
  const ofSpend = spend ?? jump;
  const show = (figure: number) =>
    ofSpend ? `$${(Math.floor(figure / 10_000) / 100).toFixed(2)}` : `${figure} %`;
  const what = budget
    ? 'Settled part of the budget'
    : ofSpend
      ? `Spend of the ${ofSpend.window}`
      : `Failed calls${errors?.provider === undefined ? '' : ` of ${errors.provider}`}`;
  if (value === null || threshold === null) return `${what}: no figure.`;
  return `${what}: ${show(value)} (alert at ${show(threshold)}).`;
}
